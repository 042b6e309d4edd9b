"""What Schemathesis has to be told about this API: line-separated JSON, and that a key of a retry is for one request."""

import itertools
import json
import os
import re
import uuid

import schemathesis

TAG = re.compile(r'"[0-9a-f]+-[0-9a-f]{8}"')
KEY = re.compile(r"[!-~]([\t -~]{0,253}[!-~])?")


def lines_as_lists(node):
    if isinstance(node, dict):
        media = node.get("application/x-ndjson")
        if isinstance(media, dict) and "x-item-schema" in media:
            media["schema"] = {"type": "array", "items": media["x-item-schema"]}
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            lines_as_lists(inner)


IS_LONG = os.environ.get("LONG_CHECKS") == "1"
OPERATOR = re.compile(r"#/components/parameters/\w+\.\w+\..")


def leave_out_repeated_operators(raw_schema):
    """A list at its own address is tried with every operator of every field; wherever it has the same conditions again, with one of each field."""
    for path, operations in raw_schema["paths"].items():
        for method, operation in operations.items():
            is_list = method == "get" and path.count("/") == 1
            if isinstance(operation, dict) and "parameters" in operation and not is_list:
                operation["parameters"] = [each for each in operation["parameters"] if not OPERATOR.match(each.get("$ref", ""))]


@schemathesis.hook
def before_load_schema(ctx, raw_schema):
    """OpenAPI 3.1 has no word for lines of JSON. To make and to check them, they are a list of what each line holds."""
    lines_as_lists(raw_schema)
    if not IS_LONG:
        leave_out_repeated_operators(raw_schema)


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    if isinstance(value, bytes):
        return value
    items = value if isinstance(value, list) else [value]
    return "".join(json.dumps(item) + "\n" for item in items).encode()


@schemathesis.deserializer("application/x-ndjson")
def records(ctx, response):
    return [json.loads(line) for line in response.content.decode().splitlines()]


@schemathesis.deserializer("text/html", "text/plain")
def text(ctx, response):
    return response.content.decode()


TURNS = itertools.cycle([False, True])

# Forms to fill in and the question before a deletion are for people and have no other face. All else is asked for as
# JSON: `*/*` would be the page, and pages ignore parameters that they do not know.
FORM = re.compile(r"/(new|edit|delete)$")


LIST = re.compile(r"fields|sort|.*\.in")


def leave_out_nothing(case):
    """In a query the list of one empty text is spelled `fields=`, as the empty list is, which the document allows."""
    for name, value in list((case.query or {}).items()):
        if LIST.fullmatch(name) and value in ("", [""]):
            del case.query[name]


def lead_somewhere(case):
    """A link that Schemathesis makes up by itself takes a reference to nothing for the id `None`; 0 is no record's."""
    for name, value in list((case.path_parameters or {}).items()):
        if value in (None, "None"):
            case.path_parameters[name] = "0"


def accept(case):
    is_form = case.method.upper() == "GET" and FORM.search(case.operation.path)
    return "text/html" if is_form else "application/json"


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Lets made-up headers through to the write behind them.

    Generated keys repeat, and a key that was used for another request is 422; a made-up tag in If-Match is 412. So each
    key becomes a new one, and every other such tag `*`, which any record meets. Tags of our own come from links.
    """
    case.headers["Accept"] = accept(case)
    leave_out_nothing(case)
    lead_somewhere(case)
    for name, value in list((case.headers or {}).items()):
        if not isinstance(value, str):
            continue
        if name.lower() == "idempotency-key" and KEY.fullmatch(value):
            case.headers[name] = uuid.uuid4().hex
        if name.lower() == "if-match" and not TAG.fullmatch(value) and next(TURNS):
            case.headers[name] = "*"

"""What Schemathesis has to be told about this API: line-separated JSON, and that a key of a retry is for one request."""

import itertools
import json
import re
import uuid

import schemathesis

TAG = re.compile(r'"[0-9a-f]+-[0-9a-f]{8}"')
KEY = re.compile(r"[!-~]([\t -~]{0,253}[!-~])?")


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


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Lets made-up headers through to the write behind them.

    Generated keys repeat, and a key that was used for another request is 422; a made-up tag in If-Match is 412. So each
    key becomes a new one, and every other such tag `*`, which any record meets. Tags of our own come from links.
    """
    for name, value in list((case.headers or {}).items()):
        if not isinstance(value, str):
            continue
        if name.lower() == "idempotency-key" and KEY.fullmatch(value):
            case.headers[name] = uuid.uuid4().hex
        if name.lower() == "if-match" and not TAG.fullmatch(value) and next(TURNS):
            case.headers[name] = "*"

"""Creates, replaces, changes and deletes products with the generated client, and prints what came of it as JSON."""

import importlib
import json
import sys

PACKAGE = "openapi_python_generated"


def part(name):
    return importlib.import_module(f"{PACKAGE}.{name}")


models = part("models")
client = part("client").Client(base_url=sys.argv[1], headers={"accept": "application/json"})


def call(operation, *path, **given):
    return part(f"api.product.{operation}").sync_detailed(*path, client=client, **given)


def record(response):
    return json.loads(response.content)


created = record(call("create_product", body=models.ProductNew(name="Samovar", price="120.00")))
many = record(call("create_product", body=[models.ProductNew(name="Cup"), models.ProductNew(name="Saucer")]))
replaced = record(call("replace_product", created["id"], body=models.ProductWhole(name="Urn")))
changed = record(call("update_product", created["id"], body=models.ProductPatch(price="9.50")))
call("delete_product", created["id"])
gone = call("get_product", created["id"])
told = {
    "created": [created["name"], created["price"]],
    "many": [product["name"] for product in many],
    "replaced": [replaced["name"], replaced["price"]],
    "changed": [changed["name"], changed["price"]],
    "gone": gone.status_code.value,
}
print(json.dumps(told))

"""What is measured: each workload's requests with the text that a right answer holds, and the goals Trefoil is held to."""
import json
import random
from dataclasses import dataclass, field

CONNECTIONS = 64
SUBSCRIBERS = 1000
ITEMS, PRODUCTS = 100, 20
# What is ordered, and the orders of each user: so many users have ordered the same thing.
ORDERED, ORDERS = 100, 2
BUYERS = 20
THOUSAND, MANY, MILLION = 1_000, 100_000, 1_000_000

ONE = "query($id:ID!){getUserById(id:$id){id name email}}"
ALL = "{getAllUsers{id name email}}"
CREATE = "mutation($name:String!,$email:String!){createUser(name:$name,email:$email){id name email}}"
NESTED = {
    1: "{getAllUsers{id name}}",
    2: "{getAllUsers{id name orders{id item}}}",
    3: "{getAllUsers{id name orders{id item user{id name}}}}",
}


@dataclass(frozen=True)
class Goal:
    """`figure` of Trefoil, divided by the same of `against` where that is given, is at most (or at least) `limit`."""
    figure: str
    limit: float
    against: str | None = None
    at_least: bool = False


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    # requests, waves, fanout, start, stream, nested: how it is run.
    way: str
    # Which recorded answer a floor gives, and which requests are sent.
    kind: str = ""
    goals: tuple = ()
    sizes: tuple = (THOUSAND,)
    writes: bool = False
    only: tuple = field(default=())


HEADERS = "hyper-headers"
DATABASES = ("trefoil", "axum", "mercurius", "pocketbase")
WORKLOADS = [
    Workload("hello", "GET /hello", "requests", "hello", (Goal("cpu", 1.2, HEADERS),)),
    Workload("getUserById", "GraphQL getUserById, random id, 1,000 users", "requests", "getUserById",
             (Goal("cpu", 1.6, HEADERS),)),
    Workload("getAllUsers", "GraphQL getAllUsers, 1,000 users, nothing changed", "requests", "getAllUsers",
             (Goal("cpu", 1.5, HEADERS),)),
    Workload("getAllUsersChanged", "GraphQL getAllUsers, 1,000 users, after a change", "waves", "getAllUsers",
             (Goal("cpu", 13, HEADERS),), only=("hyper", HEADERS, "trefoil")),
    Workload("items", "GET /items, 100 values", "requests", "items", (Goal("cpu", 1.3, HEADERS),)),
    Workload("products", "GET /products page, 20 rows, nothing changed", "requests", "products",
             (Goal("cpu", 1.4, HEADERS),)),
    Workload("productsChanged", "GET /products page, 20 rows, after a change", "waves", "products",
             (Goal("cpu", 5, HEADERS),), only=("hyper", HEADERS, "trefoil")),
    Workload("usersOfItem", "GET users who ordered an item, 20 of 1,000, nothing changed", "requests", "usersOfItem",
             only=DATABASES),
    Workload("usersOfItemChanged", "GET users who ordered an item, 20 of 1,000, after a change", "waves", "usersOfItem",
             only=("trefoil",)),
    Workload("ordersByStatus", "GET count and sum of 2,000 orders by status, nothing changed", "requests", "ordersByStatus",
             only=DATABASES),
    Workload("ordersByStatusChanged", "GET count and sum of 2,000 orders by status, after a change", "waves",
             "ordersByStatus", only=("trefoil",)),
    Workload("mix", "90 % getUserById, 10 % createUser", "requests", "mix", (Goal("cpu", 2, HEADERS),), writes=True),
    Workload("createUser", "GraphQL createUser, durable, 1,000 users", "requests", "createUser",
             (Goal("cpu", 3.5, HEADERS), Goal("rate", 0.5, "epoll", at_least=True)), writes=True),
    Workload("fanoutWebSocket", "fan-out to 1,000 WebSocket subscribers", "fanout", "ws",
             (Goal("cpu", 9), Goal("kib", 10)), only=("epoll", "trefoil", "axum", "mercurius")),
    Workload("fanoutSse", "fan-out to 1,000 subscribers by Server-Sent Events", "fanout", "sse",
             (Goal("cpu", 9), Goal("kib", 12)), only=("epoll", "trefoil", "axum")),
    Workload("start", "start to first answer, idle memory", "start", "hello",
             (Goal("start", 3, "hyper"), Goal("rss", 15))),
    Workload("getUserByIdGrowth", "getUserById as the store grows", "requests", "getUserById",
             (Goal("cpu", 1.25, f"trefoil at {THOUSAND:,}"),), sizes=(THOUSAND, MANY, MILLION),
             only=("trefoil", "axum", "mercurius")),
    Workload("createUserGrowth", "createUser as the store grows", "requests", "createUser",
             (Goal("cpu", 1.3, f"trefoil at {THOUSAND:,}"),), sizes=(THOUSAND, MANY, MILLION), writes=True,
             only=("trefoil", "axum", "mercurius")),
    Workload("stream", "a list of 1,000,000 records, streamed", "stream", sizes=(MILLION,), only=("trefoil",)),
    Workload("nested", "nested selections as the parents grow", "nested", sizes=(THOUSAND, 10_000, MANY),
             only=("trefoil",)),
]


def user(number):
    return {"id": number, "name": f"User {number}", "email": f"user{number}@example.com"}


def order(number):
    return {"id": number, "userId": (number + ORDERS - 1) // ORDERS, "item": f"Item {(number - 1) % ORDERED + 1}",
            "quantity": 1 + number % 9, "status": ["NEW", "PAID", "SHIPPED"][number % 3]}


def buyer(item, place):
    """The number of a user who has ordered the item: the first, the second and so on of a thousand."""
    return order(item + place * ORDERED)["userId"]


# Of the orders of a thousand users.
SHIPPED = sum(each["quantity"] for each in map(order, range(1, ORDERS * THOUSAND + 1)) if each["status"] == "SHIPPED")


def product(number):
    return {"id": number, "name": f"Product {number}", "category": ["Desk", "Kitchen", "Garden"][number % 3],
            "price": f"{number * 9.99:.2f}", "description": f"What product {number} is good for"}


def http(method, path, body=None, accept=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if accept:
        lines.append(f"Accept: {accept}")
    if body is not None:
        body = json.dumps(body, separators=(",", ":"))
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode()


def graphql(query, **variables):
    body = {"query": query, "variables": variables} if variables else {"query": query}
    return http("POST", "/graphql", body)


class Trefoil:
    """Requests of the contract, and what each right answer holds; the peers with GraphQL answer the same ones."""

    def hello(self):
        return http("GET", "/hello"), "Hello, World!"

    def get_one(self, number):
        return graphql(ONE, id=str(number)), f'"name":"User {number}"'

    def get_all(self, variant=None):
        query = ALL if variant is None else f"query Q{variant}{ALL}"
        return graphql(query), f'"name":"User {THOUSAND}"'

    def create(self, number):
        return (graphql(CREATE, name=f"Load {number}", email=f"load{number}@example.com"), f'"name":"Load {number}"')

    def items(self):
        return http("GET", "/items"), f'"Item number {ITEMS}"'

    def products(self, variant=None):
        # The size is beyond the number of products: the rows are the same, the address is not.
        path = "/products" if variant is None else f"/products?size={PRODUCTS + variant}"
        return http("GET", path, accept="text/html"), f">Product {PRODUCTS}<"

    def users_of_item(self, item, variant=0):
        # As with products, the size is beyond the number of users.
        path = f"/users?orders.item=Item%20{item}&fields=id,name,email&size={BUYERS + variant}"
        return http("GET", path, accept="application/json"), f'"User {buyer(item, BUYERS - 1)}"'

    def orders_by_status(self, variant=0):
        path = f"/orders?aggregate=count,sum(quantity),max(quantity)&group=status&size={BUYERS + variant}"
        return http("GET", path, accept="application/json"), str(SHIPPED)

    def change(self, kind, number):
        if kind == "ordersByStatus":
            # The first order is paid; its quantity is the greatest from now on.
            return http("PATCH", "/orders/1", {"quantity": 1000 + number}, "application/json"), str(1000 + number)
        if kind == "products":
            price = f"{1000 + number}.50"
            return http("PATCH", f"/products/{1 + number % PRODUCTS}", {"price": price}, "application/json"), price
        email = f"changed{number}@example.com"
        user = buyer(1, number % BUYERS) if kind == "usersOfItem" else 1 + number % 100
        return http("PATCH", f"/users/{user}", {"email": email}, "application/json"), f'"{email}"'


class PocketBase(Trefoil):
    """The same in PocketBase's REST, since it has no GraphQL."""
    RECORDS = "/api/collections/members/records"

    def get_one(self, number):
        return http("GET", f"{self.RECORDS}/u{number:014}?fields=id,name,email"), f'"name":"User {number}"'

    def get_all(self, variant=None):
        return http("GET", f"{self.RECORDS}?perPage=1000&skipTotal=1&fields=id,name,email"), f'"name":"User {THOUSAND}"'

    def create(self, number):
        body = {"name": f"Load {number}", "email": f"load{number}@example.com"}
        return http("POST", f"{self.RECORDS}?fields=id,name,email", body), f'"name":"Load {number}"'

    def items(self):
        return http("GET", "/api/collections/items/records?perPage=100&skipTotal=1&fields=text"), f"Item number {ITEMS}"

    def users_of_item(self, item, variant=0):
        condition = f"orders_via_user.item%3F=%22Item%20{item}%22"
        path = f"{self.RECORDS}?filter={condition}&sort=id&perPage={BUYERS}&skipTotal=1&fields=id,name,email"
        return http("GET", path), super().users_of_item(item)[1]

    def orders_by_status(self, variant=0):
        return http("GET", "/api/collections/statuses/records?skipTotal=1&fields=id,count,sum,max"), str(SHIPPED)


def script(kind, dialect, size, chance=random.Random(6)):
    """(kind, request, expected) of a workload with independent requests; a kind is `r`, `f` or `w`, as in load/script.rs."""
    def point():
        return "r", *dialect.get_one(chance.randint(1, size))
    match kind:
        case "hello":
            return [("r", *dialect.hello())]
        case "items":
            return [("r", *dialect.items())]
        case "products":
            return [("r", *dialect.products())]
        case "usersOfItem":
            return [("r", *dialect.users_of_item(item)) for item in range(1, ORDERED + 1)]
        case "ordersByStatus":
            return [("r", *dialect.orders_by_status())]
        case "getAllUsers":
            return [("r", *dialect.get_all())]
        case "getUserById":
            return [point() for _ in range(min(20 * size, 20_000))]
        case "createUser":
            return [("w", *dialect.create(number)) for number in range(1000)]
        case "mix":
            return [point() for _ in range(9000)] + [("w", *dialect.create(number)) for number in range(1000)]
    raise ValueError(kind)


def waves(kind, dialect):
    """Writes, and as many different reads as there are connections: none of a wave can be answered as another was, and each
    must show what was written just before it."""
    read = {"getAllUsers": dialect.get_all, "products": dialect.products, "ordersByStatus": dialect.orders_by_status,
            "usersOfItem": lambda variant: dialect.users_of_item(1, variant)}[kind]
    writes = [("w", *dialect.change(kind, number)) for number in range(1000)]
    return writes, [("f", *read(variant)) for variant in range(CONNECTIONS)]


def floor_expects(asked, recorded):
    """A floor's answers are the recorded ones whatever was asked."""
    def expected(request):
        if b"createUser" in request:
            return '"createUser":{'
        return recorded(request)[-16:]
    return [(kind.replace("f", "r"), request, expected(request)) for kind, request, _ in asked]

"""Every server that is measured: how it gets its store, how it starts, where its users can be counted."""
import glob
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import time

import process
import workloads
from load import Failed
from workloads import ITEMS, MILLION, ORDERS, PRODUCTS, THOUSAND


def filled_by():
    """Changes with what fills the stores that are kept between runs."""
    digest = hashlib.sha256()
    for path in ["bench/harness/servers.py", "bench/harness/workloads.py", *sorted(glob.glob("bench/pocketbase/migrations/*"))]:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:8]


class Server:
    name = label = ""
    dialect = workloads.Trefoil()
    floor = peer = False
    # While it runs, as JavaScript engines do.
    compiles = False
    largest = MILLION

    def __init__(self, place):
        self.place = place

    def command(self, port, folder):
        raise NotImplementedError

    def environment(self):
        return {}

    def prepare(self, folder, size):
        """Fills the folder that one instance works in."""

    def stored(self, folder):
        """How many users there are, or None where nothing is kept."""
        return None

    def count(self, path, table="users"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        finally:
            connection.close()


class Hyper(Server):
    name, label, floor = "hyper", "bare hyper", True
    mode = "bare"

    def command(self, port, folder):
        return [f"{self.place.rust}/floor-hyper", str(port), self.place.recorded, self.mode]


class HyperHeaders(Hyper):
    name, label = "hyper-headers", "hyper, Trefoil's headers"
    mode = "headers"


class Epoll(Server):
    name, label, floor = "epoll", "raw epoll, append + fdatasync", True

    def command(self, port, folder):
        return [f"{self.place.rust}/floor-epoll", str(port), self.place.recorded, f"{folder}/log"]

    def stored(self, folder):
        with open(f"{folder}/log", "rb") as log:
            return sum(block.count(b"\n") for block in iter(lambda: log.read(1 << 20), b""))


class Trefoil(Server):
    name, label = "trefoil", "Trefoil"

    def environment(self):
        # No other server here writes a line for each request.
        return {"RUST_LOG": "warn"}

    def command(self, port, folder):
        return [self.place.trefoil, "serve", f"{folder}/app", "--host", "127.0.0.1", "--port", str(port),
                "--data", f"{folder}/data"]

    def prepare(self, folder, size):
        shutil.copytree(self.seeded(size), folder, dirs_exist_ok=True)

    def seeded(self, size):
        """The sample application with a store of so many users, kept for the next run of the same binary."""
        with open(self.place.trefoil, "rb") as binary:
            version = hashlib.file_digest(binary, "sha256").hexdigest()[:12]
        kept = f"{self.place.cache}/trefoil-{version}-{filled_by()}-{size}"
        if os.path.exists(kept):
            return kept
        forget_old(self.place.cache)
        making = f"{kept}.{os.getpid()}"
        application(f"{making}/app")
        os.mkdir(f"{making}/records")
        for name, rows in records(size).items():
            with open(f"{making}/records/{name}.ndjson", "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        ran = subprocess.run([self.place.trefoil, "import", f"{making}/app", "--data", f"{making}/data", "--from",
                              f"{making}/records"], capture_output=True, text=True)
        if ran.returncode != 0:
            raise Failed(f"trefoil import: {ran.stderr.strip()[-500:]}")
        shutil.rmtree(f"{making}/records")
        os.rename(making, kept)
        return kept

    def stored(self, folder):
        [path] = [f"{folder}/data/{name}" for name in os.listdir(f"{folder}/data") if name.endswith((".db", ".sqlite"))]
        return self.count(path)


def forget_old(cache):
    """Stores that nobody has measured for a week; PocketBase's program has the name of its stores, but is a file."""
    for name in os.listdir(cache):
        path = f"{cache}/{name}"
        if time.time() - os.stat(path).st_mtime <= 7 * 86400:
            continue
        if os.path.isdir(path) and name.startswith(("trefoil-", "pocketbase-")):
            shutil.rmtree(path, ignore_errors=True)
        elif name.startswith("peers-"):
            os.remove(path)


def application(folder):
    """The sample, greeting as the peers do, with the index that they have and without its own records."""
    shutil.copytree("app", folder)
    shutil.rmtree(f"{folder}/seed")
    with open(f"{folder}/trefoil.toml") as file:
        lines = file.read().split("\n")
    at = lines.index('path = "/hello"')
    lines[at + 1] = 'text = "Hello, World!"'
    with open(f"{folder}/trefoil.toml", "w") as file:
        file.write("\n".join(lines))
    with open(f"{folder}/graphql/index.graphqls", "w") as file:
        file.write('extend type Order @index(fields: ["item"])\n')


def records(size):
    """Two orders for each user, but for the largest store, which only users are asked of."""
    orders = [] if size > 100_000 else [workloads.order(number) for number in range(1, ORDERS * size + 1)]
    return {
        "users": (workloads.user(number) for number in range(1, size + 1)),
        "orders": orders,
        "products": [workloads.product(number) for number in range(1, PRODUCTS + 1)],
        "items": [f"Item number {number}" for number in range(1, ITEMS + 1)],
    }


class WithSqlite(Server):
    """A peer that opens a SQLite file of ours."""
    peer = True

    def prepare(self, folder, size):
        kept = f"{self.place.cache}/peers-{filled_by()}-{size}.sqlite"
        if not os.path.exists(kept):
            make_database(f"{kept}.making", size)
            os.rename(f"{kept}.making", kept)
        shutil.copyfile(kept, f"{folder}/store.sqlite")

    def stored(self, folder):
        return self.count(f"{folder}/store.sqlite")


def make_database(path, size):
    if os.path.exists(path):
        os.remove(path)
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA journal_mode=WAL;"
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL);"
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users, item TEXT NOT NULL, "
        "quantity INTEGER NOT NULL, status TEXT NOT NULL);"
        "CREATE INDEX orders_user ON orders (user_id);"
        "CREATE INDEX orders_item ON orders (item);"
        "CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT, price TEXT, description TEXT);")
    rows = records(size)
    database.executemany("INSERT INTO users VALUES (:id, :name, :email)", rows["users"])
    database.executemany("INSERT INTO orders VALUES (:id, :userId, :item, :quantity, :status)", rows["orders"])
    database.executemany("INSERT INTO items (text) VALUES (?)", ((text,) for text in rows["items"]))
    database.executemany("INSERT INTO products VALUES (:id, :name, :category, :price, :description)", rows["products"])
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


class Axum(WithSqlite):
    name, label = "axum", "axum + async-graphql + rusqlite"

    def command(self, port, folder):
        return [f"{self.place.rust}/axum-peer", str(port), f"{folder}/store.sqlite"]


class Mercurius(WithSqlite):
    name, label = "mercurius", "Fastify + Mercurius + better-sqlite3"
    compiles = True

    def command(self, port, folder):
        return ["node", f"{self.place.node}/mercurius.mjs", str(port), f"{folder}/store.sqlite"]

    def environment(self):
        return {"NODE_ENV": "production"}


class PocketBase(Server):
    name, label = "pocketbase", "PocketBase (REST)"
    dialect = workloads.PocketBase()
    peer = True
    largest = THOUSAND

    def command(self, port, folder):
        return [self.place.pocketbase, "serve", "--http", f"127.0.0.1:{port}", "--dir", f"{folder}/data", "--hooksDir",
                os.path.abspath("bench/pocketbase/hooks"), "--hooksWatch=0", "--migrationsDir",
                os.path.abspath("bench/pocketbase/migrations"), "--automigrate=0"]

    def prepare(self, folder, size):
        """Its first start fills its store, by the migration."""
        kept = f"{self.place.cache}/pocketbase-{filled_by()}-{size}"
        if not os.path.exists(kept):
            shutil.rmtree(f"{kept}.making", ignore_errors=True)
            os.mkdir(f"{kept}.making")
            Instance(self, f"{kept}.making", size).stop()
            os.rename(f"{kept}.making", kept)
        shutil.copytree(kept, folder, dirs_exist_ok=True)

    def stored(self, folder):
        return self.count(f"{folder}/data/data.db", "members")


SERVERS = [Hyper, HyperHeaders, Epoll, Trefoil, Axum, Mercurius, PocketBase]


class Instance:
    """One running server."""

    def __init__(self, server, folder, size=THOUSAND):
        self.server, self.folder, self.size = server, folder, size
        self.port = process.free_port()
        with open(f"{folder}/output", "ab") as log:
            began = time.perf_counter()
            try:
                self.process = process.start(server.command(self.port, folder), log, server.environment())
            except OSError as error:
                raise Failed(f"{server.label} did not start: {error}") from error
        self.pid = self.process.pid
        self.started_in = self.wait() - began

    def wait(self):
        """Until it answers."""
        request, expected = self.server.dialect.hello()
        for _ in range(60_000):
            try:
                if expected.encode() in process.ask(self.port, request)[1]:
                    return time.perf_counter()
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.0005)
        self.stop()
        with open(f"{self.folder}/output", errors="replace") as log:
            raise Failed(f"{self.server.label} did not start: {log.read()[-500:].strip()}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

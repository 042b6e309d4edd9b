"""Pages of 20 found by conditions and searches, in a short and in a long store: processor time per request under load."""
import json
import random
import sqlite3
import statistics
import sys
import time
from dataclasses import dataclass

import load
from stores import MOST_MEMORY, Server, Shell, is_postgres, run_psql, store_file, store_name

SHORT, PAGE, RARE = 1_000, 20, 30
# limits.search-rows, as it is without a setting.
SEARCH_ROWS = 100_000
ORDERS_OF_A_USER = 25
ROUNDS, ROUND_SECONDS = 5, 0.3
# A server that is asked for one page at a time sleeps between them, and pays for being woken each time.
CONNECTIONS = 4
# A script holds so many requests, each of them about another user.
REQUESTS = 100
SCHEMA = """
enum Status { NEW PAID SENT }
type User @index(fields: ["city"]) { id: ID! name: String! email: String! @unique city: String! orders: [Order] }
type Order @index(fields: ["item"]) @index(fields: ["status"]) { id: ID! user: User! item: String! quantity: Int! status: Status! }
type Article { id: ID! title: String! @search body: String! @search }
type Note @index(fields: ["topic"]) { id: ID! topic: String! body: String! }
type Memo { id: ID! body: String! }
type Query { users: [User] orders: [Order] articles: [Article] notes: [Note] memos: [Memo] }
"""


@dataclass(frozen=True)
class Read:
    """A page, and what is demanded of it in the long store."""
    title: str
    # `{any}` is the number of a user, another one in each request.
    path: str
    rows: int = PAGE
    # At most so many times what it costs in the short store.
    times_short: float | None = None
    # Found by these words: at most so many times what `sqlite3` and `psql` take with the same index.
    words: str = ""
    times_bare: float | None = None
    # At most so many seconds.
    most_seconds: float | None = None
    # Refused in a store that has more records than a search may read.
    bounded: bool = False


PLAIN = Read("articles, no condition", "/articles?sort=id", times_short=2)
READS = [
    PLAIN,
    Read("orders by the e-mail of their user", "/orders?user.email=user{any}@example.com", times_short=2),
    Read("orders by the city of their user, 1 in 10", "/orders?user.city=Berlin", times_short=2),
    Read("users with a rare order", "/users?orders.item=Walnut", times_short=2),
    Read("users with a rare order, two conditions", "/users?orders.some=(item=Walnut,quantity.gte=1)", times_short=2),
    Read("users with a common order, 1 in 3", "/users?orders.status=NEW", times_short=2),
    Read("search, indexed, a rare word", "/articles?q=walnut", words="walnut", times_bare=2),
    Read("search, indexed, a word of 1 in 10", "/articles?q=lamp", words="lamp", times_bare=2),
    Read("search, indexed, two common words", "/articles?q=lamp+desk", words="lamp desk", times_bare=2),
    Read("search, not indexed", "/notes?q=walnut", bounded=True),
    Read("search, not indexed, one topic", "/notes?q=walnut&topic=rare", times_short=2),
    Read("search, not indexed, as many as may be read", "/memos?q=absent", rows=0, most_seconds=1),
]


def fill(records, numbers):
    """The statements that fill a store; `numbers` makes the rows `i` up to a number."""
    users, step = max(records // ORDERS_OF_A_USER, 1), records // RARE
    rare = f"i % {step} = 0 AND i / {step} <= {RARE}"
    text = (f"'word' || (i % 4999) || ' word' || (i * 7 % 4993) || ' word' || (i * 31 % 4987) || CASE WHEN i % 10 = 0 THEN ' lamp' ELSE '' END"
            f" || CASE WHEN i % 3 = 0 THEN ' desk' ELSE '' END || CASE WHEN {rare} THEN ' walnut' ELSE '' END || ' word' || (i % 977)")
    return [
        "INSERT INTO users (name, email, city) SELECT 'User ' || i, 'user' || i || '@example.com', "
        f"CASE WHEN i % 10 = 0 THEN 'Berlin' ELSE 'City ' || (i % 97) END FROM {numbers(users)}",
        f"INSERT INTO orders (\"userId\", item, quantity, status) SELECT 1 + i % {users}, "
        f"CASE WHEN {rare} THEN 'Walnut' ELSE 'Item ' || (i % 997) END, 1 + i % 9, "
        f"CASE i % 3 WHEN 0 THEN 'NEW' WHEN 1 THEN 'PAID' ELSE 'SENT' END FROM {numbers(records)}",
        f"INSERT INTO articles (title, body) SELECT 'Article ' || i, {text} FROM {numbers(records)}",
        f"INSERT INTO notes (topic, body) SELECT CASE WHEN {rare} THEN 'rare' ELSE 'topic ' || (i % 97) END, {text} "
        f"FROM {numbers(records)}",
        f"INSERT INTO memos (body) SELECT {text} FROM {numbers(min(records, SEARCH_ROWS))}",
    ]


def filled(bench, store, records):
    """Starts a server once, which makes the tables, and fills them while nobody serves them."""
    Server(bench, store).stop()
    if is_postgres(store):
        for statement in fill(records, lambda most: f"generate_series(1, {most}) AS i"):
            run_psql(store, statement)
        run_psql(store, "VACUUM ANALYZE")
        return
    bare = sqlite3.connect(store_file(bench, store))
    for statement in fill(records, lambda most: f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                                                f"WHERE i < {most}) SELECT i FROM n)"):
        bare.execute(statement)
    bare.commit()
    bare.close()


class SizedStore:
    """A store of one size, its server, and the same store without it."""

    def __init__(self, bench, place, postgres, store, records):
        self.records, self.name, self.postgres = records, store_name(store), postgres if is_postgres(store) else None
        self.place = place
        self.server, self.shell = Server(bench, store), Shell(bench, store)
        self.found = {}
        self.scripts = {read.title: self.script(bench, read) for read in READS}

    def script(self, bench, read):
        chance = random.Random(7)
        paths = [self.path(read, chance) for _ in range(REQUESTS)]
        head = "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
        # The load looks for a text only; `look` reads the page.
        name = f"reads-{self.name}-{self.records}-{READS.index(read)}.script"
        return load.write_script(bench.path(name), [("r", (head % path).encode(), "") for path in paths])

    def path(self, read, chance):
        return read.path.format(any=chance.randint(1, self.records // ORDERS_OF_A_USER)) + f"&size={PAGE}"

    def cpu_seconds(self, of):
        return of.cpu_seconds() + (self.postgres.cpu_seconds() if self.postgres else 0)

    def is_refused(self, read):
        return read.bounded and self.records > SEARCH_ROWS

    def look(self, read):
        """Ends the run if the page is not right."""
        path = self.path(read, random)
        status, body = self.server.ask("GET", path)
        is_right = (status == 400 and b"LIMIT_EXCEEDED" in body if self.is_refused(read)
                    else status == 200 and len(json.loads(body)) == read.rows)
        if not is_right:
            sys.exit(f"bench/data: {self.name}, {self.records:,} records: {path}: {status} {body[:500]}")

    def bare_statement(self, read):
        words = read.words.split()
        if not words:
            return f"SELECT id, title, body FROM articles ORDER BY id LIMIT {PAGE};"
        if not self.postgres:
            query = " AND ".join(f'"{word}"*' for word in words)
            return ("SELECT t.id, t.title, t.body FROM trefoil_search_articles AS f JOIN articles AS t ON t.id = f.rowid "
                    f"WHERE trefoil_search_articles MATCH '{query}' ORDER BY f.rowid LIMIT {PAGE};")
        if "indexed" not in self.found:
            [self.found["indexed"]] = self.shell.run(
                "SELECT pg_get_indexdef(indexrelid, 1, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
                "JOIN pg_am a ON a.oid = c.relam WHERE indrelid = 'articles'::regclass AND amname = 'gin';")
        query = " & ".join(f"{word}:*" for word in words)
        return (f"SELECT id, title, body FROM articles WHERE {self.found['indexed']} @@ '{query}'::tsquery "
                f"ORDER BY id LIMIT {PAGE};")

    def loaded(self, read):
        """Microseconds of processor time for a request."""
        self.look(read)
        before = self.cpu_seconds(self.server)
        if self.is_refused(read):
            self.look(read)
            return (self.cpu_seconds(self.server) - before) * 1e6
        seen = load.run(self.place, "requests", self.server.port, CONNECTIONS, ROUND_SECONDS, self.scripts[read.title], self.name)
        return (self.cpu_seconds(self.server) - before) * 1e6 / seen["reads"]

    def bare(self, read):
        """The same for a statement of the store's own program, which is given all of them at once."""
        statement = f"{self.bare_statement(read)}\n"
        began = time.monotonic()
        self.rows(statement, 1)
        times = max(3, min(REQUESTS, int(ROUND_SECONDS / (time.monotonic() - began))))
        before = self.cpu_seconds(self.shell)
        self.rows(statement, times)
        return (self.cpu_seconds(self.shell) - before) * 1e6 / times

    def rows(self, statement, times):
        lines = self.shell.run(statement * times)
        if len(lines) != PAGE * times:
            sys.exit(f"bench/data: {self.name}: {len(lines)} rows: {statement}")

    def measure(self, read):
        self.found.setdefault(read.title, []).append(self.loaded(read))
        if read.words or read is PLAIN:
            self.found.setdefault((read.title, "bare"), []).append(self.bare(read))

    def median(self, key):
        return statistics.median(self.found[key])

    def stop(self):
        self.server.stop()
        self.shell.stop()


def judged(read, short, long):
    """A row of the table, and what is wrong."""
    few, many = short.median(read.title), long.median(read.title)
    cells, verdicts = [f"{few:,.0f}", f"{many:,.0f}", f"{many / few:.2f}", ""], []
    if read.times_short:
        verdicts.append((many <= few * read.times_short, f"at most {read.times_short:g} × {SHORT:,} records"))
    if read.words or read is PLAIN:
        bare = long.median((read.title, "bare"))
        cells[3] = f"{bare:,.0f}"
    if read.words:
        # Told, not judged by: what is left without what the server takes for a page that no words are looked for in.
        own = many - (long.median(PLAIN.title) - long.median((PLAIN.title, "bare")))
        verdicts.append((many <= bare * read.times_bare, f"{many / bare:.2f} × bare ({own / bare:.2f} without the cost "
                         f"of any page), at most {read.times_bare:g}"))
    if read.most_seconds:
        verdicts.append((many <= read.most_seconds * 1e6, f"at most {read.most_seconds:g} s"))
    if read.bounded:
        verdicts.append((True, "refused and told" if long.is_refused(read) else "within limits.search-rows"))
    is_right = all(right for right, _ in verdicts)
    goal = "; ".join(goal for _, goal in verdicts)
    print(f"{read.title + ', ' + long.name:56}" + "".join(f"{cell:>12}" for cell in cells)
          + f"  {goal}: {'reached' if is_right else 'MISSED'}", flush=True)
    return [] if is_right else [f"{read.title}, {long.name}: {goal}"]


def measure(bench, place, postgres):
    """All reads on both databases; returns the goals that are missed."""
    pairs = []
    try:
        for stores in [("short", "long"), (postgres.database(), postgres.database())]:
            pair = []
            pairs.append(pair)
            for store, records in zip(stores, (SHORT, bench.records)):
                filled(bench, store, records)
                pair.append(SizedStore(bench, place, postgres, store, records))
        for _ in range(ROUNDS):
            for read in READS:
                for pair in pairs:
                    for sized in pair:
                        sized.measure(read)
        print(f"\n{'processor time per request, µs':56}{f'{SHORT:,}':>12}{f'{bench.records:,}':>12}{'times':>12}{'bare':>12}  goal")
        missed = [wrong for pair in pairs for read in READS for wrong in judged(read, *pair)]
        for sized in (sized for pair in pairs for sized in pair):
            memory = sized.server.memory()
            print(f"{f'memory of the server, {sized.name}, {sized.records:,} records':56}{memory >> 20:>12,} MiB")
            if memory > MOST_MEMORY:
                missed.append(f"{sized.name}, {sized.records:,} records: more than {MOST_MEMORY >> 20} MiB of memory")
        return missed
    finally:
        for sized in (sized for pair in pairs for sized in pair):
            sized.stop()

"""A record created with ten others inside of it, beside the eleven inserts in one bare transaction: processor time."""
import json
import sqlite3
import statistics
import sys
import time

from stores import Server, Shell, is_postgres, store_file, store_name

LINES, ROUNDS, TIMES = 10, 5, 200
# Of the processor time of the bare transaction.
MOST = 1.5
SCHEMA = """
type Invoice { id: ID! number: String! lines: [Line] }
type Line { id: ID! invoice: Invoice! text: String! quantity: Int! }
type Query { invoices: [Invoice] lines: [Line] }
"""


def create(server, times):
    """By requests, each of which is answered when it is on disk."""
    lines = [{"text": f"Line {number}", "quantity": number} for number in range(LINES)]
    for number in range(times):
        status, body = server.ask("POST", "/invoices?fields=id", json.dumps({"number": f"Invoice {number}", "lines": lines}))
        if status != 201:
            sys.exit(f"bench/data: POST /invoices: {status} {body[:500]}")


class BareSqlite:
    """Python's own SQLite with statements that are kept, on a store that no server has open."""

    def __init__(self, bench, store):
        self.connection = sqlite3.connect(store_file(bench, store), isolation_level=None)
        for pragma in ["journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -16384"]:
            self.connection.execute(f"PRAGMA {pragma}")

    def create(self, times):
        execute = self.connection.execute
        for number in range(times):
            execute("BEGIN IMMEDIATE")
            invoice = execute("INSERT INTO invoices (number) VALUES (?)", (f"Invoice {number}",)).lastrowid
            for line in range(LINES):
                execute('INSERT INTO lines ("invoiceId", text, quantity) VALUES (?, ?, ?)', (invoice, f"Line {line}", line))
            execute("COMMIT")

    def cpu_seconds(self):
        return time.process_time()

    def stop(self):
        self.connection.close()


class BarePostgres(Shell):
    """`psql` with prepared statements."""

    def __init__(self, bench, store):
        super().__init__(bench, store)
        self.run("PREPARE invoice AS INSERT INTO invoices (number) VALUES ($1) RETURNING id;\n"
                 'PREPARE line AS INSERT INTO lines ("invoiceId", text, quantity) VALUES ($1, $2, $3);')

    def create(self, times):
        lines = "".join(f"EXECUTE line(:id, 'Line {line}', {line});\n" for line in range(LINES))
        self.run("".join(f"BEGIN;\nEXECUTE invoice('Invoice {number}') \\gset\n{lines}COMMIT;\n" for number in range(times)))


def measure(bench, postgres):
    """Both databases; returns the goals that are missed."""
    missed = []
    for own, bare in [("created", "inserted"), (postgres.database(), postgres.database())]:
        Server(bench, bare).stop()
        server = Server(bench, own)
        other = (BarePostgres if is_postgres(bare) else BareSqlite)(bench, bare)

        def cost(of, work):
            def clock():
                return of.cpu_seconds() + (postgres.cpu_seconds() if is_postgres(own) else 0)
            before = clock()
            work()
            return (clock() - before) * 1e6 / TIMES

        try:
            # The first round only warms up.
            rounds = [(cost(server, lambda: create(server, TIMES)), cost(other, lambda: other.create(TIMES)))
                      for _ in range(ROUNDS + 1)][1:]
        finally:
            server.stop()
            other.stop()
        ours, floor = (statistics.median(each) for each in zip(*rounds))
        times = statistics.median(ours / floor for ours, floor in rounds)
        title = f"a record with {LINES} others in it, {store_name(own)}"
        print(f"{title:44}{ours:8.0f} µs CPU, bare {floor:8.0f} µs, {times:5.2f} times, at most {MOST}: "
              f"{'reached' if times <= MOST else 'MISSED'}", flush=True)
        if times > MOST:
            missed.append(f"{title}: more than {MOST} times")
    return missed

"""Stores of many records on both databases: filled by Trefoil's commands, served, and asked without Trefoil."""
import filecmp
import glob
import http.client
import os
import shutil
import subprocess
import sys
import time

import process

TREFOIL = os.path.abspath(os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "dist", "trefoil"))
# Of the resident memory of any command and server: they stream, so it does not grow with the store. SQLite's page cache
# is in it.
MOST_MEMORY = 200 << 20


class Postgres:
    """A server by tests/postgres/cluster, which ends with the pipe to it."""

    def __init__(self, folder):
        self.shell = subprocess.Popen(
            ["tests/postgres/cluster"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": folder},
        )
        for setting in ["fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB"]:
            self.tell(f"set {setting}")
        self.tell("start")
        [pid_file] = glob.glob(f"{folder}/pg-*/data/postmaster.pid")
        with open(pid_file) as lines:
            self.pid = int(lines.readline())

    def tell(self, command):
        print(command, file=self.shell.stdin, flush=True)
        said = self.shell.stdout.readline().strip()
        if not said.startswith("ok"):
            sys.exit(f"bench/data: PostgreSQL: {command}: {said}")
        return said[3:]

    def database(self):
        return self.tell("database")

    def cpu_seconds(self):
        """Of all its processes; those that have ended, workers of a statement, are told in ticks."""
        with open(f"/proc/{self.pid}/stat") as stat:
            ended = sum(int(field) for field in stat.read().rsplit(")", 1)[1].split()[13:15])
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as children:
            alive = sum(process.cpu_seconds(int(pid)) for pid in children.read().split())
        return alive + ended / process.TICK


class Bench:
    """A folder with an application, and commands about its stores."""

    def __init__(self, folder, records, schema):
        self.folder, self.records = folder, records
        os.makedirs(self.path("app/graphql"))
        with open(self.path("app/graphql/schema.graphqls"), "w") as file:
            file.write(schema)
        with open(self.path("app/trefoil.toml"), "w") as file:
            file.write('[[list]]\npath = "/items"\n')

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, title, verb, store, *arguments, target=None):
        """A command with its time and the most memory that it had."""
        command = [TREFOIL, verb, *([target] if target else []), "app", *flags(store), *arguments]
        with open(self.path("said"), "w") as said:
            began = time.monotonic()
            child = subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
        took, memory = time.monotonic() - began, usage.ru_maxrss << 10
        # Its own alone: what PostgreSQL does for it is not in it. Busy machines change it little.
        spent = usage.ru_utime + usage.ru_stime
        if status:
            with open(self.path("said")) as said:
                sys.exit(f"bench/data: {title}: {said.read()}")
        if title:
            print(f"{title:34} {took:8.1f} s {self.records / took:10,.0f} records/s {spent:8.1f} s CPU {memory / (1 << 20):7.0f} MiB", flush=True)
        if memory > MOST_MEMORY:
            sys.exit(f"bench/data: {title or verb}: {memory:,} bytes of memory are more than {MOST_MEMORY:,}")

    def same(self, store, title=None):
        """What is in the store is what was in the first one."""
        self.run(title, "export", store, "--to", "again.ndjson")
        if not filecmp.cmp(self.path("first.ndjson"), self.path("again.ndjson"), shallow=False):
            sys.exit(f"bench/data: {store}: its export differs from the first (see {self.folder})")
        os.remove(self.path("again.ndjson"))

    def drop(self, *names):
        for name in names:
            path = self.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


class Server:
    """A server of the store, without kept answers and without a line for each request."""

    def __init__(self, bench, store):
        self.port = process.free_port()
        command = [TREFOIL, "serve", "app", *flags(store), "--port", str(self.port), "--time-zone", "Europe/Berlin",
                   "--limit-answer-cache", "0"]
        with open(bench.path(f"served-{self.port}"), "w") as said:
            self.child = subprocess.Popen(command, cwd=bench.folder, stdout=said, stderr=said,
                                          env={**os.environ, "RUST_LOG": "warn"})
        self.link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        for _ in range(200):
            try:
                self.get("/health/ready")
                return
            except OSError:
                self.link.close()
                time.sleep(0.05)
        sys.exit("bench/data: the server did not start")

    def ask(self, method, path, body=None):
        """The status and the body of the answer."""
        headers = {"accept": "application/json", "host": "localhost"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            self.link.request(method, path, body, headers)
            reply = self.link.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError):
            # It was idle for too long while others were measured.
            self.link.close()
            self.link.request(method, path, body, headers)
            reply = self.link.getresponse()
        return reply.status, reply.read()

    def get(self, path):
        status, body = self.ask("GET", path)
        if status != 200:
            raise OSError(f"{path}: {status} {body[:300]}")
        return body

    def cpu_seconds(self):
        return process.cpu_seconds(self.child.pid)

    def memory(self):
        return int(process.mebibytes(self.child.pid, "VmHWM") * (1 << 20))

    def stop(self):
        self.link.close()
        self.child.terminate()
        self.child.wait()


class Shell:
    """`sqlite3` or `psql` with the store open: what the same costs without Trefoil."""

    def __init__(self, bench, store):
        self.is_postgres = is_postgres(store)
        command = ["psql", store, "-qXAt", "-v", "ON_ERROR_STOP=1"] if self.is_postgres else [
            "sqlite3", "-bail", store_file(bench, store)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      pipesize=1 << 20)
        if not self.is_postgres:
            # As much as the server has for a connection.
            self.run("PRAGMA cache_size = -16384;")

    def run(self, script):
        """What it answers, in lines."""
        mark = "\\echo =" if self.is_postgres else ".print ="
        print(f"{script}\n{mark}", file=self.child.stdin, flush=True)
        lines = []
        for line in self.child.stdout:
            if line == "=\n":
                return lines
            lines.append(line.rstrip("\n"))
        sys.exit(f"bench/data: {self.child.args[0]} refused: {script[:500]}")

    def cpu_seconds(self):
        return process.cpu_seconds(self.child.pid)

    def stop(self):
        self.child.stdin.close()
        self.child.wait()


def is_postgres(store):
    return store.startswith("postgres:")


def store_name(store):
    return "PostgreSQL" if is_postgres(store) else "SQLite"


def flags(store):
    return ["--database", store] if is_postgres(store) else ["--database", "sqlite:", "--data", store]


def store_file(bench, store):
    return bench.path(os.path.join(store, next(name for name in os.listdir(bench.path(store)) if name.endswith(".db"))))


def run_psql(server, sql):
    subprocess.run(["psql", server, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql], check=True)

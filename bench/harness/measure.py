"""One round of load on one server, and rounds that take turns: what was answered, and what it cost."""
import os
import shutil
import statistics
import sys
import time

import load
import process
import workloads
from load import Failed
from servers import Instance
from workloads import CONNECTIONS, THOUSAND


# Seconds of its own processor time after which V8 has made what is hot quick: later rounds cost no less.
COMPILING = 3


class Bench:
    """What all workloads of a run share: the servers that are up, the folder, how long to measure."""

    def __init__(self, options, place, servers, folder):
        self.options, self.place, self.servers, self.folder = options, place, servers, folder
        self.running, self.made, self.answers = {}, 0, {}
        self.busy, self.left_out = [], []

    def instance(self, server, size=THOUSAND, fresh=False):
        """A running server with a store of that size; a fresh one if asked."""
        key = server.name, size
        if fresh and key in self.running:
            self.drop(key)
        if key not in self.running:
            self.running[key] = self.start(server, size)
        return self.running[key]

    def start(self, server, size=THOUSAND):
        self.made += 1
        folder = f"{self.folder}/{self.made}-{server.name}"
        os.mkdir(folder)
        server.prepare(folder, size)
        return Instance(server, folder, size)

    def drop(self, key):
        instance = self.running.pop(key)
        instance.stop()
        shutil.rmtree(instance.folder, ignore_errors=True)

    def stop_all(self):
        for key in list(self.running):
            self.drop(key)

    def record(self, trefoil):
        """Trefoil's answers, for the floors to give back, after a look at whether they are right."""
        self.place.recorded = f"{self.folder}/recorded"
        os.mkdir(self.place.recorded)
        instance = self.start(trefoil)
        speak = trefoil.dialect
        asked = {"hello": speak.hello(), "items": speak.items(), "products": speak.products(),
                 "getUserById": speak.get_one(500), "getAllUsers": speak.get_all(), "createUser": speak.create(500),
                 "change": speak.change("getAllUsers", 500)}
        try:
            for name, (request, expected) in asked.items():
                head, body = process.ask(instance.port, request)
                if expected.encode() not in body:
                    raise Failed(f"Trefoil's answer to {name} is wrong: {(head + body)[:700].decode(errors='replace')}")
                self.answers[name] = body
                with open(f"{self.place.recorded}/{name}.http", "wb") as file:
                    file.write(head + b"\r\n\r\n" + body)
        finally:
            instance.stop()

    def recorded(self, request):
        """What a floor answers to that."""
        named = [name for name in self.answers if name.encode() in request and not request.startswith(b"PATCH")]
        return self.answers[named[0] if named else "change"].decode()

    def script(self, asked, server):
        if server.floor:
            asked = workloads.floor_expects(asked, self.recorded)
        self.made += 1
        return load.write_script(f"{self.folder}/{self.made}.script", asked)

    def load(self, instance, way, path, seconds):
        """What the load saw, with the processor time of the server meanwhile."""
        began, cpu, core = time.perf_counter(), process.cpu_seconds(instance.pid), process.core_seconds()
        seen = load.run(self.place, way, instance.port, CONNECTIONS, seconds, path, instance.server.label)
        seen["cpu"] = process.cpu_seconds(instance.pid) - cpu
        self.busy.append(max(0.0, (process.core_seconds() - core - seen["cpu"]) / (time.perf_counter() - began)))
        return seen


def independent(bench, workload):
    """Closed loop: each connection asks again as soon as it is answered."""
    entries = entries_of(bench, workload)
    scripts = {instance: bench.script(workloads.script(workload.kind, instance.server.dialect, instance.size),
                                      instance.server) for instance in entries}
    acknowledged = {instance: 0 for instance in entries}
    before = {instance: instance.server.stored(instance.folder) for instance in entries} if workload.writes else {}

    def once(instance, seconds):
        seen = bench.load(instance, "requests", scripts[instance], seconds)
        acknowledged[instance] += seen["writes"]
        count = seen["reads"] + seen["writes"]
        return {"cpu": seen["cpu"] * 1e6 / count, "rate": count / seen["seconds"], "p50": seen["p50"],
                "p99": seen["p99"]}

    rows = in_turns(bench, entries, once)
    for instance, stored in before.items():
        if label(instance, workload) in rows:
            rows[label(instance, workload)]["writes"] = counted(instance, stored, acknowledged[instance])
    return rows


def counted(instance, before, acknowledged):
    """Every acknowledged write must be in the store; there are more when the load stopped before an answer came."""
    if before is None:
        return None
    found = instance.server.stored(instance.folder) - before
    if found < acknowledged:
        raise Failed(f"{instance.server.label} acknowledged {acknowledged:,} writes and kept {found:,}")
    return acknowledged


def after_changes(bench, workload):
    """Waves of one write and a read on each connection; what the writes cost by themselves is taken off."""
    entries = entries_of(bench, workload)
    scripts = {}
    for instance in entries:
        writes, reads = workloads.waves(workload.kind, instance.server.dialect)
        scripts[instance] = bench.script(writes + reads, instance.server), bench.script(writes, instance.server)

    def once(instance, seconds):
        both, alone = scripts[instance]
        write = bench.load(instance, "waves", alone, seconds / 3)
        seen = bench.load(instance, "waves", both, seconds)
        cost = (seen["cpu"] - seen["writes"] * write["cpu"] / write["writes"]) / seen["reads"]
        return {"cpu": cost * 1e6, "rate": seen["reads"] / seen["seconds"], "p50": seen["p50"], "p99": seen["p99"],
                "write": write["cpu"] * 1e6 / write["writes"]}

    return in_turns(bench, entries, once)


def entries_of(bench, workload):
    """The servers a workload is run on; one for each size of store where it is about growth."""
    chosen = [server for server in bench.servers if not workload.only or server.name in workload.only]
    sizes = {server: [size for size in workload.sizes if size <= server.largest] for server in chosen}
    if len(workload.sizes) > 1:
        # The peers show where they end up; their cost at a thousand stands in the other tables.
        sizes = {server: found if server.name == "trefoil" else found[-1:] for server, found in sizes.items()}
    return [bench.instance(server, size, fresh=workload.writes) for server in chosen for size in sizes[server]]


def label(instance, workload):
    return f"{instance.server.name} at {instance.size:,}" if len(workload.sizes) > 1 else instance.server.name


def in_turns(bench, entries, once):
    """Warms each up, then A B C A B C: what else the machine does falls on all alike."""
    rounds = {instance: [] for instance in entries}

    def tried(instance, step):
        """A peer that fails is told of and left out from there on; anything else ends the workload."""
        try:
            step()
        except Failed as error:
            if not instance.server.peer:
                raise
            bench.left_out.append(instance.server.name)
            print(f"without {error}", file=sys.stderr)
            del rounds[instance]

    for instance in entries:
        tried(instance, lambda: warm_up(instance, once, bench.options.warm))
    for _ in range(bench.options.rounds):
        for instance in list(rounds):
            tried(instance, lambda: rounds[instance].append(once(instance, bench.options.seconds)))
    several = len({instance.server for instance in entries}) < len(entries)
    rows = {}
    for instance, found in rounds.items():
        name = f"{instance.server.name} at {instance.size:,}" if several else instance.server.name
        rows[name] = {"rounds": found, "rss": process.mebibytes(instance.pid), **medians(found)}
    return rows


def warm_up(instance, once, seconds):
    """What compiles while it runs needs processor time for that, which a busy machine may not give it at once."""
    if not instance.server.compiles:
        once(instance, seconds)
        return
    until = process.cpu_seconds(instance.pid) + COMPILING
    for _ in range(8):
        once(instance, 1)
        if process.cpu_seconds(instance.pid) >= until:
            return


def medians(rounds):
    return {figure: statistics.median(each[figure] for each in rounds) for figure in rounds[0]}


def ratio(rows, figure, top, bottom):
    """Of the medians of ratios within a round where there are rounds: less disturbed than the ratio of medians."""
    if top not in rows or bottom not in rows:
        return None
    pairs = zip(rows[top].get("rounds", [rows[top]]), rows[bottom].get("rounds", [rows[bottom]]))
    return statistics.median(a[figure] / b[figure] for a, b in pairs if b[figure] > 0)

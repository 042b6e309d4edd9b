"""The workloads that are no plain load: fan-out, start, a streamed list, nested selections."""
import json
import socket
import statistics
import subprocess
import time

import process
import workloads
from load import Failed
from measure import entries_of, label, medians
from workloads import SUBSCRIBERS

# Events on their way at any time. With two, servers write both at once, and a delivery costs half a system call.
WINDOW = 1


def fan_out(bench, workload):
    rounds = {}
    for _ in range(min(2, bench.options.rounds)):
        for server in bench.servers:
            if server.name in workload.only:
                rounds.setdefault(server.name, []).append(delivered(bench, server, workload.kind))
    return {name: {"rounds": found, **medians(found)} for name, found in rounds.items()}


def delivered(bench, server, transport):
    """On a server of its own, so that its memory was never used for anything else."""
    instance = bench.start(server)
    try:
        # A first request of each sort, so that what is made once is not counted as a subscriber's.
        for request, _ in (server.dialect.get_one(1), server.dialect.create(1)):
            process.ask(instance.port, request)
        first = crowd(bench, instance, transport)
        # What compiles while it runs is quicker with its second crowd; its memory shows with the first.
        return {**crowd(bench, instance, transport), "kib": first["kib"]} if server.compiles else first
    finally:
        instance.stop()


def crowd(bench, instance, transport):
    """Subscribers come, get events for a while, and go."""
    label, before = instance.server.label, process.mebibytes(instance.pid)
    load = subprocess.Popen(
        [f"{bench.place.rust}/load", "subscribers", str(instance.port), str(SUBSCRIBERS),
         str(bench.options.seconds * 2), transport, str(WINDOW)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if load.stdout.readline() != "subscribed\n":
        raise Failed(f"{label}: {load.communicate()[1].strip()[:700]}")
    memory = process.mebibytes(instance.pid) - before
    cpu = process.cpu_seconds(instance.pid)
    said, wrong = load.communicate("\n")
    if load.returncode != 0:
        raise Failed(f"{label}: {wrong.strip()[:700]}")
    cpu = process.cpu_seconds(instance.pid) - cpu
    seen = json.loads(said)
    if seen["deliveries"] != seen["events"] * SUBSCRIBERS:
        raise Failed(f"{label}: {seen['events']:,} events became {seen['deliveries']:,} deliveries")
    return {"cpu": cpu * 1e6 / seen["deliveries"], "rate": seen["deliveries"] / seen["seconds"], "p50": seen["p50"],
            "p99": seen["p99"], "kib": memory * 1024 / SUBSCRIBERS}


def start(bench, workload):
    rounds = {server.name: [] for server in bench.servers}
    for _ in range(2 * bench.options.rounds - 1):
        for server in bench.servers:
            instance = bench.start(server)
            time.sleep(0.3)
            rounds[server.name].append({"start": instance.started_in * 1000, "rss": process.mebibytes(instance.pid)})
            instance.stop()
    return {name: {"rounds": found, **medians(found)} for name, found in rounds.items() if found}


STREAMS = {
    "GraphQL getAllUsers": lambda: workloads.graphql(workloads.ALL),
    "REST, NDJSON": lambda: workloads.http("GET", "/users", accept="application/x-ndjson"),
}


def stream(bench, workload):
    """How much memory the server takes, at most, to send all of a list."""
    rows = {}
    for instance in entries_of(bench, workload):
        for name, request in STREAMS.items():
            idle = process.mebibytes(instance.pid)
            process.forget_peak(instance.pid)
            cpu, began = process.cpu_seconds(instance.pid), time.perf_counter()
            found, length = read_all(instance.port, request(), b'"email"')
            if found < instance.size:
                raise Failed(f"{name}: {found:,} of {instance.size:,} records came")
            rows[name] = {
                "records": found, "mib": length / (1 << 20), "seconds": time.perf_counter() - began,
                "cpu": (process.cpu_seconds(instance.pid) - cpu) * 1e6 / found, "idle": idle,
                "peak": process.mebibytes(instance.pid, "VmHWM"),
            }
    return rows


def read_all(port, request, mark):
    """How often the mark came, and how many bytes, keeping none of them."""
    found = length = 0
    rest = b""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        while block := connection.recv(1 << 20):
            length += len(block)
            found += (rest + block).count(mark)
            # Too short to hold a mark by itself: what is cut in two is counted once.
            rest = (rest + block)[1 - len(mark):]
    return found, length


def nested(bench, workload):
    """Processor time per thousand parents: the same for many as for few, if a level is not asked for row by row."""
    rows = {}
    for instance in entries_of(bench, workload):
        costs = {}
        for depth, query in workloads.NESTED.items():
            costs[depth] = statistics.median(nested_cost(instance, query) for _ in range(bench.options.rounds))
        name = label(instance, workload)
        rows[name] = {f"level{depth}": cost * 1e6 * 1000 / instance.size for depth, cost in costs.items()}
    return rows


def nested_cost(instance, query):
    """The answers differ in nothing, so they are asked with different names, for none to be kept from the time before."""
    nested_cost.asked += 1
    times = max(1, 20_000 // instance.size)
    cpu = process.cpu_seconds(instance.pid)
    for number in range(times):
        request = workloads.graphql(f"query N{nested_cost.asked}x{number}{query}")
        found, _ = read_all(instance.port, request, b'"name"')
        if found < instance.size:
            raise Failed(f"{found:,} of {instance.size:,} users came for {query}")
    return (process.cpu_seconds(instance.pid) - cpu) / times


nested_cost.asked = 0

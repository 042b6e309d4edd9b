"""Processes as the kernel sees them: started on a core of their own, their processor time, their memory."""
import os
import re
import resource
import socket
import subprocess
import time

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, LOAD_CORE = CORES[0], CORES[-1]
TICK = os.sysconf("SC_CLK_TCK")


def settle():
    """This script and the load share a core that no server runs on; a thousand subscribers need their files."""
    os.sched_setaffinity(0, {LOAD_CORE})
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(command, log, environment=None):
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})},
        preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CORE}),
    )


def cpu_seconds(pid):
    """Of all threads, those that have ended too, in nanoseconds' resolution: the process's own clock."""
    return time.clock_gettime((~pid << 3) | 2)


def core_seconds():
    """How long the servers' core has been busy, whoever kept it so, and how long it was taken from the machine."""
    with open("/proc/stat") as lines:
        [fields] = [line.split()[1:] for line in lines if line.startswith(f"cpu{SERVER_CORE} ")]
    user, nice, system, _, _, interrupts, soft, stolen = map(int, fields[:8])
    return (user + nice + system + interrupts + soft + stolen) / TICK


def mebibytes(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(rf"{field}:\s+(\d+)", status.read())[1]) / 1024


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as control:
        control.write("5")


def ask(port, request, timeout=60):
    """The head as it came, and the body without its framing."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as stream, stream.makefile("rb") as answer:
        stream.sendall(request)
        lines = list(iter(lambda: answer.readline().rstrip(b"\r\n"), b""))
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        if b"content-length" in headers:
            body = answer.read(int(headers[b"content-length"]))
        else:
            body = b"".join(chunks(answer))
        return b"\r\n".join(lines), body


def chunks(answer):
    while length := int(answer.readline() or b"0", 16):
        yield answer.read(length)
        answer.readline()

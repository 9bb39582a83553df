"""Kill workers, nodes and the head of a Ray cluster on this machine at random while photos are released.

    python tests/scale/kill_cluster.py --photos 50000 [--nodes 2] [--each 100] [--heads 2] [--seed 1]

Photos are small (32 × 32 to 64 × 64). One in a hundred is a copy of another, with a release of its own; some
are black, in which nothing is found, and some are no photos. Each run has a cluster of its own: a head and
`nodes` nodes of one core. A worker is killed with SIGKILL after every `each` photos or so, now and then a
whole node, and `heads` times everything, driver and head included; then the same command runs again. At the
end every input must be in exactly one of released, failed and no region, every release must have exactly one
debit, and a run without deaths must draw nothing. What was found is printed as JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from scale_made import PIX, Dark, paid

from dpveil.io import encode
from dpveil.ledger import Ledger, Limit

MARK = "DPVEIL_KILL_CLUSTER"
"""The variable by which this script knows its own processes."""
PATIENCE = 7200


def photos(folder: Path, count: int, seed: int) -> dict[str, str]:
    """Make the photos; return for each name what has to become of it."""
    made: dict[str, str] = {}
    chance = np.random.default_rng(seed)
    first = ""
    for number in range(count):
        path = folder / f"{number % 100:02}" / f"{number:07}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        side = int(chance.integers(32, 65))
        if number % 500 == 7:
            path.write_bytes(encode(np.zeros((side, side, 1), np.uint8), "png"))
            made[str(path)] = "no_region"
        elif number % 500 == 8:
            path.write_bytes(b"no photo %d" % number)
            made[str(path)] = "failed"
        elif number % 100 == 99 and first:
            shutil.copy(first, path)
            made[str(path)] = "released"
        else:
            path.write_bytes(encode(chance.integers(0, 256, (side, side, 1)).astype(np.uint8), "png"))
            first = str(path)
            made[first] = "released"
    return made


def ours(token: str) -> Iterator[tuple[int, str]]:
    """Yield every process that this script's command started, however it is descended, and its name."""
    wanted = f"{MARK}={token}".encode()
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0"):
                    yield int(place.name), (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()


def kill(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        return True
    return False


def memory(process: int) -> float:
    """Return the memory of a process in MB, what it shares divided among those that share it."""
    with suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return int(text.partition("\nPss:")[2].split()[0]) / 1024
    return 0.0


def disturb(
    cluster: Any,
    nodes: list[Any],
    over: threading.Event,
    told: Counter[str],
    ledger: str,
    seed: int,
    each: int,
) -> None:
    """Kill a worker, or a node, after every `each` photos on average; lost nodes are replaced.

    It is at any moment: photos are counted by debits, and then some time passes.
    """
    chance, debits, due = random.Random(seed), Ledger(ledger), 0.0  # noqa: S311
    while not over.wait(2):
        workers = [process for process, name in ours(os.environ[MARK]) if name.startswith("ray::MapWorker")]
        told["most MB of a worker"] = max([told["most MB of a worker"], *(int(memory(p)) for p in workers)])
        entries = int(debits.head().partition(":")[0])
        due = due or entries + 2 * chance.uniform(0, 2 * each)
        if entries < due or over.wait(chance.uniform(0, 0.2)):
            continue
        due = 0.0
        if chance.random() < 0.1:
            cluster.remove_node(nodes.pop(chance.randrange(len(nodes))), allow_graceful=False)
            told["nodes killed"] += 1
            nodes.append(cluster.add_node(num_cpus=1))
        elif workers:
            told["workers killed"] += kill(chance.choice(workers))


def drive(folder: Path, nodes: int, seed: int, each: int) -> None:
    """Run one cluster and one release of everything that is missing; print the report's numbers."""
    import ray
    from ray.cluster_utils import Cluster

    from dpveil.batch import photos_in
    from dpveil.scale import release_files

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    machines = [cluster.add_node(num_cpus=1) for _ in range(nodes)]
    ray.init(address=cluster.address, log_to_driver=False)
    over, told, reports = threading.Event(), Counter[str](), []

    def release() -> None:
        try:
            settings = {"regions": [Dark()], "store": folder / "store", "workers": nodes}
            paying = {"ledger": f"sqlite:///{folder / 'budget.db'}", "subject": "set"}
            reports.append(release_files(photos_in([folder / "in"]), **PIX, **settings, **paying))
        finally:
            over.set()

    began = time.monotonic()
    thread = threading.Thread(target=release)
    thread.start()
    if each:  # in the main thread, as only it may start nodes
        disturb(cluster, machines, over, told, f"sqlite:///{folder / 'budget.db'}", seed, each)
    thread.join()
    [report] = reports
    counts = Counter(entry.status for entry in report.entries)
    seconds = round(time.monotonic() - began, 1)
    outcomes = {str(entry.source): entry.status for entry in report.entries}
    answer = {"seconds": seconds, "stopped": report.stopped, "notes": report.notes, **counts, **told}
    (folder / "answer.json").write_text(json.dumps({"told": answer, "outcomes": outcomes}))
    os._exit(0)  # Ray's own way out takes seconds for every node


def run(folder: Path, nodes: int, seed: int, each: int, until: float | None) -> dict[str, Any]:
    """Run the driver, and kill everything once so many photos were paid for, if given; return its answer."""
    answer, token = folder / "answer.json", secrets.token_hex(8)
    answer.unlink(missing_ok=True)
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, MARK: token, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}
    environment.setdefault("RAY_worker_niceness", "0")  # else others on this machine go before
    command = [sys.executable, __file__, "--drive", str(folder), "--nodes", str(nodes), "--seed", str(seed)]
    with (folder / "driver.log").open("ab") as log:
        driver = subprocess.Popen([*command, "--each", str(each)], env=environment, stdout=log, stderr=log)
    began, killed = time.monotonic(), False
    try:
        with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
            while driver.poll() is None and time.monotonic() - began < PATIENCE:
                killed = until is not None and int(ledger.head().partition(":")[0]) > 2 * until
                if killed:
                    break
                time.sleep(2)
    finally:
        while left := [process for process, _ in ours(token)]:
            for process in left:
                kill(process)
            time.sleep(0.2)
        driver.wait()
    if answer.exists():
        return dict(json.loads(answer.read_text()))
    if not killed:
        raise RuntimeError(f"the driver ended by itself: see {folder / 'driver.log'}")
    return {"told": {"head killed": 1}}


def check(folder: Path, wanted: dict[str, str], seen: list[dict[str, Any]], nodes: int) -> dict[str, Any]:
    """Compare inputs, store and ledger after all runs; return the numbers, or end with what is wrong."""
    last, findings = seen[-1]["outcomes"], []
    for path, status in wanted.items():
        expected = {"released", "skipped"} if status == "released" else {status}
        if last.get(path) not in expected:
            findings.append(f"{path} is {last.get(path)}")
    if set(last) != set(wanted):
        findings.append("the report does not have every input once")
    files = sorted((folder / "store" / "releases").rglob("*.png"))
    hashes = Counter(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
    photos_ = list(wanted.values()).count("released")
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        ledger.check()
        debits, lost = paid(ledger)
        stored = Counter(entry.event.sha256 for entry in ledger.history() if entry.kind == "stored")
    if hashes != stored:
        findings.append(f"{sum((hashes - stored).values())} unpaid, {sum((stored - hashes).values())} lost")
    if len(files) != photos_:
        findings.append(f"{len(files)} releases of {photos_} photos")
    told = [each["told"] for each in seen]
    total = Counter(
        {
            name: sum(each.get(name, 0) for each in told)
            for name in ("workers killed", "nodes killed", "head killed")
        }
    )
    most = total["workers killed"] + total["nodes killed"] + nodes * total["head killed"]
    if lost > most:
        findings.append(f"{lost} debits without a release after {most} deaths of workers")
    return {
        "inputs": len(wanted),
        "photos": photos_,
        "releases": len(files),
        "debits": debits,
        "debits without a release": lost,
        **total,
        "runs": told,
        "findings": findings[:20],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--heads", type=int, default=2, help="how often everything is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="an empty folder that stays")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--each", type=int, default=100, help="after how many photos a worker is killed")
    given = parser.parse_args()
    if given.drive:
        drive(given.drive, given.nodes, given.seed, given.each)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="dpveil-cluster-"))
    folder.mkdir(exist_ok=True)
    wanted = photos(folder / "in", given.photos, given.seed)
    with Ledger(f"sqlite:///{folder / 'budget.db'}", create=True) as ledger:
        ledger.set_limit("set", Limit("pure", epsilon=10 * given.photos))
    chance, seen = random.Random(given.seed), []  # noqa: S311
    while not seen or seen[-1]["told"].get("head killed") or seen[-1]["told"].get("untried"):
        heads = sum(each["told"].get("head killed", 0) for each in seen)
        part = given.photos / (given.heads + 1)
        until = (heads + chance.random()) * part if heads < given.heads else None
        seen.append(run(folder, given.nodes, given.seed + len(seen), given.each, until))
        print(json.dumps(seen[-1]["told"]), file=sys.stderr, flush=True)
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        before = paid(ledger)
    seen.append(run(folder, given.nodes, 0, 0, None))
    found = check(folder, wanted, seen, given.nodes)
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        if paid(ledger) != before:
            found["findings"].append("a run with nothing to do drew something")
    print(json.dumps(found, indent=1))
    if not given.folder:
        shutil.rmtree(folder)
    return int(bool(found["findings"]))


if __name__ == "__main__":
    sys.exit(main())

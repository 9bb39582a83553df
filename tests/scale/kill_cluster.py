"""Kill workers, nodes and the head of a Ray cluster on this machine at random while photos are released.

    python tests/scale/kill_cluster.py --photos 50000 [--nodes 2] [--each 100] [--heads 2] [--keep]

Photos are small (32 × 32 to 64 × 64). One in a hundred is a copy of another, with a release of its own; some
are black, in which nothing is found, and some are no photos. Each run has a cluster of its own: a head and
`nodes` nodes of one core. A worker is killed with SIGKILL after every `each` photos or so, now and then a
whole node, and `heads` times everything, driver and head included; then the same command runs again. At the
end every input must be in exactly one of released, failed and no region, every release must have exactly one
debit, and a run without deaths must draw nothing. What was found is printed as JSON; with --keep, the numbers
are kept in benchmarks/results/scale_kills.json, where docs/scale.md has them from.
"""

from __future__ import annotations

import argparse
import itertools
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
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))
from kill_checks import check, keep
from scale_made import PIX, Dark, paid

from dpveil.io import encode
from dpveil.ledger import Ledger, Limit
from processes import MARK, is_worker, nodes, note_memory, ours

PATIENCE = 7200
AGAIN = ("everything killed", "untried", "unstarted")
"""What tells that another run is needed."""
MOST_RUNS = 30
UNSTARTED = 75
"""The exit code of a driver whose cluster did not start."""


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


def kill(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        return True
    return False


def disturb(
    cluster: Any,
    machines: list[Any],
    over: threading.Event,
    told: Counter[str],
    folder: Path,
    seed: int,
    each: int,
) -> None:
    """Kill a worker, or a node, after every `each` photos on average; lost nodes are replaced.

    It is at any moment: photos are counted by debits, and then some time passes.
    """
    chance, debits, due = random.Random(seed), Ledger(budget(folder)), 0.0  # noqa: S311
    for number in itertools.count():
        (folder / "told.json").write_text(json.dumps(told))  # this process may be killed, too
        if over.wait(2):
            break
        workers = [process for process, name in ours(os.environ[MARK]) if is_worker(name)]
        if number % 5 == 0:
            note_memory(os.environ[MARK], told)
        entries = int(debits.head().partition(":")[0])
        due = due or entries + 2 * chance.uniform(0, 2 * each)
        if entries < due or over.wait(chance.uniform(0, 0.2)):
            continue
        due = 0.0
        if chance.random() < 0.1:
            lost = machines.pop(chance.randrange(len(machines)))
            for process in nodes(os.environ[MARK]).get(lost.all_processes["raylet"][0].process.pid, ()):
                kill(process)
            cluster.remove_node(lost, allow_graceful=False)
            told["nodes killed"] += 1
            machines.append(added(cluster))
        elif workers:
            told["workers killed"] += kill(chance.choice(workers))


def added(cluster: Any) -> Any:
    """Add a node and return it; Ray gives up one that takes 30 s to start, as on a busy machine."""
    for _ in range(5):
        with suppress(Exception):
            return cluster.add_node(num_cpus=1)
    return cluster.add_node(num_cpus=1)


def drive(folder: Path, count: int, seed: int, each: int) -> None:
    """Run one cluster and one release of everything that is missing; print the report's numbers."""
    import ray
    from ray.cluster_utils import Cluster

    from dpveil.batch.tasks import photos_in
    from dpveil.scale import release_files

    head = {"num_cpus": 0, "include_dashboard": False}
    try:
        cluster = Cluster(initialize_head=True, head_node_args=head)
        machines = [added(cluster) for _ in range(count)]
        ray.init(address=cluster.address, log_to_driver=False)
    except Exception as error:  # noqa: BLE001  Ray raises this class itself
        print(error, file=sys.stderr, flush=True)
        os._exit(UNSTARTED)
    over, told, reports = threading.Event(), Counter[str](), []

    def release() -> None:
        try:
            settings = {"regions": [Dark()], "store": folder / "store", "workers": count}
            paying = {"ledger": budget(folder), "subject": "set"}
            reports.append(release_files(photos_in([folder / "in"]), **PIX, **settings, **paying))
        finally:
            over.set()

    began = time.monotonic()
    thread = threading.Thread(target=release)
    thread.start()
    if each:  # in the main thread, as only it may start nodes
        disturb(cluster, machines, over, told, folder, seed, each)
    thread.join()
    [report] = reports
    counts = Counter(entry.status for entry in report.entries)
    seconds = round(time.monotonic() - began, 1)
    outcomes = {str(entry.source): entry.status for entry in report.entries}
    answer = {"seconds": seconds, "stopped": report.stopped, "notes": report.notes, **counts, **told}
    kept = {"told": answer, "outcomes": outcomes, "entries": len(report.entries)}
    (folder / "answer.json").write_text(json.dumps(kept))
    os._exit(0)  # Ray's own way out takes seconds for every node


def run(folder: Path, count: int, seed: int, each: int, until: float | None) -> dict[str, Any]:
    """Run the driver, and kill everything once so many photos were paid for, if given; return its answer."""
    answer, token = folder / "answer.json", secrets.token_hex(8)
    answer.unlink(missing_ok=True)
    (folder / "told.json").unlink(missing_ok=True)
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, MARK: token, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}
    environment.setdefault("RAY_worker_niceness", "0")  # else others on this machine go before
    command = [sys.executable, __file__, "--drive", str(folder), "--nodes", str(count), "--seed", str(seed)]
    with (folder / "driver.log").open("ab") as log:
        driver = subprocess.Popen([*command, "--each", str(each)], env=environment, stdout=log, stderr=log)
    began, killed = time.monotonic(), False
    try:
        with Ledger(budget(folder)) as ledger:
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
    if driver.returncode == UNSTARTED:
        return {"told": {"unstarted": 1, "seconds": round(time.monotonic() - began, 1)}}
    if not killed:
        raise RuntimeError(f"the driver ended by itself: see {folder / 'driver.log'}")
    seconds = round(time.monotonic() - began, 1)
    return {"told": {**parsed(folder / "told.json"), "everything killed": 1, "seconds": seconds}}


def parsed(path: Path) -> dict[str, int]:
    """Return what a driver told last; it may have been killed while it wrote."""
    with suppress(OSError, ValueError):
        return dict(json.loads(path.read_text()))
    return {}


def budget(folder: Path) -> str:
    """Return the URL of the ledger."""
    return f"sqlite:///{folder / 'budget.db'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--heads", type=int, default=2, help="how often everything is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="an empty folder that stays")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--each", type=int, default=100, help="after how many photos a worker is killed")
    parser.add_argument("--keep", action="store_true", help="keep the numbers among the benchmarks' results")
    given = parser.parse_args()
    if given.drive:
        drive(given.drive, given.nodes, given.seed, given.each)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="dpveil-cluster-"))
    folder.mkdir(exist_ok=True)
    wanted = photos(folder / "in", given.photos, given.seed)
    with Ledger(budget(folder), create=True) as ledger:
        ledger.set_limit("set", Limit("pure", epsilon=10 * given.photos))
    chance, seen = random.Random(given.seed), []  # noqa: S311
    while len(seen) < MOST_RUNS and (not seen or any(seen[-1]["told"].get(name) for name in AGAIN)):
        heads = sum(each["told"].get("everything killed", 0) for each in seen)
        part = given.photos / (given.heads + 1)
        until = (heads + chance.random()) * part if heads < given.heads else None
        seen.append(run(folder, given.nodes, given.seed + len(seen), given.each, until))
        print(json.dumps(seen[-1]["told"]), file=sys.stderr, flush=True)
    with Ledger(budget(folder)) as ledger:
        before = paid(ledger)
    seen.append(run(folder, given.nodes, 0, 0, None))
    found = check(folder, wanted, seen, given.nodes)
    with Ledger(budget(folder)) as ledger:
        if paid(ledger) != before:
            found["findings"].append("a run with nothing to do drew something")
    print(json.dumps({**found, "told": [each["told"] for each in seen]}, indent=1))
    if not given.folder:
        shutil.rmtree(folder)
    if given.keep and not found["findings"]:
        keep(found)
    return int(bool(found["findings"]))


if __name__ == "__main__":
    sys.exit(main())

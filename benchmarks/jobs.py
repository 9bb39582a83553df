"""`obfuscate --jobs 2` on two cores beside one process on one core, over the same 1280 × 720 photos, in turn.

Every run is a process of its own, bound to its cores. It releases a short list and a long one: their
difference is the time of a photo after the start, that of processes and networks included in the start. The
processor time is that of all processes. A third row lets one process, with its threads, have both cores.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dpveil.batch import Choices, Task, release_all
from dpveil.catalogue import build
from dpveil.core.numbers import keep_freed
from dpveil.regions import parse
from folder_photos import make
from timing import load, report

METHODS = {
    "dp-pix": {"epsilon": 5, "block": 16, "neighbourhood": 256},
    "dp-samp": {"epsilon": 20, "clusters": 8, "neighbourhood": 64},
    "gallery": {"epsilon": 4},
    "attributes": {},
}
RUNS = {"1 core, 1 job": (1, 1), "2 cores, 2 jobs": (2, 2), "2 cores, 1 job": (2, 1)}
ROUNDS = 3
SHORT, LONG = 3, {"dp-pix": 43, "dp-samp": 13, "gallery": 6, "attributes": 6}
"""How often the photos are released; the short list is long enough for all that is loaded on demand."""


def released(photos: list[Path], out: Path, method: str, jobs: int, times: int) -> tuple[float, float]:
    """Return the seconds, and processor seconds, of releasing the photos so many times."""
    made = build(method, METHODS[method])
    chosen = Choices(method=made, regions=made.accepts([parse(made.regions)]), if_none="whole")
    tasks = [Task(p, out / f"{turn}-{p.stem}.png", p.name) for turn in range(times) for p in photos]
    start, spent = time.perf_counter(), _processor()
    done = release_all(tasks, chosen, jobs=jobs)
    if len(done.released) != len(tasks):
        raise RuntimeError(f"not all were released: {done.failed or done.no_region or done.stopped}")
    return time.perf_counter() - start, _processor() - spent


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def child(folder: str, method: str, cores: str, jobs: str) -> None:
    """Print the seconds of the short list, and of the long one, on so many cores."""
    keep_freed()  # as the command does
    os.sched_setaffinity(0, {*sorted(os.sched_getaffinity(0))[: int(cores)]})
    photos = sorted(Path(folder).iterdir())
    answer = []
    for times in (SHORT, LONG[method]):
        with tempfile.TemporaryDirectory() as out:
            answer.append(released(photos, Path(out), method, int(jobs), times))
    print(json.dumps(answer))


def rows(folder: Path, count: int) -> list[dict[str, object]]:
    """Return a row for each method and kind of run."""
    found = []
    for method in METHODS:
        photos = count * (LONG[method] - SHORT)
        each: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RUNS}
        for _ in range(ROUNDS):
            for name, (cores, jobs) in RUNS.items():
                call = (sys.executable, __file__, str(folder), method, str(cores), str(jobs))
                said = subprocess.run(call, capture_output=True, text=True, check=True).stdout
                (short, busy), (long, busier) = json.loads(said)
                each[name].append(((long - short) / photos, (busier - busy) / photos, short))
        middle = {
            name: [statistics.median(values) for values in zip(*runs, strict=True)]
            for name, runs in each.items()
        }
        one = middle[next(iter(RUNS))][0]
        found += [
            {
                "method": method,
                "run": name,
                "photos/s after the start": round(1 / seconds, 2),
                "times one": round(one / seconds, 2),
                "processor ms/photo": round(1000 * busy, 1),
                f"start + {count * SHORT} photos, s": round(short, 2),
                "load": load(),
            }
            for name, (seconds, busy, short) in middle.items()
        ]
    return found


def main() -> None:
    """Print and save the table."""
    with tempfile.TemporaryDirectory() as temporary:
        photos = Path(temporary) / "photos"
        report("jobs", rows(photos, len(make(photos))))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*sys.argv[1:])
    else:
        main()

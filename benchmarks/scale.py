"""Releases by Ray beside `--jobs`, of tiny photos and of photos that take 100 ms, by number of workers.

    python benchmarks/scale.py [--tiny 960] [--large 48] [--rounds 3] [--ways "--jobs 1" "Ray, 1 worker" ...]

Needs the extra `scale`, which no other benchmark does; without it, nothing is measured. Tiny photos have
64 × 64 grey levels, and large ones are JPEGs of 2560 × 1920 in colour. Rounds alternate between the ways;
medians are kept. The start of processes and their end are outside: what is measured is from when two
tenths of the photos are done until nine tenths are, both at the end of a part that Ray gives out. Processor
time is that of workers, or of `--jobs` as a whole; overhead compares these. What the driver and Ray's own
processes take beside is told as a share of a core: they take it whether photos are released or not, so on a
busy machine it is a larger part of an image than on an idle one. Three workers are one more than this machine
has cores.
"""

from __future__ import annotations

import argparse
import math
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, photos_in, plan_tasks
from dpveil.catalogue import build
from dpveil.io import encode
from dpveil.regions import parse
from dpveil.scale.files import BATCH, PARTS_EACH
from processes import MARK, Watch
from timing import generator, load, load_note, report

Row = dict[str, object]
METHOD = {"epsilon": 1, "block": 8}
TINY, LARGE = "64 × 64", "2560 × 1920"
WAYS = ("--jobs 1", "Ray, 1 worker", "--jobs 2", "Ray, 2 workers", "Ray, 3 workers")
"""How photos are released; one of Ray is compared with as many `--jobs`."""


def photos(folder: Path, kind: str, count: int) -> None:
    """Make photos; the large ones are one under many names, as each is read anew."""
    chance = generator()
    folder.mkdir(parents=True)
    made = [folder / f"{number:06}.{'png' if kind == TINY else 'jpg'}" for number in range(count)]
    if kind == LARGE:
        soft = cv2.resize(chance.integers(0, 256, (50, 60, 3)).astype(np.float32), (2560, 1920))
        levels = (soft + chance.normal(0, 4, soft.shape)).clip(0, 255).astype(np.uint8)
        one = cv2.imencode(".jpg", levels)[1].tobytes()
    for path in made:
        levels = chance.integers(0, 256, (64, 64, 1)).astype(np.uint8) if kind == TINY else None
        path.write_bytes(one if levels is None else encode(levels, "png"))


def by_jobs(folder: Path, out: Path, count: int, step: Callable[[], None]) -> int:
    choices = RunSettings(method=build("dp-pix", METHOD), regions=[parse("whole")])
    return len(release_all(plan_tasks([folder], out), choices, jobs=count, step=step).released)


def by_ray(folder: Path, out: Path, count: int, step: Callable[[], None]) -> int:
    from dpveil.scale import release_files

    settings = {**METHOD, "regions": "whole", "store": out, "workers": count}
    return len(release_files(photos_in([folder]), "dp-pix", step=step, **settings).released)


class Middle:
    """Seconds and processor seconds of a photo, from one end of a part to another."""

    def __init__(self, watch: Watch, count: int, workers: int) -> None:
        part = max(1, min(BATCH, count // (PARTS_EACH * workers)))
        self._ends = [part * math.ceil(count * share / part) for share in (0.2, 0.9)]
        self._watch, self._done, self._seen = watch, 0, list[Any]()

    def step(self) -> None:
        self._done += 1
        if self._done in self._ends:
            self._seen.append(np.array([time.perf_counter(), *self._watch.seconds()]))

    def milliseconds(self) -> Any:
        first, last = self._seen
        return (last - first) / (self._ends[1] - self._ends[0]) * 1000


def over(busy: Any, beside: list[Any] | None) -> float | str:
    """Return by how many per cent something is above `--jobs` of the same round; the median of all rounds."""
    if beside is None:
        return ""
    return round(float(np.median([100 * (a / b[2] - 1) for a, b in zip(busy, beside, strict=True)])), 1)


def measured(folder: Path, kind: str, count: int, given: argparse.Namespace, watch: Watch) -> list[Row]:
    """Return a row for each way."""
    spent, most = defaultdict[str, list[Any]](list), Counter[str]()
    photos(folder / "in", kind, count)
    for number in range(given.rounds):
        for way in given.ways:
            how, workers = (by_jobs if way.startswith("--jobs") else by_ray), int(way.split()[1])
            watch.most, middle = Counter(), Middle(watch, count, workers)
            if how(folder / "in", folder / f"{number}-{way}", workers, middle.step) != count:
                raise RuntimeError(f"{way} did not release all of {count} photos")
            spent[way].append(middle.milliseconds())
            most[way] = max(most[way], watch.most["MB of a worker"])
            print(kind, way, spent[way][-1], load(), file=sys.stderr, flush=True)
    rows = []
    for way, told in spent.items():
        wall, workers, others = np.median(told, axis=0)
        beside, by = spent.get(f"--jobs {way.split()[1]}"), way.startswith("Ray")
        rows.append(
            {
                "photos": f"{kind}, {count}",
                "way": way,
                "ms an image": round(float(wall), 2),
                "images a second": round(float(1000 / wall), 1),
                "processor ms an image": round(float(workers if by else others), 2),
                "overhead, %": over([each[1] for each in told], beside) if by else "",
                "with all of Ray, %": over([each[1] + each[2] for each in told], beside) if by else "",
                "% of a core beside": round(float(100 * others / wall)) if by else "",
                "MB of a worker": most[way] if by else "",
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", type=int, default=960)
    parser.add_argument("--large", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--trial", action="store_true", help="keep nothing")
    given = parser.parse_args()
    try:
        import ray
    except ImportError:
        print("Ray is not installed: pip install 'dpveil[scale]'", file=sys.stderr)
        return 0
    if MARK not in os.environ:  # from its beginning, a process has the mark, or not
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        settings = {MARK: secrets.token_hex(8), "RAY_worker_niceness": "0", **dict.fromkeys(names, "1")}
        return subprocess.run(
            [sys.executable, *sys.argv], env={**os.environ, **settings}, check=False
        ).returncode
    workers = max(int(way.split()[1]) for way in WAYS)
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    rows, watch = list[Row](), Watch()
    with tempfile.TemporaryDirectory() as folder:
        for kind, count in ((LARGE, given.large), (TINY, given.tiny)):
            if count:
                rows += measured(Path(folder) / kind.replace(" ", ""), kind, count, given, watch)
    print(*rows, sep="\n") if given.trial else report("scale", rows, notes=(load_note(),))
    return 0


if __name__ == "__main__":
    sys.exit(main())

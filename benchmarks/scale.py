"""Releases by Ray beside `--jobs`, of tiny photos and of photos that take 100 ms or more, by number of workers.

    python benchmarks/scale.py [--tiny 2000] [--large 120] [--rounds 3]

Needs the extra `scale`, which no other benchmark does; without it, nothing is measured. Tiny photos have
64 × 64 grey levels, and large ones are JPEGs of 2560 × 1920 in colour. Rounds alternate between the ways. The
start of processes is outside: a short list is released first, and what it took is subtracted. Processor time
is that of all processes, those of Ray included; overhead compares it with as many `--jobs`. Three workers are
one more than this machine has cores.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
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

from dpveil.batch import Choices, photos_in, plan_tasks, release_all
from dpveil.catalogue import build
from dpveil.io import encode
from dpveil.regions import parse
from processes import MARK, Watch
from timing import generator, load_note, report

METHOD = {"epsilon": 1, "block": 8}
TINY, LARGE = "64 × 64", "2560 × 1920"
SHORT = {TINY: 64, LARGE: 16}
WAYS = ("--jobs 1", "Ray, 1 worker", "--jobs 2", "Ray, 2 workers", "Ray, 3 workers")
"""How photos are released; one of Ray is compared with the one of `--jobs` before it."""


def photos(folder: Path, kind: str, count: int) -> list[Path]:
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
    return made


def by_jobs(paths: list[Path], out: Path, count: int) -> int:
    choices = Choices(method=build("dp-pix", METHOD), regions=[parse("whole")])
    return len(release_all(plan_tasks([paths[0].parent], out), choices, jobs=count).released)


def by_ray(paths: list[Path], out: Path, count: int) -> int:
    from dpveil.scale import release_files

    found = photos_in([paths[0].parent])
    return len(release_files(found, "dp-pix", **METHOD, regions="whole", store=out, workers=count).released)


def measured(folder: Path, kind: str, count: int, rounds: int) -> list[dict[str, object]]:
    """Return a row for each way."""
    spent, most, watch = defaultdict[str, list[Any]](list), Counter[str](), Watch()
    lists = [photos(folder / f"{n}", kind, n) for n in (SHORT[kind], SHORT[kind] + count)]
    for number in range(rounds):
        for way in WAYS:
            words = way.split()
            call: Callable[[list[Path], Path, int], int] = by_jobs if words[0] == "--jobs" else by_ray
            took, watch.most = [], Counter()
            for paths in lists:
                began = np.array([time.perf_counter(), watch.seconds()])
                if call(paths, folder / f"out-{number}-{way}-{len(paths)}", int(words[1])) != len(paths):
                    raise RuntimeError(f"{way} did not release all of {len(paths)} photos")
                took.append(np.array([time.perf_counter(), watch.seconds()]) - began)
            spent[way].append((took[1] - took[0]) / count * 1000)
            most[way] = max(most[way], watch.most["MB of a worker"])
    middle = {way: [statistics.median(each) for each in zip(*told, strict=True)] for way, told in spent.items()}
    rows, beside = [], 0.0
    for way, (wall, busy) in middle.items():
        beside = busy if way.startswith("--jobs") else beside
        over = "" if way.startswith("--jobs") else round(100 * (busy / beside - 1), 1)
        rows.append(
            {
                "photos": f"{kind}, {count}",
                "way": way,
                "ms an image": round(wall, 2),
                "images a second": round(1000 / wall, 1),
                "processor ms an image": round(busy, 2),
                "overhead, %": over,
                "MB of a worker": most[way] or "",
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", type=int, default=2000)
    parser.add_argument("--large", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        import ray
    except ImportError:
        print("Ray is not installed: pip install 'dpveil[scale]'", file=sys.stderr)
        return 0
    if MARK not in os.environ:  # from its beginning, a process has the mark, or not
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        settings = {MARK: secrets.token_hex(8), "RAY_worker_niceness": "0", **dict.fromkeys(names, "1")}
        return subprocess.run([sys.executable, *sys.argv], env={**os.environ, **settings}, check=False).returncode
    workers = max(int(way.split()[1]) for way in WAYS if way.startswith("Ray"))
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        by_ray(photos(Path(folder) / "first", TINY, 64), Path(folder) / "first-out", workers)
        for kind, count in ((TINY, given.tiny), (LARGE, given.large)):
            rows += measured(Path(folder) / kind.replace(" ", ""), kind, count, given.rounds)
    report("scale", rows, notes=(load_note(),))
    return 0


if __name__ == "__main__":
    sys.exit(main())

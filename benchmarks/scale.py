"""Releases by Ray beside a plain loop over the same small photos: time of an image, by number of workers.

    python benchmarks/scale.py [--photos 2000] [--rounds 3]

Needs the extra `scale`, which no other benchmark does; without it, nothing is measured. Rounds alternate
between a loop over `Releaser.release` in this process, and Ray with one worker, two, and so on.
The start of Ray, and of its workers, is outside: a short list is released first, and its time subtracted.
What Ray's own processes take meanwhile counts as processor time.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np

from dpveil.datasets import Releaser
from dpveil.io import encode
from timing import load_note, report

METHOD = {"method": "dp-pix", "epsilon": 1, "block": 8}
SHORT = 64
ME, TOKEN = str(os.getpid()), secrets.token_hex(16).encode()
"""This process, and what is in the environment of all that it starts."""


def photos(folder: Path, count: int, seed: int) -> list[Path]:
    """Make photos of 64 × 64 grey levels."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    made = []
    for number in range(count):
        made.append(folder / f"{number:06}.png")
        made[-1].write_bytes(encode(chance.integers(0, 256, (64, 64, 1)).astype(np.uint8), "png"))
    return made


def processor() -> float:
    """Return the processor seconds of this process and of Ray's that it started, ended ones included."""
    ticks = 0
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            if place.name.isdecimal() and (place.name == ME or TOKEN in (place / "environ").read_bytes()):
                ticks += sum(map(int, (place / "stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def loop(paths: list[Path], store: Path) -> None:
    releaser = Releaser.of(**METHOD, cache=store)
    for path in paths:
        releaser.release(path)


def by_ray(paths: list[Path], store: Path, workers: int) -> None:
    from dpveil.scale import release_files

    done = release_files(paths, **METHOD, store=store, workers=workers)
    if len(done.released) != len(paths):
        raise RuntimeError(f"not all were released: {done.stopped} {done.notes}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        import ray
    except ImportError:
        print("Ray is not installed: pip install 'dpveil[scale]'", file=sys.stderr)
        return 0
    cores = len(os.sched_getaffinity(0))
    os.environ["DPVEIL_BENCHMARK"] = TOKEN.decode()
    ray.init(address="local", num_cpus=cores, include_dashboard=False, log_to_driver=False)
    took: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        few, many = (photos(Path(folder) / str(n), n, n) for n in (SHORT, SHORT + given.photos))
        by_ray(few, Path(folder) / "first", cores)
        for number in range(given.rounds):
            for workers in range(cores + 1):
                spent = []
                for name, paths in (("few", few), ("many", many)):
                    store = Path(folder) / f"{number}-{workers}-{name}"
                    began, busy = time.perf_counter(), processor()
                    loop(paths, store) if not workers else by_ray(paths, store, workers)
                    spent.append((time.perf_counter() - began, processor() - busy))
                each = tuple((b - a) / given.photos * 1000 for a, b in zip(*spent, strict=True))
                took["a loop" if not workers else f"Ray, {workers} workers"].append(each)
    rows = []
    for name, values in took.items():
        wall, busy = (statistics.median(column) for column in zip(*values, strict=True))
        rows.append({"how": name, "ms an image": round(wall, 2), "processor ms an image": round(busy, 2)})
    report("scale", rows, notes=(load_note(),))
    return 0


if __name__ == "__main__":
    sys.exit(main())

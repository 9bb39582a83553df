"""Releases by Ray beside a plain loop over the same small photos: time of an image, by number of workers.

    python benchmarks/scale.py [--photos 2000] [--rounds 3]

Needs the extra `scale`, which no other benchmark does; without it, nothing is measured. Rounds alternate
between a loop over `Releaser.release` in this process, and Ray with one worker, two, and so on.
The start of Ray, and of its workers, is outside: a short list is released first, and its time subtracted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from dpveil.datasets import Releaser
from dpveil.io import encode
from timing import load_note, report

METHOD = {"method": "dp-pix", "epsilon": 1, "block": 8}
SHORT = 64


def photos(folder: Path, count: int, seed: int) -> list[Path]:
    """Make photos of 64 × 64 grey levels."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    made = []
    for number in range(count):
        made.append(folder / f"{number:06}.png")
        made[-1].write_bytes(encode(chance.integers(0, 256, (64, 64, 1)).astype(np.uint8), "png"))
    return made


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
    ray.init(address="local", num_cpus=cores, include_dashboard=False, log_to_driver=False)
    took: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        few, many = (photos(Path(folder) / str(n), n, n) for n in (SHORT, SHORT + given.photos))
        by_ray(few, Path(folder) / "first", cores)
        for number in range(given.rounds):
            for workers in range(cores + 1):
                spent = []
                for name, paths in (("few", few), ("many", many)):
                    store = Path(folder) / f"{number}-{workers}-{name}"
                    began = time.perf_counter()
                    loop(paths, store) if not workers else by_ray(paths, store, workers)
                    spent.append(time.perf_counter() - began)
                each = (spent[1] - spent[0]) / given.photos * 1000
                took["a loop" if not workers else f"Ray, {workers} workers"].append(each)
    rows = [{"how": name, "ms an image": round(statistics.median(each), 2)} for name, each in took.items()]
    report("scale", rows, notes=(load_note(),))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A folder run against detection alone: the time of each stage for 1280 × 720 photos with faces.

In every round all take turns over the same photos: each stage alone, photo by photo; detection alone, with
OpenCV on all cores, of decoded photos in memory; and the run itself, from reading to writing, which reads and
detects ahead. The run covers every photo `REPEATS` times, so that start and end matter little.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from dpveil import read
from dpveil.batch import Choices, Task, release_all
from dpveil.io import encode, write_together
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SecureBits
from dpveil.regions import Faces
from dpveil.release.pipeline import obfuscate
from folder_photos import make
from timing import load, report

METHOD = {"epsilon": 5, "block": 16, "neighbourhood": 256}
ROUNDS, REPEATS = 3, 4
ALONE, BOTH, RUN = "detection alone", "decode + detection", "the run, read to written"


def stages(photos: list[Path], out: Path) -> list[dict[str, object]]:
    """Return the time of each stage per photo, relative to detection alone."""
    method, finder = DPPix(**METHOD), Faces(detector="centerface")
    choices = Choices(method=method, regions=[finder], force=True)
    decoded = [read(path) for path in photos]
    tasks = [Task(p, out / f"{r}-{p.stem}.png", p.name) for r in range(REPEATS) for p in photos]

    def run() -> None:
        done = release_all(tasks, choices)
        if len(done.released) != len(tasks):
            raise RuntimeError(f"not all were released: {done.failed or done.no_region}")

    calls = {
        ALONE: lambda: [finder(photo) for photo in decoded],
        BOTH: lambda: [finder(read(path)) for path in photos],
        RUN: run,
    }
    rounds: list[dict[str, float]] = []
    for _ in range(ROUNDS + 1):
        spent = _each_stage(photos, method, finder, out)
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            spent[name] = (time.perf_counter() - start) / (REPEATS if name == RUN else 1)
        rounds.append(spent)
    # the first round warms up
    seconds = {name: statistics.median(spent[name] for spent in rounds[1:]) for name in rounds[0]}
    return [
        {
            "what": name,
            "photos/s": round(len(photos) / spent, 2),
            "ms/photo": round(spent / len(photos) * 1e3, 1),
            "× detection alone": round(spent / seconds[ALONE], 2),
            "× decode + detection": round(spent / seconds[BOTH], 2),
        }
        for name, spent in seconds.items()
    ]


def _each_stage(photos: list[Path], method: DPPix, finder: Faces, out: Path) -> dict[str, float]:
    spent = dict.fromkeys(("decode", "detect", "draw", "encode", "write"), 0.0)
    for path in photos:
        clock = _Clock(spent)
        photo = read(path)
        clock.stop("decode")
        regions = finder(photo)
        clock.stop("detect")
        boxes = [(r.box.x, r.box.y, r.box.w, r.box.h) for r in regions]
        release = obfuscate(photo, method, regions=boxes, bits=SecureBits())
        clock.stop("draw")
        contents = encode(release.image, "png")
        clock.stop("encode")
        write_together([(out / "a.json", b"{}" * 1000), (out / "a.png", contents)], replace=True)
        clock.stop("write")
    return spent


class _Clock:
    def __init__(self, spent: dict[str, float]) -> None:
        self.spent, self.start = spent, time.perf_counter()

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.spent[name] += now - self.start
        self.start = now


def main() -> None:
    """Print and save the table with the load of the machine, which may be shared."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        places = make(work / "photos")
        rows = stages([work / "photos" / name for name in sorted(places) if "faces" in name], work)
    report("folder_stages", [row | {"load": load()} for row in rows])


if __name__ == "__main__":
    main()

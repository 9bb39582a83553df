"""Processor time, memory and bytes of `dpveil obfuscate --jobs 2 --ledger`, by the number of photos.

The page "What runs cost" fits its model to these rows, except the largest run of small photos, by which the
model is checked. Small photos are 64 × 64 pixels in colour, JPEG, all different, 1000 in a folder; large ones
are 1280 × 720 with up to three faces, taken several times. Every run is a process of its own that pays from a
new SQLite ledger. It is measured by the processor time of the command and of its workers, which depends less
than seconds on how busy the machine is. Memory is the most that the command held. What is kept on the disk is
counted in bytes of files, after the run.

Rows that are kept are not run again: `python benchmarks/costs.py FOLDER` goes on where it was ended, and with
--anew it begins from nothing. FOLDER holds photos and releases meanwhile, up to 1 GB.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

import folder_photos
from dpveil.ledger import Ledger, Limit
from timing import RESULTS, generator, load, load_note, report

SMALL, LARGE, FACES = "64 × 64, dp-pix", "1280 × 720, dp-pix", "1280 × 720, faces replaced"
PIX = ("--method", "dp-pix", "--epsilon", "1", "--block", "16", "--regions", "whole")
WORK = {SMALL: PIX, LARGE: PIX, FACES: ("--method", "attributes", "--if-none", "whole")}
"""Options of `dpveil obfuscate` by kind of work."""
SIZES = {
    SMALL: (1, 1000, 10_000, 30_000, 100_000),
    LARGE: (1, 20, 100),
    FACES: (1, 20, 60),
}
IN_A_FOLDER = 1000
SUBJECT = "set"
JOBS = 2
Row = dict[str, object]


def make_small(folder: Path, count: int) -> None:
    """Write different small photos: soft colours with the noise of a camera."""
    draw = generator()
    for number in range(count):
        place = folder / f"{number // IN_A_FOLDER:04d}"
        place.mkdir(parents=True, exist_ok=True)
        soft = cv2.resize(draw.integers(0, 256, (5, 5, 3)).astype(np.float32), (64, 64))
        levels = (soft + draw.normal(0, 4, soft.shape)).clip(0, 255).astype(np.uint8)
        (place / f"{number:06d}.jpg").write_bytes(cv2.imencode(".jpg", levels)[1].tobytes())


def make_large(folder: Path, count: int) -> None:
    """Write the photos of `folder_photos` until there are enough, under new names."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        photos = Path(temporary) / "photos"
        folder_photos.make(photos)
        known = sorted(photos.glob("*-faces.jpg"))
        for number in range(count):
            shutil.copy(known[number % len(known)], folder / f"{number:06d}.jpg")


def child(folder: str, *options: str) -> None:
    """Run the command on the photos of a folder, and print what it took."""
    from dpveil.cli import run

    work = Path(folder)
    paying = ("--ledger", f"sqlite:///{work / 'budget.db'}", "--subject", SUBJECT)
    start = time.perf_counter()
    code = run(["obfuscate", str(work / "in"), "--out", str(work / "out"), *options, *paying])
    seconds = time.perf_counter() - start
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    told = {"code": code, "seconds": seconds, "memory": own.ru_maxrss << 10}
    told |= {"command": own.ru_utime + own.ru_stime, "workers": others.ru_utime + others.ru_stime}
    (work / "told.json").write_text(json.dumps(told))


def measured(work: Path, kind: str, count: int) -> Row:
    """Return the row of one run."""
    (make_small if kind == SMALL else make_large)(work / "in", count)
    with Ledger(f"sqlite:///{work / 'budget.db'}", create=True) as ledger:
        ledger.set_limit(SUBJECT, Limit("pure", epsilon=10**8))
    before = size(work.glob("budget.db*"))
    call = (sys.executable, __file__, "--child", str(work), *WORK[kind], "--jobs", str(JOBS))
    home = {"XDG_STATE_HOME": str(work / "state"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (work / "log").open("wb") as log:
        subprocess.run(call, check=True, stdout=log, stderr=log, env=os.environ | home)
    told = json.loads((work / "told.json").read_text())
    released = sorted((work / "out").rglob("*.png"))
    with Ledger(f"sqlite:///{work / 'budget.db'}") as ledger:
        debits = sum(entry.kind == "debit" for entry in ledger.history(SUBJECT))
    if (told["code"], len(released), debits) != (0, count, count):
        said = (work / "log").read_text()[-900:]
        raise RuntimeError(f"{told}, {len(released)} releases, {debits} debits: {said}")
    return {
        "work": kind,
        "photos": count,
        "workers, processor s": round(told["workers"], 2),
        "command, processor s": round(told["command"], 2),
        "seconds": round(told["seconds"], 1),
        "command, MB": round(told["memory"] / 1e6, 1),
        "read, bytes": size((work / "in").rglob("*.jpg")),
        "releases, bytes": size(released),
        "certificates, bytes": size((work / "out").rglob("*.json")),
        "ledger, bytes": size(work.glob("budget.db*")) - before,
        "state, bytes": size((work / "state").rglob("*.jsonl")),
        "debits": debits,
        "load": load(),
    }


def size(files: Iterator[Path] | list[Path]) -> int:
    """Return the bytes of files."""
    return sum(path.stat().st_size for path in files)


def main(scratch: Path, *, anew: bool) -> None:
    """Measure what is not kept yet, small runs first, and keep every row at once."""
    path = RESULTS / "costs.json"
    rows = [] if anew or not path.exists() else json.loads(path.read_text(encoding="utf-8"))["rows"]
    wanted = sorted(((kind, count) for kind in WORK for count in SIZES[kind]), key=lambda pair: pair[1])
    for kind, count in wanted:
        if any((row["work"], row["photos"]) == (kind, count) for row in rows):
            continue
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            rows.append(measured(Path(folder), kind, count))
        rows.sort(key=lambda row: (list(WORK).index(row["work"]), row["photos"]))
        report("costs", rows, notes=(load_note(),))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        given = [word for word in sys.argv[1:] if word != "--anew"]
        main(Path(given[0] if given else tempfile.gettempdir()), anew="--anew" in sys.argv)

"""Speed of replacing heads beside deface 1.5: a folder of small portraits, and one photo of 12 megapixels.

The portraits are of LFW, 128 × 128 pixels, each of somebody else. The large photo is made like the scenes of
`face_recall.py`: ten photos of LFW, with heads of 48 to 400 pixels, pasted into an enlarged photograph. Tools
take turns as commands, from reading to the last durable write, certificates included. `start` is a run over
one portrait, which is subtracted: `ms/photo` and `cpu ms/photo` (all threads, user and system) are those of
the photos after it. All are the least of the turns, as the machine is shared. `before=FOLDER` runs the
sources of another checkout in the same turns. deface is as in `folder.py`, without onnxruntime. Needs
../shared/data/lfw10_128 and lfw10_250.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter
from skimage import data

from face_scenes import CROP, FACE, HEIGHT, PEOPLE, WIDTH, Pasted, _free
from folder import _deface
from folder_photos import SHARED
from timing import load_note, report

PHOTOS = 60
HEADS = (400, 300, 220, 180, 150, 120, 96, 80, 64, 48)
"""Heights of the ten faces in the large photo, in pixels."""
ROUNDS = 3
METHODS = {"gallery": ("--method", "gallery", "--epsilon", "8"), "attributes": ("--method", "attributes")}
SOURCES = ("src", "packages/dpveil-faces/src")

Spent = tuple[float, float]
"""Seconds of a clock on the wall, and of all processors."""


def scene() -> Image.Image:
    """Return a photo of 12 megapixels with ten faces."""
    draw = np.random.default_rng(0)
    canvas = Image.fromarray(data.coffee()).resize((WIDTH, HEIGHT), 3)
    people, pasted = sorted(PEOPLE.glob("*/*.jpg")), list[Pasted]()
    for height in HEADS:
        side = round(height * CROP / FACE * 1.5)
        x, y = _free(draw, side, pasted)
        photo = Image.open(people[draw.integers(len(people))]).convert("RGB").crop((5, 5, 245, 245))
        rim = max(1, side // 12)
        soft = Image.new("L", (side, side))
        soft.paste(255, (rim, rim, side - rim, side - rim))
        canvas.paste(photo.resize((side, side), 3), (x, y), soft.filter(ImageFilter.GaussianBlur(rim / 2)))
        pasted.append(Pasted(x + side / 2, y + side / 2, height, "", 0.0))
    return canvas


def spent(call: list[str], sources: Path | None) -> Spent:
    """Return what a command took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    own = {} if sources is None else {"PYTHONPATH": os.pathsep.join(str(sources / one) for one in SOURCES)}
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ | own)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{call} ended with {done.returncode}: {done.stderr[-400:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def turns(work: Path, folders: dict[str, Path], before: Path | None) -> dict[tuple[str, str], list[Spent]]:
    """Return what every tool took for every folder, in each turn."""
    here, found = Path(__file__).parent.parent, dict[tuple[str, str], list[Spent]]()
    trees = {"": here} if before is None else {" before": before, "": here}
    tools = {f"dpveil {name}{when}": (name, tree) for name in METHODS for when, tree in trees.items()}
    for turn in range(ROUNDS):
        for tool, (name, tree) in tools.items():
            for kind, folder in list(folders.items())[: 3 if name == "gallery" else 2]:
                out = work / f"{tool}-{kind}-{turn}"
                call = [sys.executable, "-m", "dpveil", "obfuscate", str(folder), "--out", str(out)]
                found.setdefault((tool, kind), []).append(spent([*call, *METHODS[name]], tree))
        for kind, folder in folders.items() if _deface() else ():
            out = work / f"deface-{kind}-{turn}"
            shutil.copytree(folder, out)  # it writes beside its inputs
            found.setdefault(("deface 1.5", kind), []).append(spent([str(_deface()), str(out)], None))
    return found


def rows(found: dict[tuple[str, str], list[Spent]], counts: dict[str, int]) -> list[dict[str, object]]:
    """Return a line for every tool and folder."""
    least = {key: tuple(map(min, zip(*times, strict=True))) for key, times in found.items()}
    lines = []
    for (tool, kind), (wall, cpu) in least.items():
        if kind == "start":
            continue
        start, own = least[tool, "start"]
        more = counts[kind] - (kind == "portraits")
        lines.append(
            {
                "tool": tool,
                "photos": f"{counts[kind]} × {kind}",
                "seconds": round(wall, 2),
                "start, s": round(start, 2),
                "ms/photo": round((wall - start) / more * 1e3, 1),
                "photos/s": round(more / (wall - start), 2),
                "cpu ms/photo": round((cpu - own) / more * 1e3, 1),
            }
        )
    return lines


def main() -> None:
    """Print and save the table."""
    if not PEOPLE.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    given = dict(word.partition("=")[::2] for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        folders = {kind: work / kind for kind in ("start", "portraits", "12 megapixels")}
        for folder in folders.values():
            folder.mkdir()
        people = sorted(path for path in SHARED.iterdir() if path.is_dir())[:PHOTOS]
        portraits = [min(person.glob("*.jpg")) for person in people]
        for path in portraits:
            shutil.copy(path, folders["portraits"])
        shutil.copy(portraits[0], folders["start"])
        scene().save(folders["12 megapixels"] / "scene.jpg", quality=92)
        found = turns(work, folders, Path(given["before"]) if "before" in given else None)
    report("heads_speed", rows(found, {"portraits": PHOTOS, "12 megapixels": 1}), notes=(load_note(),))


if __name__ == "__main__":
    main()

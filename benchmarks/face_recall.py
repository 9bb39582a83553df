"""Faces that are missed: recall by size, rotation and tone on composites, all detectors in one run.

Photos of LFW are rotated, scaled down and pasted with soft edges into photographs of other things, enlarged
to 4000 × 3000 pixels. A face is found if the centre of one box lies within a quarter of the crop's side from
its own, and the box is between half and twice as high. Tones are thirds of the grey level in the middle of
the face. Seconds are processor time of all threads; the detectors take turns on every photo. Needs
../shared/data/lfw10_250. `python benchmarks/face_recall.py [SCENES] [yunet=FILE]` makes four scenes by
default.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter
from skimage import data

from dpveil import Photo
from dpveil.regions import Faces
from timing import report

PEOPLE = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_250"
BACKGROUNDS = ("coffee", "chelsea", "rocket")
WIDTH, HEIGHT = 4000, 3000
SIZES = (16, 24, 32, 48, 64, 96)
TURNS = (0, 30, 60, 90, 180)
EACH, UPRIGHT = 2, 10
"""Faces of every size in a scene, at every turn and upright."""
CROP, FACE = 160, 115
"""Side of the crop from the middle of a photo of LFW, and the height of the face in it."""
TONES = ("darkest", "middle", "lightest")


@dataclass(frozen=True)
class Pasted:
    """A face: its centre and height in pixels, its rotation in degrees and its grey level."""

    x: float
    y: float
    height: int
    turn: int
    level: float


def scene(number: int) -> tuple[Photo, list[Pasted]]:
    """Return a composite and the faces pasted into it, which are a function of the number."""
    draw = np.random.default_rng(number)
    canvas = Image.fromarray(getattr(data, BACKGROUNDS[number % 3])()).resize((WIDTH, HEIGHT), 3)
    photos = sorted(PEOPLE.glob("*/*.jpg"))
    pasted: list[Pasted] = []
    wanted = [(height, turn) for height in SIZES for turn in TURNS for _ in range(EACH if turn else UPRIGHT)]
    for height, turn in sorted(wanted, reverse=True):
        side = round(height * CROP / FACE)
        x, y = _free(draw, side, pasted)
        photo = Image.open(photos[draw.integers(len(photos))]).convert("RGB")
        face = photo.rotate(turn, 3).crop((45, 45, 205, 205))
        soft = Image.new("L", (side, side))
        rim = max(1, side // 12)
        soft.paste(255, (rim, rim, side - rim, side - rim))
        canvas.paste(face.resize((side, side), 3), (x, y), soft.filter(ImageFilter.GaussianBlur(rim / 2)))
        level = float(np.median(np.asarray(face.convert("L"))[50:110, 50:110]))
        pasted.append(Pasted(x + side / 2, y + side / 2, height, turn, level))
    return Photo(np.asarray(canvas)), pasted


def _free(draw: np.random.Generator, side: int, pasted: list[Pasted]) -> tuple[int, int]:
    while True:
        x, y = int(draw.integers(0, WIDTH - side)), int(draw.integers(0, HEIGHT - side))
        far = [max(abs(x + side / 2 - p.x), abs(y + side / 2 - p.y)) - p.height for p in pasted]
        if not far or min(far) > side:
            return x, y


def matches(box, face: Pasted) -> bool:
    """Return whether a box is this face."""
    aside = max(abs(box.x + box.w / 2 - face.x), abs(box.y + box.h / 2 - face.y))
    return aside <= face.height * CROP / FACE / 4 and face.height / 2 <= box.h <= 2 * face.height


def share(hits: list[bool]) -> str:
    """Return the number of hits out of all, as text."""
    return f"{sum(hits)}/{len(hits)}"


def row(name: str, faces: list[Pasted], hits: list[bool], boxes: int, seconds: float) -> dict[str, object]:
    """Return one line of the table: rotations and tones of faces from 24 pixels, tones of upright ones."""
    cuts = np.quantile([face.level for face in faces], (1 / 3, 2 / 3))
    told = list(zip(faces, hits, strict=True))
    sizes = {f"{n} px": share([h for f, h in told if f.height == n and not f.turn]) for n in SIZES}
    turns = {f"{n}°": share([h for f, h in told if f.height >= 24 and f.turn == n]) for n in TURNS}
    tones = {
        tone: share([h for f, h in told if f.height >= 24 and not f.turn and np.digitize(f.level, cuts) == n])
        for n, tone in enumerate(TONES)
    }
    return {"search": name, **sizes, **turns, **tones, "other boxes": boxes - sum(hits), "cpu s": seconds}


def main() -> None:
    """Print and save the table."""
    if not PEOPLE.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    given = dict(word.partition("=")[::2] for word in sys.argv[1:] if "=" in word)
    count = int(next((word for word in sys.argv[1:] if word.isdigit()), "4"))
    finders = {"centerface, shrunk": Faces(margin=0, smallest=50), "centerface": Faces(margin=0)}
    finders |= {"dlib": Faces(margin=0, detector="dlib")}
    if model := given.get("yunet"):
        finders |= {"yunet": Faces(margin=0, detector="yunet", model=model)}
    made = [scene(number) for number in range(count)]
    faces = [face for _, some in made for face in some]
    hits: dict[str, list[bool]] = {name: [] for name in finders}
    boxes, seconds = dict.fromkeys(finders, 0), dict.fromkeys(finders, 0.0)
    for photo, some in made:
        for name, finder in finders.items():
            start = time.process_time()
            found = [face.box for face in finder.detect(photo)]
            seconds[name] += time.process_time() - start
            boxes[name] += len(found)
            hits[name] += [any(matches(box, face) for box in found) for face in some]
    each = {name: round(seconds[name] / count, 2) for name in finders}
    report("face_recall", [row(name, faces, hits[name], boxes[name], each[name]) for name in finders])


if __name__ == "__main__":
    main()

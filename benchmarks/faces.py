"""Recall and speed of the detectors: on shared data sets, and on synthetic 12-megapixel scenes.

An image of LFW or AT&T shows one person in its middle. The face counts as found if one box, without margin,
covers the image's centre and between 10 % and 120 % of the image's area; a missing box is a miss, never left
out. In a scene, a pasted face is found if the centre of one box lies within a quarter of the face's side from
its own centre, and the box's height is between half and twice the face's. Every box in a picture without
faces is a false positive. Needs ../shared/data; `python benchmarks/faces.py quick` uses every 20th image.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from dpveil import Photo
from dpveil.regions import Faces
from timing import report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
SETS = {"lfw10_128": "*/*.jpg", "att_faces": "*/*.pgm"}
FACELESS = ("coffee", "chelsea", "rocket", "coins", "page", "text", "brick", "grass", "gravel", "moon")
DETECTORS = ("centerface",)
LONG_SIDES = (1280, 1920, 2560)
HEIGHTS = (24, 32, 48, 64, 96, 128, 192, 256, 384)
FACE_IN_CROP = 0.72
"""Height of a face relative to that of an LFW crop, by CenterFace's own boxes (median of 433)."""


def central(faces, photo) -> bool:
    """Return whether one of the boxes is the face in the middle of the image."""
    x, y, area = photo.width / 2, photo.height / 2, photo.width * photo.height
    boxes = [face.box for face in faces]
    return any(
        b.x <= x <= b.x + b.w and b.y <= y <= b.y + b.h and 0.1 * area <= b.w * b.h <= 1.2 * area
        for b in boxes
    )


def opened(path: Path) -> Photo:
    """Return the photo in an image file; `dpveil.read` refuses the PGM files of AT&T."""
    return Photo(np.asarray(Image.open(path)))


def portraits(name: str, step: int) -> list[dict[str, object]]:
    """Return recall and time of every detector on one data set."""
    paths = sorted((SHARED / name).glob(SETS[name]))[::step]
    rows = []
    for detector in DETECTORS:
        finder = Faces(detector=detector, margin=0)
        finder.detect(opened(paths[0]))
        seconds, found, boxes = [], 0, 0
        for path in paths:
            photo = opened(path)
            start = time.perf_counter()
            faces = finder.detect(photo)
            seconds.append(time.perf_counter() - start)
            found += central(faces, photo)
            boxes += len(faces)
        rows.append(
            {
                "pictures": name,
                "detector": detector,
                "long side": "all",
                "faces": len(paths),
                "found": found,
                "missed": len(paths) - found,
                "recall": round(found / len(paths), 5),
                "other boxes": boxes - found,
                "ms": round(statistics.median(seconds) * 1e3, 1),
            }
        )
    return rows


def scene(number: int) -> tuple[Photo, list[tuple[float, float, float]]]:
    """Return a 4000 × 3000 scene of pasted faces, with the centre and height of each."""
    draw = np.random.default_rng(number)
    background = Image.fromarray(getattr(data, FACELESS[number % 3])())
    canvas = background.resize((4000, 3000), Image.Resampling.BICUBIC)
    people = sorted((SHARED / "lfw10_128").glob("*/*.jpg"))
    taken: list[tuple[float, float, float]] = []
    for height in HEIGHTS * 4:
        side = round(height / FACE_IN_CROP)
        for _ in range(200):
            x, y = draw.integers(0, 4000 - side), draw.integers(0, 3000 - side)
            middle = x + side / 2, y + side / 2
            if all(max(abs(middle[0] - a), abs(middle[1] - b)) > side / 2 + h for a, b, h in taken):
                break
        else:
            continue
        crop = Image.open(people[draw.integers(len(people))]).convert("RGB")
        canvas.paste(crop.resize((side, side), Image.Resampling.BICUBIC), (int(x), int(y)))
        taken.append((*middle, height))
    return Photo(np.asarray(canvas)), taken


def scenes(count: int) -> list[dict[str, object]]:
    """Return recall by height of face, and time, for every detector and long side."""
    made = [scene(number) for number in range(count)]
    rows = []
    for detector in DETECTORS:
        for long_side in LONG_SIDES:
            finder = Faces(detector=detector, margin=0, long_side=long_side, smallest=4000)  # no tiles
            finder.detect(made[0][0])
            seconds, hits, boxes = [], {height: [] for height in HEIGHTS}, 0
            for photo, placed in made:
                start = time.perf_counter()
                faces = [face.box for face in finder.detect(photo)]
                seconds.append(time.perf_counter() - start)
                boxes += len(faces)
                for x, y, height in placed:
                    hits[height].append(any(matches(box, x, y, height) for box in faces))
            every = [hit for some in hits.values() for hit in some]
            rows.append(
                {
                    "pictures": f"{count} scenes of 12 MP",
                    "detector": detector,
                    "long side": long_side,
                    "faces": len(every),
                    "found": sum(every),
                    "missed": len(every) - sum(every),
                    "recall": round(sum(every) / len(every), 3),
                    "other boxes": boxes - sum(every),
                    "ms": round(statistics.median(seconds) * 1e3),
                    "recall by height": {
                        h: round(statistics.mean(some), 2) for h, some in hits.items() if some
                    },
                }
            )
    return rows


def matches(box, x: float, y: float, height: float) -> bool:
    """Return whether a box is the pasted face at (x, y)."""
    aside = max(abs(box.x + box.w / 2 - x), abs(box.y + box.h / 2 - y))
    return aside <= height / FACE_IN_CROP / 4 and height / 2 <= box.h <= 2 * height


def faceless() -> list[dict[str, object]]:
    """Return the number of boxes in pictures without faces."""
    photos = [Photo(np.ascontiguousarray(getattr(data, name)())) for name in FACELESS]
    rows = []
    for detector in DETECTORS:
        boxes = [len(Faces(detector=detector).detect(photo)) for photo in photos]
        rows.append(
            {
                "pictures": f"{len(photos)} without faces",
                "detector": detector,
                "long side": "all",
                "faces": 0,
                "found": 0,
                "missed": 0,
                "recall": "",
                "other boxes": sum(boxes),
                "ms": "",
            }
        )
    return rows


def main() -> None:
    """Print and save the table."""
    if not SHARED.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    quick = "quick" in sys.argv[1:]
    rows = [row for name in SETS for row in portraits(name, 20 if quick else 1)]
    rows += faceless() + scenes(2 if quick else 6)
    blank = dict.fromkeys(max(rows, key=len), "")
    report("faces-quick" if quick else "faces", [blank | row for row in rows])


if __name__ == "__main__":
    main()

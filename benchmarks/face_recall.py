"""Faces that are missed: recall by size, rotation, cover and tone on composites, all detectors in one run.

Photos of LFW are changed in one way each (rotated, masked, a hand before the mouth; or chosen where heads are
turned), scaled down and pasted with soft edges into photographs of other things, of 4000 × 3000 pixels
(`face_scenes.py`). A face is found if the centre of one box lies within a quarter of the crop's side from its
own, and the box is between half and twice as high. Tones are thirds of the grey level in the middle of the
face. Seconds are processor time of all threads; the detectors take turns on every photo. deface runs its own
code on the whole photo, as its command does. Needs ../shared/data/lfw10_250;
`python benchmarks/face_recall.py [SCENES]` makes three scenes by default.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from dpveil import Photo
from dpveil.assets import engines
from dpveil.assets.engines import OnnxRuntime, OpenCV
from dpveil.regions import Faces
from face_scenes import CHANGES, CROP, FACE, PEOPLE, SIZES, Pasted, scene
from timing import report

TONES = ("darkest", "middle", "lightest")
LEAST = 24  # height in pixels from which faces count in the columns by change and tone

Search = Callable[[Photo], np.ndarray]
"""Returns left, top, width and height of each face found in a photo."""


def matches(box: np.ndarray, face: Pasted) -> bool:
    """Return whether a box is this face."""
    x, y, w, h = box
    aside = max(abs(x + w / 2 - face.x), abs(y + h / 2 - face.y))
    return bool(aside <= face.height * CROP / FACE / 4 and face.height / 2 <= h <= 2 * face.height)


def share(hits: list[bool]) -> str:
    """Return the number of hits out of all, as text."""
    return f"{sum(hits)}/{len(hits)}"


def row(name: str, faces: list[Pasted], hits: list[bool], boxes: int, seconds: float) -> dict[str, object]:
    """Return one line of the table: sizes and tones of unchanged faces, and every change."""
    cuts = np.quantile([face.level for face in faces], (1 / 3, 2 / 3))
    told = list(zip(faces, hits, strict=True))
    large = [(face, hit) for face, hit in told if face.height >= LEAST]
    sizes = {f"{n} px": share([hit for f, hit in told if f.height == n and not f.change]) for n in SIZES}
    changes = {change: share([hit for f, hit in large if f.change == change]) for change in CHANGES if change}
    tones = {
        tone: share([hit for f, hit in large if not f.change and np.digitize(f.level, cuts) == n])
        for n, tone in enumerate(TONES)
    }
    return {"search": name, **sizes, **changes, **tones, "other boxes": boxes - sum(hits), "cpu s": seconds}


def ours(**settings: object) -> Search:
    """Return a search by dpveil without margin; `engine` is its engine, if not the usual one."""
    engine = settings.pop("engine", None)
    finder = Faces(margin=0, **settings)

    def search(photo: Photo) -> np.ndarray:
        usual = dict(engines.ENGINES)
        try:
            if engine is not None:
                engines.ENGINES.clear()
                engines.ENGINES[engine.name] = engine
            boxes = [face.box for face in finder.detect(Photo(photo.image))]  # detections are kept by photo
            return np.array([(box.x, box.y, box.w, box.h) for box in boxes]).reshape(-1, 4)
        finally:
            engines.ENGINES.clear()
            engines.ENGINES.update(usual)

    return search


def defaced() -> Search:
    """Return the search of deface 1.5: its network, size and threshold."""
    from deface.centerface import CenterFace

    net = CenterFace(backend="opencv")

    def search(photo: Photo) -> np.ndarray:
        found, _ = net(photo.image, threshold=0.2)
        found = np.asarray(found, float).reshape(-1, 5)
        return np.concatenate([found[:, :2], found[:, 2:4] - found[:, :2]], axis=1)

    return search


def searches() -> dict[str, Search]:
    """Return every search by name; those whose package or file is missing are left out."""
    shrunk = {"smallest": 50}
    found = {"centerface, shrunk": ours(**shrunk), "centerface": ours()}
    if OnnxRuntime.is_installed():
        found["centerface, shrunk, OpenCV"] = ours(engine=OpenCV, **shrunk)
        found["centerface, OpenCV"] = ours(engine=OpenCV)
    return found | {"deface 1.5": defaced()}


def main() -> None:
    """Print and save the table."""
    if not PEOPLE.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    count = int(next((word for word in sys.argv[1:] if word.isdigit()), "3"))
    ways = searches()
    faces: list[Pasted] = []
    hits: dict[str, list[bool]] = {name: [] for name in ways}
    boxes, seconds = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0.0)
    for number in range(count):
        photo, some = scene(number)
        faces += some
        for name, search in ways.items():
            start = time.process_time()
            found = search(photo)
            seconds[name] += time.process_time() - start
            boxes[name] += len(found)
            hits[name] += [any(matches(box, face) for box in found) for face in some]
    each = {name: round(seconds[name] / count, 2) for name in ways}
    report("face_recall", [row(name, faces, hits[name], boxes[name], each[name]) for name in ways])


if __name__ == "__main__":
    main()

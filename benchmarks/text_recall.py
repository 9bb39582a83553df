"""Text that is missed: recall by size, angle and kind in rendered scenes (`text_scenes.py`).

A line is found if at least 95 % of its ink is in boxes, so that none of it can be read. `presidio` are the
boxes of all words that the reader of presidio-image-redactor (Tesseract, by the same call of pytesseract)
sees, before it decides which of them are personal: it redacts no others. It takes part if the Python of an
environment with pytesseract is given, `python benchmarks/text_recall.py presidio=PYTHON`, and rapidocr's own
search with `rapidocr`. Seconds are processor time of this process. Needs the extra `text`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from dpveil import Photo
from dpveil.errors import NoRegion
from dpveil.regions import Plates, Text
from text_scenes import ANGLES, HEIGHTS, KINDS, SIZE, TURNED, Line, empty, scene
from timing import load_note, report

COVERED = 0.95
Boxes = np.ndarray
Search = Callable[[Photo], Boxes]
READ = """
import json, sys
import pytesseract
from PIL import Image
for line in sys.stdin:
    found = pytesseract.image_to_data(Image.open(line.strip()), output_type=pytesseract.Output.DICT)
    rows = zip(found["left"], found["top"], found["width"], found["height"], found["text"])
    print(json.dumps([[x, y, w, h] for x, y, w, h, text in rows if text.strip()]), flush=True)
"""


def ours(finder: Text | Plates) -> Search:
    def search(photo: Photo) -> Boxes:
        try:
            found = [region.box for region in finder(photo)]
        except NoRegion:
            found = []
        return np.array([(b.x, b.y, b.w, b.h) for b in found]).reshape(-1, 4)

    return search


def rapidocr() -> Search:
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "error"})

    def search(photo: Photo) -> Boxes:
        found = engine(photo.image[..., ::-1], use_det=True, use_cls=False, use_rec=False).boxes
        if found is None or not len(found):
            return np.zeros((0, 4))
        start, stop = np.min(found, axis=1), np.max(found, axis=1)
        return np.concatenate([start, stop - start], axis=1)

    return search


class Presidio:
    """Tesseract in another process, which is asked before the others search, and answers after."""

    def __init__(self, python: str) -> None:
        pipe = subprocess.PIPE
        self.child = subprocess.Popen([python, "-c", READ], stdin=pipe, stdout=pipe, text=True)
        self.folder = Path(tempfile.mkdtemp())

    def ask(self, photo: Photo) -> None:
        Image.fromarray(photo.image).save(self.folder / "scene.png")
        self.child.stdin.write(f"{self.folder / 'scene.png'}\n")
        self.child.stdin.flush()

    def __call__(self, photo: Photo) -> Boxes:
        return np.array(json.loads(self.child.stdout.readline())).reshape(-1, 4)


def hidden(boxes: Boxes) -> np.ndarray:
    covered = np.zeros(SIZE, np.bool_)
    for x, y, w, h in boxes.astype(int):
        covered[max(0, y) : y + h, max(0, x) : x + w] = True
    return covered


def share(hits: list[bool]) -> str:
    return f"{sum(hits)}/{len(hits)}" if hits else "-"


def rows(name: str, told: list[tuple[Line, bool]], more: dict[str, object]) -> list[dict[str, object]]:
    """Return one line of the table for each kind of text."""
    found = []
    for kind in KINDS:
        own = [(line, hit) for line, hit in told if line.kind == kind]
        sizes = {
            f"{n} px": share([h for line, h in own if (line.height, line.angle) == (n, 0)]) for n in HEIGHTS
        }
        turns = {
            f"{n}°": share([h for line, h in own if (line.height, line.angle) == (TURNED, n)])
            for n in ANGLES[1:]
        }
        found.append({"search": name, "text": kind, **sizes, **turns, **more})
    return found


def searches(given: dict[str, str]) -> dict[str, Search]:
    found = {"text": ours(Text()), "plates": ours(Plates())}
    if "rapidocr" in sys.argv:
        found["rapidocr"] = rapidocr()
    if "presidio" in given:
        found["presidio"] = Presidio(given["presidio"])
    return found


def asked_first(ways: dict[str, Search], photo: Photo) -> None:
    for search in ways.values():
        if isinstance(search, Presidio):
            search.ask(photo)


def measured(
    ways: dict[str, Search], kinds: Sequence[str]
) -> tuple[dict[str, list[tuple[Line, bool]]], dict[str, float]]:
    """Return by search which lines of these kinds were found, and the seconds of a scene."""
    told: dict[str, list[tuple[Line, bool]]] = {name: [] for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    asked = [(height, 0) for height in HEIGHTS] + [(TURNED, angle) for angle in ANGLES[1:]]
    every = [(kind, *each) for kind in kinds for each in asked]
    for number, each in enumerate(every, start=1):
        print(f"scene {number} of {len(every)}", file=sys.stderr)
        image, lines = scene(*each, np.random.default_rng([19, KINDS.index(each[0]), *each[1:]]))
        photo = Photo(image)  # in which lines are searched for once, for text and plates
        asked_first(ways, photo)
        for name, search in ways.items():
            before = time.process_time()
            covered = hidden(search(photo)).ravel()
            seconds[name] += (time.process_time() - before) / len(every)
            told[name] += [(line, bool(covered[line.ink].mean() >= COVERED)) for line in lines]
    return told, seconds


def without_text(ways: dict[str, Search]) -> dict[str, int]:
    """Return how many boxes each search gives in three scenes without text."""
    found = dict.fromkeys(ways, 0)
    for photo in [Photo(empty(np.random.default_rng([20, number]))) for number in range(3)]:
        asked_first(ways, photo)
        for name, search in ways.items():
            found[name] += len(search(photo))
    return found


def told_of(
    told: dict[str, list[tuple[Line, bool]]], seconds: dict[str, float], others: dict[str, int]
) -> list[dict[str, object]]:
    """Return the table."""
    table = []
    for name in told:
        each = "-" if name == "presidio" else round(seconds[name], 2)
        table += rows(name, told[name], {"boxes without text": others[name], "cpu s": each})
    return table


def main() -> None:
    """Print and save the table."""
    ways = searches(dict(word.partition("=")[::2] for word in sys.argv[1:] if "=" in word))
    table = told_of(*measured(ways, KINDS), without_text(ways))
    report("text_recall", table, notes=(load_note(),))


if __name__ == "__main__":
    main()

"""A face detector trained on releases and tested on clean photos of other people (as Klomp et al. 2021 do).

dlib's detector (HOG and a linear SVM in a sliding window) is trained on photos of LFW, clean or released,
and searches clean photos of people whom it has not seen. Boxes are CenterFace's in the clean photos, made
square; photos in which it finds no face, several or one at the edge are left out, for training and for test.
`AP` is the average precision at an intersection over union of 0.5, the mean over disjoint training sets, with
a 95 % bootstrap interval over people in the test; `sets` are its values by training set. `lost` is what is
lost against clean photos of the same training sets, with the interval of the paired difference, and `kept`
the quotient: Safe Fakes (Klomp et al. 2021) keeps 88.3 of 91.0 with DeepPrivacy, a deep detector, WIDER FACE.
Needs ../shared/data/lfw_wide: `python benchmarks/detector_training.py [PHOTOS] [TESTED]`.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import dpveil
from dpveil import Photo
from dpveil.regions import Faces
from dpveil_train.crops import open_shard
from trained_on_releases import SEED, Row, Score, Task

PHOTOS, TESTED = 60, 400
SIDE = 40
"""Least side of a face in pixels, and the side of dlib's window."""
MATCHED = 0.5
LEAST = -1.0
"""Detections from this score on are ranked; 0 is dlib's own threshold."""

Square = tuple[int, int, int]
"""Left, top and side in pixels."""


@dataclass(frozen=True, eq=False)
class Shot:
    """A clean photo and the square of its only face; each is of another person."""

    name: str
    levels: np.ndarray
    face: Square


def shots(folder: Path) -> Iterator[Shot]:
    """Yield one photo of each person, of those with one face."""
    finder, seen = Faces(margin=0), set()
    for path in sorted(folder.glob("*.tar")):
        with open_shard(path) as shard:
            for name in sorted(name for name in shard.getnames() if name.endswith(".jpg")):
                person = _read(shard, name.replace(".jpg", ".json"))
                if person in seen:
                    continue
                levels = np.asarray(Image.open(io.BytesIO(_read(shard, name))).convert("RGB"))
                boxes = [found.box for found in finder.detect(Photo(levels))]
                face = square(boxes[0]) if len(boxes) == 1 else None
                if face and min(face) >= 0 and max(face[:2]) + face[2] <= len(levels) and face[2] >= SIDE:
                    seen.add(person)
                    yield Shot(f"{path.stem}/{name}", levels, face)


def _read(shard: Any, name: str) -> bytes:
    return shard.extractfile(name).read()


def square(box: dpveil.Box) -> Square:
    """Return the square of the box's centre and area."""
    side = round((box.w * box.h) ** 0.5)
    return round(box.x + (box.w - side) / 2), round(box.y + (box.h - side) / 2), side


def released(shot: Shot, settings: dict[str, Any]) -> np.ndarray:
    """Return the release of a photo, or the photo itself without settings."""
    if not settings:
        return shot.levels
    done = dpveil.plan(shot.levels, **settings).release(bits=dpveil.SeededBits(SEED, shot.name))
    return np.asarray(done.image)


def trained(images: Sequence[np.ndarray], faces: Sequence[Square]) -> Any:
    """Return dlib's detector, trained on these photos and their mirror images."""
    import dlib

    options = dlib.simple_object_detector_training_options()
    options.num_threads, options.C, options.detection_window_size = 1, 5, SIDE * SIDE
    options.add_left_right_image_flips = True
    boxes = [[dlib.rectangle(x, y, x + side - 1, y + side - 1)] for x, y, side in faces]
    with tempfile.TemporaryDirectory() as folder:  # only a loaded detector tells its scores
        file = f"{folder}/detector.svm"
        dlib.train_simple_object_detector(list(images), boxes, options).save(file)
        return dlib.fhog_object_detector(file)


def ranked(detector: Any, tested: Sequence[Shot]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores of all detections, whether each is the face of its photo, and its photo's number."""
    rows = []
    for number, shot in enumerate(tested):
        boxes, scores, _ = detector.run(shot.levels, 0, LEAST)
        found = [(box.left(), box.top(), box.width(), box.height()) for box in boxes]
        hits = first_matches(found, scores, shot.face)
        rows += [(score, hit, number) for score, hit in zip(scores, hits, strict=True)]
    table = np.array(rows, float).reshape(-1, 3)
    return table[:, 0], table[:, 1] > 0, table[:, 2].astype(int)


def first_matches(
    boxes: Sequence[tuple[int, int, int, int]], scores: Sequence[float], face: Square
) -> list[bool]:
    """Return which box is the face: of those that overlap it, the likeliest; others are false alarms."""
    near = [overlap(box, face) >= MATCHED for box in boxes]
    best = max((n for n in range(len(boxes)) if near[n]), key=lambda n: scores[n], default=None)
    return [n == best for n in range(len(boxes))]


def overlap(box: tuple[int, int, int, int], face: Square) -> float:
    """Return the intersection over union of left, top, width, height and a square."""
    (x, y, w, h), (left, top, side) = box, face
    wide = max(0, min(x + w, left + side) - max(x, left))
    high = max(0, min(y + h, top + side) - max(y, top))
    return wide * high / (w * h + side * side - wide * high)


def average_precision(
    scores: np.ndarray, hits: np.ndarray, photos: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Return the average precision of each draw: the sum of precision times the step of recall.

    There is one face in each photo; `times` is how often each draw has each photo, of shape (draws, photos).
    """
    order = np.argsort(-scores, kind="stable")
    drawn = times[:, photos[order]]
    true = np.cumsum(drawn * hits[order], axis=1)
    precision = true / np.maximum(np.cumsum(drawn, axis=1), 1)
    return (precision * drawn * hits[order]).sum(axis=1) / times.sum(axis=1)


def scorer(tested: Sequence[Shot], times: np.ndarray) -> Score:
    """Return what trains on releases and gives the average precision of each draw."""

    def score(settings: dict[str, Any], shots_of_set: Sequence[Shot]) -> tuple[np.ndarray, int]:
        images, faces = [], []
        for shot in shots_of_set:
            try:
                images.append(released(shot, settings))
                faces.append(shot.face)
            except dpveil.DPVeilError:
                continue
        found = average_precision(*ranked(trained(images, faces), tested), times)
        return found, len(shots_of_set) - len(images)

    return score


def kept(values: np.ndarray, clean: np.ndarray) -> Row:
    """Return the quotient of the means over training sets."""
    return {"kept": round(float(values[:, 0].mean() / clean[:, 0].mean()), 3)}


TASK = Task(
    "detector_training",
    "AP",
    "lfw_wide",
    PHOTOS,
    TESTED,
    shots,
    scorer,
    more=kept,
    note=", each of another person",
)

if __name__ == "__main__":
    TASK.run()

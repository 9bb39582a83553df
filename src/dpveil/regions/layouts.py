"""What networks that find things give, by the layout of their outputs: rows of box, score and class.

YOLOv5 and v7 (arXiv 2207.02696), YOLOv8 and later, YOLOv10 (arXiv 2405.14458), and RT-DETR (arXiv
2304.08069) as Ultralytics, its authors, and Hugging Face export it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from dpveil.errors import RegionError

STRIDES: Final = (8, 16, 32)
"""Sides of the cells of YOLO's grids, in pixels."""
REMEDY: Final = "choose another detector, or protect the whole photo"
UNKNOWN: Final = "the detector's outputs are of no layout that is read (YOLO from v5 on, RT-DETR)"
FARTHEST: Final = 2
"""Coordinates relative to the image are below this, and those of pixels are not."""
MOST_CLASSES: Final = 1_000_000
Outputs = Sequence[np.ndarray]
Found = Float[np.ndarray, "n 6"]
"""Left, top, right and bottom in pixels of the network's image, score, and the number of the class."""


def read(outputs: Outputs, height: int, width: int, classes: int | None) -> Found:
    """Return what outputs say was found in an image of this size; `classes` is their number, if known.

    Raises `RegionError` for outputs of no known layout, and for numbers that are not finite.
    """
    if not all(np.isfinite(one).all() for one in outputs):
        raise RegionError("the detector gave numbers that are not finite", hint=REMEDY)
    shapes = tuple(one.shape for one in outputs)
    for fits, layout in LAYOUTS:
        if fits(shapes, cells(height, width), classes):
            found = layout([np.asarray(one[0], np.float64) for one in outputs], height, width)
            scores, kinds = found[:, 4], found[:, 5]
            if not ((kinds >= 0) & (kinds < MOST_CLASSES) & (kinds == np.floor(kinds))).all():
                raise RegionError("the detector gave classes that are no whole numbers", hint=REMEDY)
            if not ((scores >= 0) & (scores <= 1)).all():
                raise RegionError("the detector gave scores that are not between 0 and 1", hint=REMEDY)
            return found
    raise RegionError(UNKNOWN, hint=REMEDY)


def cells(height: int, width: int) -> int:
    """Return how many cells YOLO's grids have.

    >>> cells(640, 640)
    8400
    """
    return sum((height // stride) * (width // stride) for stride in STRIDES)


Shapes = tuple[tuple[int, ...], ...]


def _anchored(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv5's or v7's: three boxes for each cell, with a score of their own."""
    return len(shapes) == 1 and _is(shapes[0], 3 * grid, None if classes is None else 5 + classes, least=6)


def _free(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv8's or a later one's: a column for each cell."""
    if len(shapes) != 1 or len(shapes[0]) != 3:
        return False
    turned = (shapes[0][0], shapes[0][2], shapes[0][1])
    return _is(turned, grid, None if classes is None else 4 + classes, least=5)


def _ended(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv10's: rows of corners, score and class."""
    return len(shapes) == 1 and classes != 2 and _is(shapes[0], None, 6, least=6)


def _queried(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of Ultralytics: rows of box and scores."""
    return len(shapes) == 1 and classes is not None and _is(shapes[0], None, 4 + classes, least=5)


def _two(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of Hugging Face: logits and boxes."""
    if len(shapes) != 2 or not _is(shapes[1], None, 4, least=4):
        return False
    return _is(shapes[0], shapes[1][1], classes, least=1)


def _three(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of its authors: labels, boxes and scores."""
    return len(shapes) == 3 and _is(shapes[1], None, 4, least=4) and shapes[0] == shapes[2] == shapes[1][:2]


def _is(shape: tuple[int, ...], rows: int | None, columns: int | None, *, least: int) -> bool:
    """Whether a shape is that of one table with so many rows and columns."""
    if len(shape) != 3 or shape[0] != 1 or shape[2] < least:
        return False
    return rows in (None, shape[1]) and columns in (None, shape[2])


def _of_anchored(outputs: Outputs, height: int, width: int) -> Found:
    (rows,) = outputs
    return _best(rows[:, :4], rows[:, 5:] * rows[:, 4:5])


def _of_free(outputs: Outputs, height: int, width: int) -> Found:
    rows = outputs[0].T
    return _best(rows[:, :4], rows[:, 4:])


def _of_ended(outputs: Outputs, height: int, width: int) -> Found:
    return outputs[0]


def _of_queried(outputs: Outputs, height: int, width: int) -> Found:
    rows = outputs[0]
    if rows.shape[1] == 6 and rows[:, :4].max(initial=0) > FARTHEST:
        return rows  # YOLOv10's corners in pixels, of two classes
    return _best(rows[:, :4] * [width, height, width, height], rows[:, 4:])


def _of_two(outputs: Outputs, height: int, width: int) -> Found:
    logits, boxes = outputs
    return _best(boxes * [width, height, width, height], 1 / (1 + np.exp(-np.clip(logits, -60, 60))))


def _of_three(outputs: Outputs, height: int, width: int) -> Found:
    labels, boxes, scores = outputs
    return np.column_stack([boxes, scores, labels])


def _best(boxes: Float[np.ndarray, "n 4"], scores: Float[np.ndarray, "n c"]) -> Found:
    """Return a row for each box, given by its centre and size, with the best of its scores."""
    half, kind = boxes[:, 2:] / 2, scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), kind]
    return np.column_stack([boxes[:, :2] - half, boxes[:, :2] + half, best, kind])


Fits = Callable[[Shapes, int, int | None], bool]
Layout = Callable[[Outputs, int, int], Found]
LAYOUTS: Final[Sequence[tuple[Fits, Layout]]] = (
    (_anchored, _of_anchored),
    (_free, _of_free),
    (_ended, _of_ended),
    (_queried, _of_queried),
    (_two, _of_two),
    (_three, _of_three),
)
"""Which shapes each layout has, and how it is read."""


def name_of(number: int, names: Mapping[int, str]) -> str:
    """Return the name of a class, or its number where it has none.

    >>> name_of(1, {0: "person", 1: "car"}), name_of(7, {})
    ('car', '7')
    """
    return names.get(number, str(number))

"""Boxes followed from one frame to the next by optical flow on small grey frames."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, UInt8

Boxes = Float[np.ndarray, "n 4"]
"""Left, top, right and bottom, in pixels."""

SIDE: Final = 640
"""Longer side of small frames in pixels; smaller frames are not enlarged."""
GRID: Final = 6
"""Points on each side of a box."""
INNER: Final = 0.15
"""Share of a box on each side in which no points are, as it shows what is behind."""
WINDOW: Final = (13, 13)
LEVELS: Final = 3
BACK: Final = 1.0
"""Largest distance in pixels between a point and where it is after following it there and back."""
LEAST: Final = 8
"""Points that have to come back."""
APART: Final = 0.08
"""Largest median distance of points from where the box's motion takes them, relative to its sides."""
ZOOM: Final = (0.9, 1.1)
"""Least and largest change of size between two frames."""


def small(image: UInt8[np.ndarray, "h w 3"]) -> tuple[UInt8[np.ndarray, "k l"], float]:
    """Return a frame in grey with a longer side of at most `SIDE` pixels, and its scale."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    scale = min(1.0, SIDE / max(grey.shape))
    if scale < 1:
        size = tuple(max(1, round(side * scale)) for side in grey.shape[::-1])
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return grey, scale


def follow(
    before: UInt8[np.ndarray, "k l"], after: UInt8[np.ndarray, "k l"], boxes: Boxes
) -> tuple[Boxes, Bool[np.ndarray, " n"]]:
    """Return where boxes of one frame are in another, in its pixels, and which of them that is sure of.

    The others stay where they are. Points in a box are followed there and back (Kalal 2010: median flow), the
    box moves by the median of those that come back, and grows by the median change of their distances.
    """
    import cv2

    if not len(boxes):
        return boxes, np.zeros(0, bool)
    steps = np.linspace(INNER, 1 - INNER, GRID)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    start = boxes[:, None, :2] + grid * (boxes[:, None, 2:] - boxes[:, None, :2])
    flat = np.ascontiguousarray(start.reshape(-1, 1, 2), np.float32)
    there, one, _ = cv2.calcOpticalFlowPyrLK(before, after, flat, None, winSize=WINDOW, maxLevel=LEVELS)
    again, two, _ = cv2.calcOpticalFlowPyrLK(after, before, there, None, winSize=WINDOW, maxLevel=LEVELS)
    near = np.hypot(*(again - flat)[:, 0].T) <= BACK
    inside = ((flat >= 0) & (flat < before.shape[::-1]))[:, 0].all(axis=1)
    good = (near & inside & (one[:, 0] > 0) & (two[:, 0] > 0)).reshape(len(boxes), -1)
    moved, sure = boxes.copy(), np.zeros(len(boxes), bool)
    for n, (p, q, kept) in enumerate(zip(start, there.reshape(start.shape), good, strict=True)):
        if kept.sum() >= LEAST:
            moved[n], sure[n] = _moved(boxes[n], p[kept], q[kept].astype(np.float64))
    return moved, sure


def _moved(
    box: Float[np.ndarray, " 4"], p: Float[np.ndarray, "k 2"], q: Float[np.ndarray, "k 2"]
) -> tuple[Float[np.ndarray, " 4"], bool]:
    """Return a box after its points `p` went to `q`, and whether most of them agree."""
    size, middle = box[2:] - box[:2], (box[:2] + box[2:]) / 2
    was, now = np.median(p, axis=0), np.median(q, axis=0)
    radius = np.hypot(*(p - was).T)
    zoom = _zoom(radius, np.hypot(*(q - now).T))
    centre = now + (middle - was) * zoom
    apart = np.median(np.abs(q - now - (p - was) * zoom) / size, axis=0).max()
    half = size * zoom / 2
    moved = np.concatenate([centre - half, centre + half])
    return (moved, True) if apart <= APART and np.isfinite(moved).all() else (box, False)


def _zoom(before: Float[np.ndarray, " k"], after: Float[np.ndarray, " k"]) -> float:
    """Return the median change of distances, within `ZOOM`."""
    far = before > 0
    ratio = float(np.median(after[far] / before[far])) if far.any() else 1.0
    return min(max(ratio, ZOOM[0]), ZOOM[1])

"""Boxes followed from one frame to the next by optical flow on small grey frames."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, UInt8

Small = UInt8[np.ndarray, "k l"]
Boxes = Float[np.ndarray, "n 4"]
"""Left, top, right and bottom, in pixels."""
Points = Float[np.ndarray, "k 1 2"]
Sure = Bool[np.ndarray, " n"]

SIDE: Final = 640
"""Longer side of small frames in pixels; smaller frames are not enlarged."""
GRID: Final = 6
"""Points on each side of a box."""
INNER: Final = 0.15
"""Share of a box on each side in which no points are, as it shows what is behind."""
WINDOW: Final = (13, 13)
LEVELS: Final = 3
BESIDE: Final = 64
"""Pixels around points that are looked at: half the window at the coarsest level of the pyramid, and more."""
BACK: Final = 1.0
"""Largest distance in pixels between a point and where it is after following it there and back."""
LEAST: Final = 8
"""Points that have to come back."""
APART: Final = 0.08
"""Largest median distance of points from where the box's motion takes them, relative to its sides."""
SAMPLES: Final = 12
"""Points on each side of a box where its contents are compared in two frames."""
SAME: Final = 0.4
"""Correlation of these from which a box was followed, and not what is behind it."""
FARTHEST: Final = 0.8
"""How far the contents of a box are looked for, in sides of it."""
ALIKE: Final = 0.7
"""Correlation from which contents are alike."""
SMALLEST: Final = 6
TEMPLATE: Final = 16
"""Least shorter side of what is looked for in pixels, and of what it is thinned to."""
ZOOM: Final = (0.9, 1.1)
"""Least and largest change of size between two frames."""

Followed = tuple[Boxes, Sure, Float[np.ndarray, " n"]]
"""Boxes, whether they are sure, and the degrees by which their contents were turned, clockwise."""


def small(image: UInt8[np.ndarray, "h w 3"]) -> tuple[Small, float]:
    """Return a frame in grey with a longer side of at most `SIDE` pixels, and its scale."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    scale = min(1.0, SIDE / max(grey.shape))
    if scale < 1:
        size = tuple(max(1, round(side * scale)) for side in grey.shape[::-1])
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return grey, scale


def follow(before: Small, after: Small, boxes: Boxes) -> Followed:
    """Return where boxes of one frame are in another, in its pixels, which of them that is sure of, and how
    their contents were turned.

    The others stay where they are. Points in a box are followed there and back (Kalal 2010: median flow), the
    box moves by the median of those that come back, grows by the median change of their distances from there,
    and its contents are turned by the median change of their directions; boxes stay upright. Where
    few come back, as pyramids of flow blur small objects that are fast, they are followed again from where
    the contents of the box are most alike.
    """
    moved, sure, turns = _followed(before, after, boxes, np.zeros((len(boxes), 2)), LEVELS)
    retry = np.flatnonzero(~sure)
    guesses = [_alike(before, after, boxes[n]) for n in retry]
    known = [n for n, guess in zip(retry, guesses, strict=True) if guess is not None]
    if known:
        guess = np.array([one for one in guesses if one is not None])
        moved[known], sure[known], turns[known] = _followed(before, after, boxes[known], guess, 0)
    return moved, sure, turns


def _followed(
    before: Small, after: Small, boxes: Boxes, guess: Float[np.ndarray, "n 2"], levels: int
) -> Followed:
    """Return the same by flow alone, which starts at a `guess` of the motion."""
    moved, sure, turns = boxes.copy(), np.zeros(len(boxes), bool), np.zeros(len(boxes))
    if not len(boxes):
        return moved, sure, turns
    start = _points(boxes, GRID)
    flat, first = (
        np.ascontiguousarray(points.reshape(-1, 1, 2), np.float32)
        for points in (start, start + guess[:, None])
    )
    there, one = _flow(before, after, flat, first, levels)
    back = np.ascontiguousarray(there - np.repeat(guess, GRID**2, axis=0)[:, None], np.float32)
    again, two = _flow(after, before, there, back, levels)
    near = np.hypot(*(again - flat)[:, 0].T) <= BACK
    inside = ((flat >= 0) & (flat < before.shape[::-1]))[:, 0].all(axis=1)
    good = (near & inside & one & two).reshape(len(boxes), -1)
    for n, (p, q, kept) in enumerate(zip(start, there.reshape(start.shape), good, strict=True)):
        if kept.sum() >= LEAST:
            moved[n], sure[n], turns[n] = _moved(boxes[n], p[kept], q[kept].astype(np.float64))
    sure &= _correlation(before, after, boxes, moved) >= SAME
    return np.where(sure[:, None], moved, boxes), sure, np.where(sure, turns, 0.0)


def _flow(
    before: Small, after: Small, start: Points, guess: Points, levels: int
) -> tuple[Points, Bool[np.ndarray, " k"]]:
    """Return where points are in another frame by Lucas and Kanade's method, and which of them it found.

    Only the part of the frames around them is looked at, as pyramids of whole frames take most of the time.
    """
    import cv2

    both = np.concatenate([start, guess])[:, 0]
    low = np.clip(np.floor(both.min(axis=0)) - BESIDE, 0, np.array(before.shape[::-1]) - 1).astype(int)
    high = np.clip(np.ceil(both.max(axis=0)) + BESIDE, low + 1, before.shape[::-1]).astype(int)
    part = slice(low[1], high[1]), slice(low[0], high[0])
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        np.ascontiguousarray(before[part]),
        np.ascontiguousarray(after[part]),
        (start - low).astype(np.float32),
        (guess - low).astype(np.float32),
        winSize=WINDOW,
        maxLevel=levels,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    return np.asarray(there + low, np.float32), np.asarray(found)[:, 0] > 0


def _correlation(before: Small, after: Small, boxes: Boxes, moved: Boxes) -> Float[np.ndarray, " n"]:
    """Return how alike the contents of boxes are in two frames, whatever their brightness: -1 to 1."""
    import cv2

    there = []
    for image, sides in ((before, boxes), (after, moved)):
        points = _points(sides, SAMPLES).astype(np.float32)
        levels = cv2.remap(image, points[..., 0], points[..., 1], cv2.INTER_LINEAR).astype(np.float64)
        there.append(levels - levels.mean(axis=1, keepdims=True))
    one, two = there
    size = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
    return np.asarray((one * two).sum(axis=1) / np.maximum(size, 1.0))


def _points(boxes: Boxes, count: int) -> Float[np.ndarray, "n k 2"]:
    """Return a grid of points in the inner part of every box, `count` on each side."""
    steps = np.linspace(INNER, 1 - INNER, count)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    return np.asarray(boxes[:, None, :2] + grid * (boxes[:, None, 2:] - boxes[:, None, :2]))


def _alike(before: Small, after: Small, box: Float[np.ndarray, " 4"]) -> Float[np.ndarray, " 2"] | None:
    """Return the motion to where the inner part of a box is most alike, None if nothing is alike enough."""
    import cv2

    size = box[2:] - box[:2]
    inner = np.concatenate([box[:2] + INNER * size, box[2:] - INNER * size])
    left, top, right, bottom = np.rint(_within(inner, before)).astype(int)
    wide = np.rint(_within(inner + np.repeat([-FARTHEST, FARTHEST], 2) * np.tile(size, 2), after)).astype(int)
    if min(right - left, bottom - top) < SMALLEST:
        return None
    step = max(1, min(right - left, bottom - top) // TEMPLATE)
    part = np.ascontiguousarray(before[top:bottom:step, left:right:step])
    area = np.ascontiguousarray(after[wide[1] : wide[3] : step, wide[0] : wide[2] : step])
    if (np.array(area.shape) < part.shape).any() or part.std() < 1:
        return None
    _, best, _, at = cv2.minMaxLoc(cv2.matchTemplate(area, part, cv2.TM_CCOEFF_NORMED))
    return np.array(wide[:2] + np.array(at) * step - (left, top), np.float64) if best >= ALIKE else None


def _within(box: Float[np.ndarray, " 4"], image: Small) -> Float[np.ndarray, " 4"]:
    """Return a box clipped to an image."""
    return np.asarray(np.clip(box, 0, np.tile(image.shape[::-1], 2)))


def _moved(
    box: Float[np.ndarray, " 4"], p: Float[np.ndarray, "k 2"], q: Float[np.ndarray, "k 2"]
) -> tuple[Float[np.ndarray, " 4"], bool, float]:
    """Return a box after its points `p` went to `q`, whether most of them agree, and how they turned."""
    size, middle = box[2:] - box[:2], (box[:2] + box[2:]) / 2
    was, now = _median(p), _median(q)
    radius = np.hypot(*(p - was).T)
    zoom = _zoom(radius, np.hypot(*(q - now).T))
    angle = _angle(p - was, q - now)
    turn = zoom * np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre = now + (middle - was) @ turn
    apart = _median(np.abs(q - now - (p - was) @ turn) / size).max()
    half = size * zoom / 2
    moved = np.concatenate([centre - half, centre + half])
    agree = bool(apart <= APART and np.isfinite(moved).all())
    return (moved, True, math.degrees(angle)) if agree else (box, False, 0.0)


def _median(values: Float[np.ndarray, "k ..."]) -> Float[np.ndarray, ...]:
    """Return the median over the first axis, as numpy does, which takes ten times as long for few values."""
    order, half = np.sort(values, axis=0), (len(values) - 1) // 2
    return np.asarray((order[half] + order[len(values) // 2]) / 2)


def _angle(before: Float[np.ndarray, "k 2"], after: Float[np.ndarray, "k 2"]) -> float:
    """Return the median change of directions in radians, clockwise; half of the points are far enough."""
    one, two = (part[:, 0] + 1j * part[:, 1] for part in (before, after))
    far = np.abs(one) >= _median(np.abs(one))
    return float(_median(np.angle((two * one.conj())[far])))


def _zoom(before: Float[np.ndarray, " k"], after: Float[np.ndarray, " k"]) -> float:
    """Return the median change of distances, within `ZOOM`."""
    far = before > 0
    ratio = float(_median(after[far] / before[far])) if far.any() else 1.0
    return min(max(ratio, ZOOM[0]), ZOOM[1])

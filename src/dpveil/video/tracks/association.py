"""Which object of the frames before each detection is."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

Boxes = Float[np.ndarray, "n 4"]
"""Left, top, right and bottom, in pixels."""

REACH: Final = 0.6
"""Largest distance of centres in sides of the box, where the object was just followed."""
FASTER: Final = 4.0
"""What is added to that for each second without being followed."""
LONGEST: Final = 1.5
"""Largest distance whatever the time."""
SCALE: Final = 1.8
"""Largest ratio of sides of two boxes of one object."""
FAR: Final = 1e6
"""The cost of pairs that do not match."""
BORDER: Final = 0.05
"""Distance from the picture's border, in longer sides of a box, up to which the border cuts it."""
SHARED: Final = 0.4
"""Share of the smaller of two boxes that is in the other one, from which one continues the other."""
AGREE: Final = 0.4
"""Largest distance of sides that no border cuts, in the longer side of the box, of one that is followed."""


def overlap(one: Boxes, two: Boxes) -> Float[np.ndarray, "n m"]:
    """Return the intersection over union of all pairs of boxes.

    >>> overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [5, 5, 6, 6]])).round(2).tolist()
    [[0.33, 0.0]]
    """
    shared, area, areas = _shared(one, two)
    return np.asarray(shared / np.maximum(area[:, None] + areas - shared, 1e-9))


def share(one: Boxes, two: Boxes) -> Float[np.ndarray, "n m"]:
    """Return the share of each of the first boxes that each of the others holds.

    >>> share(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [0, 0, 9, 9]])).tolist()
    [[0.5, 1.0]]
    """
    shared, area, _ = _shared(one, two)
    return np.asarray(shared / np.maximum(area[:, None], 1e-9))


def _shared(
    one: Boxes, two: Boxes
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, " n"], Float[np.ndarray, " m"]]:
    """Return the area of the intersection of all pairs of boxes, and their own areas."""
    start = np.maximum(one[:, None, :2], two[None, :, :2])
    stop = np.minimum(one[:, None, 2:], two[None, :, 2:])
    area, areas = (np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1) for boxes in (one, two))
    return np.maximum(stop - start, 0).prod(axis=2), area, areas


def cut(boxes: Boxes, width: int, height: int) -> Bool[np.ndarray, "n 4"]:
    """Return which sides of boxes are at the border of the picture or beyond it.

    >>> cut(np.array([[1.0, 50, 31, 80]]), 200, 100).tolist()
    [[True, False, False, False]]
    """
    near = BORDER * (boxes[:, 2:] - boxes[:, :2]).max(axis=1, keepdims=True)
    return np.concatenate([boxes[:, :2] <= near, boxes[:, 2:] >= (width, height) - near], axis=1)


def inside(boxes: Boxes, width: int, height: int) -> Boxes:
    """Return the parts of boxes that are in the picture."""
    return np.asarray(np.clip(boxes, 0, (width, height, width, height)))


def completed(
    box: Float[np.ndarray, " 4"], known: Float[np.ndarray, " 4"], width: int, height: int
) -> Float[np.ndarray, " 4"]:
    """Return a box that is cut at the border at its whole size, which that of the object before tells.

    It grows beyond the border only.

    >>> completed(np.array([180.0, 30, 200, 70]), np.array([150.0, 30, 190, 70]), 200, 100).tolist()
    [180.0, 30.0, 220.0, 70.0]
    """
    whole, at = box.copy(), cut(box[None], width, height)[0].reshape(2, 2)
    size, before = box[2:] - box[:2], known[2:] - known[:2]
    for axis in (0, 1):
        other = 1 - axis
        shrunk = 1.0 if at[:, other].any() else min(1.0, size[other] / before[other])
        missing = before[axis] * shrunk - size[axis]
        if missing > 0 and at[:, axis].sum() == 1:
            whole[axis] -= missing * at[0, axis]
            whole[axis + 2] += missing * at[1, axis]
    return whole


def continuations(
    held: Boxes, before: Boxes, found: Boxes, followed: Bool[np.ndarray, " n"], width: int, height: int
) -> list[tuple[int, int]]:
    """Return pairs of a track and a detection of which the border cut one, each at most once.

    An object that enters or leaves the picture has a narrow box while it is half visible. So the side that is
    cut may grow from where the track was last found (`before`), or shrink to the detection. The visible
    parts of tracks (`held`) and detections have to share `SHARED` of the smaller one, and most of all wins.
    Of a track that was `followed`, the sides that the border never cut are known, and have to agree: another
    object that enters where it stands is not this one.
    """
    from scipy.optimize import linear_sum_assignment

    if not len(held) or not len(found):
        return []
    seen, seen_found = inside(held, width, height), inside(found, width, height)
    shared = np.maximum(share(seen, seen_found), share(seen_found, seen).T)
    size, sizes = (np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-6) for boxes in (seen, seen_found))
    change = np.log(sizes[None] / size[:, None])
    cut_before, cut_found = (cut(boxes, width, height) for boxes in (before, found))
    grows, shrinks = (at[:, :2] | at[:, 2:] for at in (cut_before, cut_found))
    most = np.where(grows, np.inf, math.log(SCALE))[:, None]
    least = np.where(shrinks, -np.inf, -math.log(SCALE))[None]
    fits = ((change <= most) & (change >= least)).all(axis=2)
    at_border = (grows[:, None] | shrinks[None]).any(axis=2)
    longer = (held[:, 2:] - held[:, :2]).max(axis=1)[:, None, None]
    off = np.abs(held[:, None] - found[None]) > AGREE * longer
    moved = (off & ~cut_before[:, None] & ~cut_found[None]).any(axis=2)
    apart = ~at_border | ~fits | (shared < SHARED) | (followed[:, None] & moved)
    cost = np.where(apart, FAR, 1 - shared)
    rows, columns = linear_sum_assignment(cost)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if cost[i, j] < FAR]


def matches(
    held: Boxes, moved: Boxes, alone: Float[np.ndarray, " n"], found: Boxes, narrow: bool = False
) -> list[tuple[int, int]]:
    """Return pairs of a track and a detection that are one object, each at most once, at least total cost.

    Tracks are where they were last (`held`) or where their motion took them (`moved`); `alone` is for how
    many seconds they were not followed. The cost is the distance of centres in sides of the box, and the
    change of size. With `narrow`, as for doubtful detections, the distance is at most half as large.
    """
    if not len(held) or not len(found):
        return []
    reach = np.minimum(REACH + FASTER * alone, LONGEST)[:, None] * (0.5 if narrow else 1)
    size, sizes = (np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-6) for boxes in (held, found))
    centres = (found[:, :2] + found[:, 2:]) / 2
    unit = np.sqrt(size.prod(axis=1))[:, None]
    away = np.minimum(
        *(
            np.hypot(*((boxes[:, None, :2] + boxes[:, None, 2:]) / 2 - centres).transpose(2, 0, 1)) / unit
            for boxes in (held, moved)
        )
    )
    change = np.abs(np.log(sizes[None] / size[:, None])).max(axis=2)
    near = (away <= reach) & (change <= math.log(SCALE))
    if max(near.sum(axis=0).max(), near.sum(axis=1).max()) <= 1:
        return [(int(i), int(j)) for i, j in np.argwhere(near)]

    from scipy.optimize import linear_sum_assignment  # takes half a second: where there is a choice alone

    cost = np.where(near, away + change, FAR)
    rows, columns = linear_sum_assignment(cost)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if cost[i, j] < FAR]

"""Which object of the frames before each detection is."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float

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


def overlap(one: Boxes, two: Boxes) -> Float[np.ndarray, "n m"]:
    """Return the intersection over union of all pairs of boxes.

    >>> overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [5, 5, 6, 6]])).round(2).tolist()
    [[0.33, 0.0]]
    """
    start = np.maximum(one[:, None, :2], two[None, :, :2])
    stop = np.minimum(one[:, None, 2:], two[None, :, 2:])
    shared = np.maximum(stop - start, 0).prod(axis=2)
    areas = [np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1) for boxes in (one, two)]
    return np.asarray(shared / np.maximum(areas[0][:, None] + areas[1] - shared, 1e-9))


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

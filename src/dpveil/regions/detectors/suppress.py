"""Non-maximum suppression: of overlapping boxes, only the one with the best score is kept."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from dpveil.errors import RegionError

OVERLAP: Final = 0.3
"""Intersection over union above which two boxes are taken for the same face."""
REMEDY: Final = "choose another detector, or protect the whole photo"


def suppress(found: Float[np.ndarray, "n 5"], overlap: float = OVERLAP) -> Float[np.ndarray, "m 5"]:
    """Return the rows (left, top, width, height, score) left by greedy non-maximum suppression, best first.

    A box is dropped if its intersection over union with a kept one of at least its score is above `overlap`.
    Equal scores keep their order. Raises `RegionError` for non-finite numbers and non-positive sides.

    >>> suppress(np.array([[0, 0, 10, 10, 0.5], [1, 0, 10, 10, 0.9], [20, 0, 10, 10, 0.4]]))[:, 4]
    array([0.9, 0.4])
    """
    if not (np.isfinite(found).all() and (found[:, 2:4] > 0).all()):
        raise RegionError("the face detector returned something that is not a box", hint=REMEDY)
    rest = found[np.argsort(-found[:, 4], kind="stable")]
    kept = []
    while len(rest):
        kept.append(rest[0])
        rest = rest[1:][overlaps(rest[0], rest[1:]) <= overlap]
    return np.array(kept, dtype=found.dtype).reshape(-1, 5)


def overlaps(one: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Float[np.ndarray, " n"]:
    """Return the intersection over union of one box with each of many."""
    start = np.maximum(one[:2], many[:, :2])
    stop = np.minimum(one[:2] + one[2:4], many[:, :2] + many[:, 2:4])
    shared = np.prod(np.maximum(stop - start, 0), axis=1)
    areas = one[2] * one[3] + many[:, 2] * many[:, 3]
    return np.asarray(shared / (areas - shared))

"""Sliced Wasserstein distance: how far two sets of pictures are apart, in the unit of their features."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.parameters import check_count
from dpveil.metrics.sets.base import Rows, check_rows
from dpveil.noise.bits import SeededBits
from dpveil.noise.public import normals

PROJECTIONS: Final = 512


def sliced_wasserstein(one: Rows, two: Rows, *, projections: int = PROJECTIONS, seed: int = 0) -> float:
    """Return the mean 1-Wasserstein distance of two sets over random directions.

    `one` is n × d and `two` m × d; n and m may differ. Directions are uniform on the unit sphere, and the
    same for the same `seed`, `projections` and d. The distance of empirical distributions along a direction
    is exact. It never is zero for two samples of one distribution: give the distance of two real sets beside.
    Raises `InvalidParameter`. Source: Rabin et al. 2011; Karras et al. 2018 §5.

    >>> near = sliced_wasserstein(np.eye(3), np.eye(3) + 1)
    >>> 0 < near < 3**0.5
    True
    """
    first = check_rows("one", one)
    second = check_rows("two", two, first.shape[1])
    turn = directions(first.shape[1], check_count(projections, "projections"), seed)
    ends = [np.sort(rows @ turn, axis=0) for rows in (first, second)]
    return float(_between(*ends).mean())


def directions(width: int, count: int, seed: int) -> Float64[np.ndarray, "d k"]:
    """Return `count` directions, uniform on the unit sphere, as columns."""
    drawn = normals(width * count, SeededBits(seed, "directions")).reshape(width, count)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def _between(one: Float64[np.ndarray, "n k"], two: Float64[np.ndarray, "m k"]) -> Float64[np.ndarray, " k"]:
    """Return the area between the quantile functions of sorted columns.

    Both are steps; in units of 1/(n·m) they change at the multiples of m and of n.
    """
    n, m = len(one), len(two)
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)
    widths = np.diff(ends, prepend=0)
    gaps = np.abs(one[(ends - 1) // m] - two[(ends - 1) // n])
    return np.asarray(widths @ gaps / (n * m))

"""How far apart two sets of pictures are, by features of theirs."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.noise.bits import SeededBits, normals

Rows = Float64[np.ndarray, "n d"]
"""n pictures by d features; finite."""
Pictures = UInt8[np.ndarray, "n h w c"]


def colours(pictures: Pictures, side: int = 16) -> Rows:
    """Return the levels of pictures, n × h × w × c, averaged to `side` × `side` pixels: n × (side²·c)."""
    small = [cv2.resize(one, (side, side), interpolation=cv2.INTER_AREA) for one in pictures]
    return np.reshape(small, (len(pictures), -1)).astype(np.float64)


PROJECTIONS: Final = 512


def sliced_wasserstein(one: Rows, two: Rows, *, projections: int = PROJECTIONS, seed: int = 0) -> float:
    """Return the mean 1-Wasserstein distance of two sets over random directions.

    `one` is n × d and `two` m × d; n and m may differ. Directions are uniform on the unit sphere, and the
    same for the same `seed`, `projections` and d. The distance of empirical distributions along a direction
    is exact. It never is zero for two samples of one distribution: give the distance of two real sets beside.
    Source: Rabin et al. 2011; Karras et al. 2018 §5.

    >>> near = sliced_wasserstein(np.eye(3), np.eye(3) + 1)
    >>> 0 < near < 3**0.5
    True
    """
    turn = directions(one.shape[1], projections, seed)
    ends = [np.sort(rows @ turn, axis=0) for rows in (one, two)]
    return float(_quantile_area(*ends).mean())


def directions(width: int, count: int, seed: int) -> Float64[np.ndarray, "d k"]:
    """Return `count` directions, uniform on the unit sphere, as columns."""
    drawn = normals(width * count, SeededBits(seed, "directions")).reshape(width, count)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def _quantile_area(
    one: Float64[np.ndarray, "n k"], two: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, " k"]:
    """Return the area between the quantile functions of sorted columns.

    Both are steps; in units of 1/(n·m) they change at the multiples of m and of n.
    """
    n, m = len(one), len(two)
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)
    widths = np.diff(ends, prepend=0)
    gaps = np.abs(one[(ends - 1) // m] - two[(ends - 1) // n])
    return np.asarray(widths @ gaps / (n * m))


def frechet(one: Rows, two: Rows) -> float:
    """Return the squared Fréchet distance |μ₁ - μ₂|² + tr(Σ₁ + Σ₂ - 2·(Σ₁Σ₂)^½) of two sets of features.

    `one` is n × d and `two` m × d. It is a Fréchet *inception* distance only for features of that network:
    always name the features. Small sets give larger distances: give that of two real sets of these sizes
    beside. Source: Dowson & Landau 1982; Heusel et al. 2017, equation 6.

    >>> line = np.arange(5.0)[:, None]
    >>> frechet(line, line + 3)
    9.0
    """
    one, two = (np.asarray(rows, np.float64) for rows in (one, two))
    roots = [_root(rows) for rows in (one, two)]
    apart = one.mean(axis=0) - two.mean(axis=0)
    # The trace of (Σ₁Σ₂)^½ is the nuclear norm of A·Bᵀ for Σ₁ = AᵀA and Σ₂ = BᵀB: no square root of a
    # product that rounding makes indefinite.
    shared = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spread = sum((root**2).sum() for root in roots) - 2 * shared
    return float(apart @ apart + max(0.0, spread))


def _root(rows: Rows) -> Float64[np.ndarray, "k d"]:
    """Return A with AᵀA the sample covariance."""
    centred = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    if len(centred) <= centred.shape[1]:
        return np.asarray(centred)
    return np.asarray(np.linalg.qr(centred, mode="r"))

"""The leading singular triples of a plane of pixels, on a public grid and within a public ball."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Float64, UInt8
from threadpoolctl import ThreadpoolController

from dpveil.mechanisms.pixel.cells import TOP

STEPS: Final = 1 << 10
"""Singular values are multiples of 1/STEPS of a grey level, far below any useful noise."""
ROWS: Final = 32
"""Rows converted to floats at once."""
SPARE: Final = 4
"""Directions kept beyond the rank, as those of nearly equal values mix."""
ITERATIONS: Final = 2
"""Subspace iterations."""

Triples = tuple[Float64[np.ndarray, "h rank"], Float64[np.ndarray, " rank"], Float64[np.ndarray, "rank w"]]
"""The leading columns of U, singular values in falling order, and the leading rows of Vᵀ."""


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread.

    A decomposition takes thousands of matrix-vector products, at each of which threads wait for one another:
    two threads take twice as long as one, and ten times as long on a busy machine.
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  brings the libraries

    return ThreadpoolController()


def leading_triples(plane: UInt8[np.ndarray, "h w"], rank: int) -> Triples:
    """Return the `rank` largest singular triples of a plane; `rank` is at most its shorter side.

    The Gram matrix of the tall side is summed in 32 bits, which saves memory and is accurate enough for
    starting directions. Subspace iterations in 64 bits refine them, and a small decomposition in the subspace
    (Rayleigh-Ritz) gives orthonormal U and V, also if singular values are zero or equal.
    """
    from scipy.linalg import blas, eigh  # slow to import, and other methods do without

    tall = plane if plane.shape[0] >= plane.shape[1] else plane.T
    side = tall.shape[1]
    products = np.zeros((side, side), np.float32, order="F")
    for rows in _strips(tall, np.float32):
        products = blas.ssyrk(1.0, rows.T, beta=1.0, c=products, lower=1, overwrite_c=1)
    chosen = (max(0, side - rank - SPARE), side - 1)
    span = eigh(products, lower=True, subset_by_index=chosen, overwrite_a=True, check_finite=False)[1]
    del products
    wide = np.linalg.qr(span.astype(np.float64))[0]
    for _ in range(ITERATIONS):
        wide = np.linalg.qr(_products(tall, wide))[0]
    u, values, mixed = np.linalg.svd(np.concatenate([rows @ wide for rows in _strips(tall)]), False)
    v = mixed[:rank] @ wide.T
    u, values = u[:, :rank], values[:rank]
    return (u, values, v) if tall is plane else (v.T, values, u.T)


def _products(tall: UInt8[np.ndarray, "h w"], wide: Float64[np.ndarray, "w n"]) -> Float64[np.ndarray, "w n"]:
    """Return the Gram matrix of `tall` times `wide`."""
    total = np.zeros_like(wide)
    for rows in _strips(tall):
        total += rows.T @ (rows @ wide)
    return total


def _strips(
    tall: UInt8[np.ndarray, "h w"], kind: type[np.floating[Any]] = np.float64
) -> Iterator[Float[np.ndarray, "rows w"]]:
    """Yield strips of rows as floats."""
    return (tall[top : top + ROWS].astype(kind) for top in range(0, len(tall), ROWS))


def whole_values(values: Float64[np.ndarray, " rank"], pixels: int) -> list[int]:
    """Return singular values as multiples of 1/STEPS, moved into the public ball around (r, 0, ..., 0).

    Levels a of 0..255 have a² ≤ 255·a, so the squared singular values sum to at most 255·Σa, and Σa is at
    most √n times the largest one: Σσ² ≤ 255·√n·σ₁, which is the ball through 0 of diameter 255·√n. Only
    rounding can leave it, and is corrected here, whatever the numerical library computed.

    >>> whole_values(np.array([255.0, 1e-12]), 1)
    [261120, 0]
    """
    radius = ball_radius(pixels)
    whole = [round(float(value) * STEPS) for value in values]
    away = [whole[0] - radius, *whole[1:]]
    squared = sum(step * step for step in away)
    if squared > radius * radius:
        length = isqrt(squared) + 1
        away = [abs(step) * radius // length * (1 if step >= 0 else -1) for step in away]
    return [away[0] + radius, *away[1:]]


def ball_radius(pixels: int) -> int:
    """Return half of 255·√n in steps, rounded down."""
    return isqrt((TOP * STEPS) ** 2 * pixels // 4)


def rebuild(triples: Triples, values: list[Fraction]) -> UInt8[np.ndarray, "h w"]:
    """Return U·diag(values)·Vᵀ, clamped to 0..255 and rounded: post-processing, strip by strip."""
    u, _, v = triples
    scaled = np.array([float(value) for value in values])[:, None] * v
    out = np.empty((len(u), v.shape[1]), np.uint8)
    for top in range(0, len(u), ROWS):
        out[top : top + ROWS] = np.rint(np.clip(u[top : top + ROWS] @ scaled, 0, TOP))
    return out

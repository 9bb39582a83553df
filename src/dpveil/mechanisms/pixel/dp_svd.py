"""DP-SVD: metric privacy for singular values (Reilly & Fan 2021 §3.3; errata E9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import isqrt, sqrt
from typing import Any, ClassVar, Final

import numpy as np
from threadpoolctl import ThreadpoolController

from dpveil.core.array_types import Float, Float64, UInt8
from dpveil.core.guarantee import Distance, Guarantee, Relation, Scope
from dpveil.core.parameters import Count, Positive
from dpveil.core.rationals import Json, root_above
from dpveil.mechanisms.pixel.base import TOP, PixelMethod, check_size
from dpveil.noise.bits import BitSource
from dpveil.noise.spherical import spherical_laplace

STEPS: Final = 1 << 10  # singular values are multiples of 1/STEPS of a grey level, far below any useful noise
ROWS: Final = 32  # rows converted to floats at once
SPARE: Final = 4  # directions kept beyond the rank, as those of nearly equal values mix
ITERATIONS: Final = 2  # subspace iterations

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
    total = np.zeros_like(wide)
    for rows in _strips(tall):
        total += rows.T @ (rows @ wide)
    return total


def _strips(
    tall: UInt8[np.ndarray, "h w"], kind: type[np.floating[Any]] = np.float64
) -> Iterator[Float[np.ndarray, "rows w"]]:
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


METRIC: Final = "L2 on the {rank} largest singular values of every channel, in steps of 1/1024"


@dataclass(frozen=True, kw_only=True)
class DPSVD(PixelMethod):
    """The `rank` largest singular values get noise of density ∝ exp(-ε‖z‖₂); U and V stay as they are.

    Singular values are rounded to multiples of 1/1024 of a level; those of all channels together get one draw
    of the continuous law in rank·c dimensions, rounded to the same grid, so that the metric guarantee is
    exact. A `rank` above the shorter side means all of them; a rank by a share of the energy would read the
    private spectrum for free. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.3, eq. 5.

    >>> DPSVD(epsilon=1, rank=6).guarantee(height=480, width=640, channels=1).kind
    'metric'
    """

    name: ClassVar[str] = "dp-svd"
    kinds: ClassVar[tuple[str, ...]] = ("metric",)
    summary: ClassVar[str] = "noise on the largest singular values, U and V as they are"
    source: ClassVar[str] = "Reilly & Fan 2021 §3.3, errata E9"
    typical: ClassVar[Mapping[str, Json]] = {"rank": 6}
    help: ClassVar[Mapping[str, str]] = {"rank": "Singular values that are kept."}

    epsilon: Positive = Positive()
    rank: Count = Count()

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ε per unit of distance, and the diameter of the public ball of singular values."""
        height, width, channels = check_size(height, width, channels)
        rank, pixels = self._rank(height, width), height * width
        return Guarantee(
            kind="metric",
            epsilon=self.epsilon,
            metric=METRIC.format(rank=rank),
            distance=Distance.of("singular-values", rank=rank, steps=STEPS),
            diameter=2 * ball_radius(pixels) * root_above(Fraction(channels)) / STEPS,
            relation=Relation("singular-values"),
            scope=Scope(
                f"{rank} singular values of {width}×{height} pixels, {channels} channels",
                (
                    f"U and V as computed: the {rank} leading left and right singular vectors of every"
                    " channel, in order; they show what the region looks like, and where singular values"
                    " are zero or equal they are arbitrary and depend on all pixels",
                    "how long the decomposition took, which depends on the pixels",
                ),
            ),
        )

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared noise of a pixel before clamping, in grey levels."""
        height, width, channels = check_size(height, width, channels)
        dimension = self._rank(height, width) * channels
        return sqrt(dimension * (dimension + 1) / (height * width * channels)) / float(self.epsilon)

    def _rank(self, height: int, width: int) -> int:
        return min(self.rank, height, width)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        rank = self._rank(height, width)
        channel_planes = (np.ascontiguousarray(image[:, :, channel]) for channel in range(channels))
        with one_thread():
            triples = [leading_triples(plane, rank) for plane in channel_planes]
        noise = iter(spherical_laplace(STEPS / self.epsilon, rank * channels, bits))
        planes = []
        for of_channel in triples:
            whole = whole_values(of_channel[1], height * width)
            planes.append(rebuild(of_channel, [Fraction(value + next(noise), STEPS) for value in whole]))
        return np.stack(planes, axis=2)

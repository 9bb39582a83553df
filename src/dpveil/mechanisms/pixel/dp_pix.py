"""DP-Pix: private pixelisation (Reilly & Fan 2021 §3; errata E12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import ClassVar

import numpy as np

from dpveil.accounting.draw_cost import LaplaceAccount, ZeroConcentrated
from dpveil.accounting.zcdp import Shifts, laplace_rho, laplace_scale, merge_shifts, pure_epsilon
from dpveil.core.array_types import UInt8
from dpveil.core.parameters import Count, Neighbourhood
from dpveil.core.rationals import root_above
from dpveil.mechanisms.method import Size
from dpveil.mechanisms.pixel.base import (
    BudgetedMethod,
    ConcentratedMethod,
    check_size,
    distinct_sizes,
    fullest_cells,
    fullest_in,
    only,
    pixelise,
)
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import check_variance, discrete_gaussian
from dpveil.noise.laplace import digit_tables, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class DPPixGaussian(ConcentratedMethod):
    """Cells of `block` × `block` pixels show their mean level plus discrete Gaussian noise.

    The noise on the integer sums has variance parameter σ² = Δ²/(2ρ), where Δ² = 255²·c·Σ t_j² is the largest
    squared L2 distance between neighbours: the m changed pixels fill the largest cells first, with t_j in
    cell j. Give `rho`, or `epsilon` and `delta`, from which the largest ρ follows by the tight conversion.
    `neighbourhood` is m, in pixels of the region (default: all of them, any-image). Raises
    `InvalidParameter`. Source: Canonne, Kamath & Steinke 2020, theorem 4.

    >>> DPPixGaussian(rho=0.5, block=16, neighbourhood=256).guarantee(height=112, width=92, channels=1).kind
    'zcdp'
    """

    name: ClassVar[str] = "dp-pix-gaussian"
    summary: ClassVar[str] = "mean level of each block, discrete Gaussian noise"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020, theorem 4; cells of Reilly & Fan 2021"

    block: Count = Count(default=1)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> ZeroConcentrated | None:
        """Return the cost of the fullest cells of all regions, or None if their variances differ."""
        variance = only(self.sum_variance(**size) for size in distinct_sizes(sizes))
        if variance is None:
            return None
        moved = fullest_in([(size["height"], size["width"]) for size in sizes], self.block, changed)
        squared = sizes[0]["channels"] * _squared_norm(moved)
        return ZeroConcentrated(squared / (2 * variance))

    def sum_variance(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return the exact variance parameter σ² of the noise on cell sums."""
        height, width, channels = check_size(height, width, channels)
        moved = fullest_cells(height, width, self.block, self.neighbourhood)
        return channels * _squared_norm(moved) / (2 * self._rho)

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return σ in grey levels on a full cell."""
        area = min(self.block, height) * min(self.block, width)
        return sqrt(self.sum_variance(height=height, width=width, channels=channels)) / area

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        check_variance(self.sum_variance(height=height, width=width, channels=channels))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        variance = self.sum_variance(height=height, width=width, channels=channels)
        return pixelise(image, self.block, lambda n: discrete_gaussian(variance, n, bits))


def _squared_norm(moved: Mapping[int, int]) -> int:
    return sum(movement**2 * count for movement, count in moved.items())


@dataclass(frozen=True, kw_only=True)
class DPPix(BudgetedMethod):
    """Cells of `block` × `block` pixels show their mean level plus discrete Laplace noise.

    Noise of one scale, 255·min(m, n)·c/ε, is added to the integer **sums** of all cells of a region with n
    pixels and c channels; then each sum is divided by the area of its cell, so smaller cells at the edge cost
    no more (errata E12). With `epsilon` and `delta`, or `rho`, the scale is the smallest that the accountant
    for many Laplace draws accepts; it is much smaller if a neighbour changes many cells, as under any-image.
    `neighbourhood` is m, in pixels of the region (default: all of them, any-image). Raises
    `InvalidParameter`. Source: Reilly & Fan 2021 §3.1, corrected.

    >>> DPPix(epsilon=20, block=16, neighbourhood=256).noise_scale(height=88, width=120, channels=3)
    38.25
    """

    name: ClassVar[str] = "dp-pix"
    kinds: ClassVar[tuple[str, ...]] = ("pure", "approximate", "zcdp")
    summary: ClassVar[str] = "mean level of each block, discrete Laplace noise"
    source: ClassVar[str] = "Reilly & Fan 2021, errata E12"
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "privacy-loss distributions of the dominating movement, and zCDP",
        "zcdp": "zCDP of the dominating movement",
    }

    block: Count = Count(default=1)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)

    def account(self, *, height: int, width: int, channels: int) -> LaplaceAccount:
        size = {"height": height, "width": width, "channels": channels}
        return LaplaceAccount(self.sum_scale(**size), self._shifts(**size))

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> LaplaceAccount | None:
        """Return the cost of the fullest cells of all regions, or None if their noise scales differ."""
        scale = only(self.sum_scale(**size) for size in distinct_sizes(sizes))
        if scale is None:
            return None
        moved = fullest_in([(size["height"], size["width"]) for size in sizes], self.block, changed)
        shifts = merge_shifts({shift: count * sizes[0]["channels"] for shift, count in moved.items()})
        return LaplaceAccount(scale, shifts)

    def sum_scale(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return the exact noise scale on cell sums: for ε alone, the L1 sensitivity over ε."""
        shifts = self._shifts(height=height, width=width, channels=channels)
        epsilon, delta, rho = self.budget
        if rho is not None:
            return root_above(laplace_rho(Fraction(1), shifts) / rho)
        if delta is not None:
            return laplace_scale(epsilon or Fraction(1), delta, shifts)
        return pure_epsilon(Fraction(1), shifts) / (epsilon or Fraction(1))

    def _shifts(self, *, height: int, width: int, channels: int) -> Shifts:
        height, width, channels = check_size(height, width, channels)
        moved = fullest_cells(height, width, self.block, self.neighbourhood)
        return merge_shifts({shift: count * channels for shift, count in moved.items()})

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the Laplace scale in grey levels on a full cell."""
        area = min(self.block, height) * min(self.block, width)
        return float(self.sum_scale(height=height, width=width, channels=channels) / area)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        digit_tables(self.sum_scale(height=height, width=width, channels=channels))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        scale = _sum_scale(self, *image.shape)
        return pixelise(image, self.block, lambda n: discrete_laplace(scale, n, bits))


@lru_cache(maxsize=64)
def _sum_scale(method: DPPix, height: int, width: int, channels: int) -> Fraction:
    """Return the noise scale, cached: exact fractions take as long as the cells of a small region."""
    return method.sum_scale(height=height, width=width, channels=channels)

"""DP-Pix with discrete Gaussian noise: zero-concentrated DP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting.account import ZeroConcentrated
from dpveil.core.parameters import Count, Neighbourhood
from dpveil.mechanisms.pixel.base import check_size, fullest_cells, fullest_in, pixelise
from dpveil.mechanisms.pixel.budget import different, only
from dpveil.mechanisms.pixel.concentrated import ConcentratedMethod
from dpveil.mechanisms.placement import Size
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import checked, discrete_gaussian


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
    one_scale: ClassVar[bool] = True

    block: Count = Count(default=1)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> ZeroConcentrated | None:
        """Return the cost of the fullest cells of all regions, or None if their variances differ."""
        variance = only(self.sum_variance(**size) for size in different(sizes))
        if variance is None:
            return None
        moved = fullest_in([(size["height"], size["width"]) for size in sizes], self.block, changed)
        squared = sizes[0]["channels"] * _squared(moved)
        return ZeroConcentrated(squared / (2 * variance))

    def sum_variance(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return the exact variance parameter σ² of the noise on cell sums."""
        height, width, channels = check_size(height, width, channels)
        moved = fullest_cells(height, width, self.block, self.neighbourhood)
        return channels * _squared(moved) / (2 * self._rho)

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return σ in grey levels on a full cell."""
        area = min(self.block, height) * min(self.block, width)
        return sqrt(self.sum_variance(height=height, width=width, channels=channels)) / area

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise `NoiseError` if the noise cannot be drawn."""
        checked(self.sum_variance(height=height, width=width, channels=channels))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        variance = self.sum_variance(height=height, width=width, channels=channels)
        return pixelise(image, self.block, lambda n: discrete_gaussian(variance, n, bits))


def _squared(moved: Mapping[int, int]) -> int:
    """Return the squared L2 norm of the shifts."""
    return sum(movement**2 * count for movement, count in moved.items())

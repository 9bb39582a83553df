"""DP-Pix with discrete Gaussian noise: zero-concentrated DP (methods §3)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting import zcdp_rho
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, NonNegative, OptionalCount, OptionalPositive, OptionalProbability
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.pixel.cells import fullest_cells, pixelise
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian


@dataclass(frozen=True, kw_only=True)
class DPPixGaussian(PixelMethod):
    """Cells of `block` × `block` pixels show their mean level plus discrete Gaussian noise.

    The noise on the integer sums has variance parameter σ² = Δ²/(2ρ), where Δ² = 255²·c·Σ t_j² is the
    largest squared L2 distance between neighbours: the m changed pixels fill the largest cells first, t_j
    in cell j. Give `rho`, or `epsilon` and `delta`, for which the largest ρ is found that the tight
    conversion accepts. `neighbourhood` is m, in pixels of the region's raster (default: all of them,
    any-image). `blur` is the standard deviation in pixels of a Gaussian blur afterwards, which costs
    nothing. Raises `InvalidParameter`. Source: methods §3; Canonne, Kamath & Steinke 2020, theorem 4.

    >>> DPPixGaussian(rho=0.5, block=16, neighbourhood=256).guarantee(height=112, width=92, channels=1).kind
    'zcdp'
    """

    name: ClassVar[str] = "dp-pix-gaussian"
    kind: ClassVar[str] = "zcdp"
    summary: ClassVar[str] = "mean level of each block, discrete Gaussian noise"
    source: ClassVar[str] = "methods §3; Canonne, Kamath & Steinke 2020"

    rho: OptionalPositive = OptionalPositive(optional=True)
    epsilon: OptionalPositive = OptionalPositive(optional=True)
    delta: OptionalProbability = OptionalProbability(optional=True)
    block: Count = Count(default=1)
    neighbourhood: OptionalCount = OptionalCount(optional=True)
    blur: NonNegative = NonNegative(default=0)

    def __post_init__(self) -> None:
        given = tuple(name for name in ("rho", "epsilon", "delta") if getattr(self, name) is not None)
        if given not in (("rho",), ("epsilon", "delta")):
            raise InvalidParameter(
                "budget",
                " and ".join(given) or None,
                "does not say how much noise" if given else "is missing",
                hint="give rho alone, or epsilon and delta; rho = 0.5 is about epsilon 4.7 at delta 1e-5",
            )

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ρ-zCDP, or (ε, δ)-DP when that was asked for, for m pixels or any two images."""
        height, width, channels = check_size(height, width, channels)
        m = self.neighbourhood
        relation = Relation("any-image") if m is None else Relation("m-pixels", m)
        scope = Scope(f"{width}×{height} pixels, {channels} channels")
        if self.rho is not None:
            return Guarantee(kind="zcdp", rho=self.rho, relation=relation, scope=scope)
        return Guarantee(
            kind="approximate", epsilon=self.epsilon, delta=self.delta, relation=relation, scope=scope
        )

    @property
    def calibration(self) -> str:
        """Which accountant chose the noise: none where ρ was given."""
        return "" if self.rho is not None else "the tight conversion of zCDP"

    def sum_variance(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return the exact variance parameter σ² of the noise on cell sums."""
        height, width, channels = check_size(height, width, channels)
        cells = fullest_cells(height, width, self.block, self.neighbourhood)
        squared = channels * sum(moved**2 * count for moved, count in cells.items())
        if self.rho is not None:
            return squared / (2 * self.rho)
        if self.epsilon is None or self.delta is None:
            raise InvalidParameter("budget", None, "is missing", hint="give rho, or epsilon and delta")
        return squared / (2 * zcdp_rho(self.epsilon, self.delta))

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return σ in grey levels on a full cell."""
        area = min(self.block, height) * min(self.block, width)
        return sqrt(self.sum_variance(height=height, width=width, channels=channels)) / area

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        variance = self.sum_variance(height=height, width=width, channels=channels)
        return pixelise(image, self.block, lambda n: discrete_gaussian(variance, n, bits), float(self.blur))

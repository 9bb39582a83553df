"""DP-Pix: private pixelisation (Reilly & Fan 2021 §3; methods §3; errata E12)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting.laplace import laplace_scale, merged
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, NonNegative, OptionalCount, OptionalProbability, Positive
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.pixel.cells import TOP, fullest_cells, pixelise
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import discrete_laplace


@dataclass(frozen=True, kw_only=True)
class DPPix(PixelMethod):
    """Cells of `block` × `block` pixels show their mean level plus discrete Laplace noise.

    One noise scale, 255·min(m, n)·c/ε, goes on the integer **sums** of all cells of a region of n pixels and
    c channels; only then is each divided by its own area, so that smaller cells at the edge cost no more
    (errata E12). With `delta` the target is (ε, δ), and the scale is the smallest that the accountant of many
    Laplace draws accepts: much smaller where a neighbour changes many cells, such as under any-image.
    `neighbourhood` is m, in pixels of the region's raster (default: all of them, any-image).
    `blur` is the standard deviation in pixels of a Gaussian blur afterwards, which costs nothing.
    Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.1, corrected.

    >>> DPPix(epsilon=20, block=16, neighbourhood=256).noise_scale(height=88, width=120, channels=3)
    38.25
    """

    name: ClassVar[str] = "dp-pix"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "mean level of each block, discrete Laplace noise"
    source: ClassVar[str] = "Reilly & Fan 2021, errata E12"

    epsilon: Positive = Positive()
    delta: OptionalProbability = OptionalProbability(optional=True)
    block: Count = Count(default=1)
    neighbourhood: OptionalCount = OptionalCount(optional=True)
    blur: NonNegative = NonNegative(default=0)

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ε-DP, or (ε, δ)-DP, for m pixels, or for any two images when no neighbourhood is set."""
        height, width, channels = check_size(height, width, channels)
        m = self.neighbourhood
        return Guarantee(
            kind=self.kind if self.delta is None else "approximate",
            epsilon=self.epsilon,
            delta=self.delta,
            relation=Relation("any-image") if m is None else Relation("m-pixels", m),
            scope=Scope(f"{width}×{height} pixels, {channels} channels"),
        )

    @property
    def calibration(self) -> str:
        """Which accountant chose the noise: none without δ."""
        return "" if self.delta is None else "privacy-loss distributions of the dominating movement, and zCDP"

    def sum_scale(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return the exact scale of the noise on cell sums: without δ, the L1 sensitivity over ε."""
        height, width, channels = check_size(height, width, channels)
        if self.delta is not None:
            moved = fullest_cells(height, width, self.block, self.neighbourhood)
            shifts = merged({shift: count * channels for shift, count in moved.items()})
            return laplace_scale(self.epsilon, self.delta, shifts)
        changed = min(self.neighbourhood or height * width, height * width)
        return TOP * changed * channels / self.epsilon

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the scale in grey levels on a full cell."""
        area = min(self.block, height) * min(self.block, width)
        return float(self.sum_scale(height=height, width=width, channels=channels) / area)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        scale = self.sum_scale(height=height, width=width, channels=channels)
        return pixelise(image, self.block, lambda n: discrete_laplace(scale, n, bits), float(self.blur))

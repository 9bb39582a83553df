"""Discrete Gaussian noise on block cosine coefficients: zero-concentrated DP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting.account import ZeroConcentrated
from dpveil.core.parameters import Count, Flag, Neighbourhood, OptionalCount
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import check_size
from dpveil.mechanisms.pixel.budget import (
    MOST_SIZES,
    different,
    only,
)
from dpveil.mechanisms.pixel.concentrated import ConcentratedMethod
from dpveil.mechanisms.pixel.dct.plan import Plan, plan, reach_of, spent
from dpveil.mechanisms.placement import Size
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import checked, discrete_gaussian

LARGEST_BLOCK: Final = 16
STRIPS: Final = 32
SMALLEST_STRIP: Final = 128
"""Blocks are drawn strip by strip, so that memory stays in proportion to the image."""


@dataclass(frozen=True, kw_only=True)
class DCTGaussian(ConcentratedMethod):
    """Cosine coefficients of blocks of at most `block` × `block` pixels get discrete Gaussian noise.

    Coefficients are whole numbers, exact, and clipped to public bounds before the noise. Its variances are
    chosen for what m changed pixels can move (`dct_plan`) and cost ρ together. `coefficients` lowest
    frequencies of each colour plane are kept (default: as many as have the least expected error). Noisy
    coefficients are shrunk towards public expectations, which costs nothing; `raw` leaves them as they are,
    for a denoiser of your own. Give `rho`, or `epsilon` and `delta`. `neighbourhood` is m, in pixels of the
    region's raster (default: all of them, any-image). Raises `InvalidParameter`. Source: Canonne,
    Kamath & Steinke 2020, theorem 4.

    >>> DCTGaussian(rho=0.5, neighbourhood=256).guarantee(height=112, width=92, channels=1).kind
    'zcdp'
    """

    name: ClassVar[str] = "dct-gaussian"
    summary: ClassVar[str] = "cosine coefficients of blocks, discrete Gaussian noise"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020, theorem 4"
    help: ClassVar[Mapping[str, str]] = {
        "coefficients": "Frequencies that are kept; default: those with the least expected error.",
        "raw": "Leave noisy coefficients as they are.",
    }

    block: Count = Count(default=8)
    coefficients: OptionalCount = OptionalCount(optional=True)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)
    raw: Flag = Flag(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block > LARGEST_BLOCK:
            raise InvalidParameter("block", self.block, f"is above {LARGEST_BLOCK}", hint="8 is usual")

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> ZeroConcentrated | None:
        """Return what noise of one plan costs over the blocks of all regions; None for several plans
        and for more than MOST_SIZES sizes, each of which takes a plan.

        *Proof.* Regions with one transform and one list of variances are one set of blocks, B in all, and
        without a common pixel a changed pixel lies in one block of them. Block j, of which t_j pixels change,
        moves its coefficients by what costs f(t_j) at most (`dct_plan`), wherever it lies, and Σ t_j is at
        most `changed` and at most the pixels of all regions. So Lagrange's bound on Σ f(t_j) holds with B
        blocks, and ρ of independent Gaussian noise adds over coefficients and blocks. ∎
        """
        every_size = different(sizes)
        if len(every_size) > MOST_SIZES:
            return None
        made = only(self.plan(**size) for size in every_size)
        if made is None:
            return None
        pixels = sum(size["height"] * size["width"] for size in sizes)
        reaches = [
            reach_of((size["height"], size["width"], size["channels"]), self.block, 1) for size in sizes
        ]
        blocks = sum(reach.blocks for reach in reaches)
        moved = changed if changed is None else min(changed, pixels)
        return ZeroConcentrated(spent(made, blocks, moved))

    def plan(self, *, height: int, width: int, channels: int) -> Plan:
        """Return which coefficients of a region are kept, and the exact variance parameter σ² of each."""
        size = check_size(height, width, channels)
        return plan(size, self.block, self.neighbourhood, self.coefficients, self._rho, self.raw)

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return σ in grey levels on the mean of a full block, before shrinking, over the channels."""
        made = self.plan(height=height, width=width, channels=channels)
        area = made.transform.tall * made.transform.wide
        return sqrt(float(np.mean(made.noise()[::area])) / area)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise `NoiseError` where the noise cannot be drawn."""
        for variance, _ in self.plan(height=height, width=width, channels=channels).groups():
            checked(variance)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        made = self.plan(height=height, width=width, channels=channels)
        down, across = -(-height // made.transform.tall), -(-width // made.transform.wide)
        rows = made.transform.tall * max(1, -(-max(SMALLEST_STRIP, down * across // STRIPS) // across))
        out = np.empty_like(image, order="C")
        for top in range(0, height, rows):
            out[top : top + rows] = self._strip(made, image[top : top + rows], bits)
        return out

    def _strip(
        self, made: Plan, image: UInt8[np.ndarray, "h w c"], bits: BitSource
    ) -> UInt8[np.ndarray, "h w c"]:
        """Return the private image of whole rows of blocks."""
        transform = made.transform
        exact = np.clip(transform.forward(image), -transform.bounds, transform.bounds)
        noisy = np.zeros(exact.shape)
        for variance, columns in made.groups():
            noise = discrete_gaussian(variance, len(exact) * len(columns), bits)
            noisy[:, columns] = exact[:, columns] + noise.reshape(-1, len(columns))
        noisy /= np.sqrt(transform.norms)
        return transform.backward(noisy if self.raw else noisy * made.shrinkage(), *image.shape[:2])

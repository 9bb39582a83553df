"""Discrete Gaussian noise on block cosine coefficients, under zCDP."""

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
"""Strips into which an image is divided, so that memory stays in proportion to the image."""
SMALLEST_STRIP: Final = 128
"""Fewest blocks of a strip."""


@dataclass(frozen=True, kw_only=True)
class DCTGaussian(ConcentratedMethod):
    """Cosine coefficients of blocks of at most `block` × `block` pixels get discrete Gaussian noise.

    Coefficients are exact integers, clipped to public bounds before the noise. The variances are calibrated
    to what m changed pixels can move (`plan`) and cost ρ in total. The `coefficients` lowest frequencies of
    each colour plane are kept (default: the number with the least expected error). Noisy coefficients are
    shrunk towards public expectations, which is post-processing; `raw` leaves them as they are, for a
    denoiser of your own. Give `rho`, or `epsilon` and `delta`. `neighbourhood` is m, in pixels of the
    region's raster (default: all of them, any-image). Raises `InvalidParameter`. Source: Canonne, Kamath &
    Steinke 2020, theorem 4.

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
        """Return the cost of the blocks of all regions, or None if regions have different plans or more than
        `MOST_SIZES` sizes, each of which needs a plan.

        *Proof.* Regions with one transform and one list of variances are one set of B blocks, and as they are
        disjoint, a changed pixel lies in one of these. Block j, of which t_j pixels change, moves its
        coefficients by what costs at most f(t_j) (`plan`), wherever it lies, and Σ t_j is at most `changed`
        and at most the pixels of all regions. So Lagrange's bound on Σ f(t_j) holds with B blocks, and ρ of
        independent Gaussian noise adds over coefficients and blocks. ∎
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
        """Return σ in grey levels of the mean of a full block, before shrinkage, averaged over channels."""
        made = self.plan(height=height, width=width, channels=channels)
        area = made.transform.tall * made.transform.wide
        return sqrt(float(np.mean(made.noise()[::area])) / area)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise `NoiseError` if the noise cannot be drawn."""
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
        """Return the private image of some rows of blocks."""
        transform = made.transform
        exact = np.clip(transform.forward(image), -transform.bounds, transform.bounds)
        noisy = np.zeros(exact.shape)
        for variance, columns in made.groups():
            noise = discrete_gaussian(variance, len(exact) * len(columns), bits)
            noisy[:, columns] = exact[:, columns] + noise.reshape(-1, len(columns))
        noisy /= np.sqrt(transform.norms)
        return transform.backward(noisy if self.raw else noisy * made.shrinkage(), *image.shape[:2])

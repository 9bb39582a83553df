"""Randomised response on bit planes of an integer wavelet (LDP-Slicing, 2026)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Bool, Float64, Int16, UInt8

from dpveil.accounting.pairs import DrawsAccount, MirrorPair
from dpveil.accounting.search import least_scale
from dpveil.core.numbers import root_above
from dpveil.core.parameters import Count, Flag, Neighbourhood
from dpveil.mechanisms.pixel.base import check_size
from dpveil.mechanisms.pixel.bit_planes.haar import COARSE, forward, inverse, padded
from dpveil.mechanisms.pixel.bit_planes.planes import MOST, Band, Plane, allocated, bands, squared_error
from dpveil.mechanisms.pixel.budget import MOST_SIZES, BudgetedMethod, different, only
from dpveil.mechanisms.placement import Size
from dpveil.noise.bernoulli import bernoulli
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import TOTAL

STRIP: Final = 1 << 18
"""Pixels transformed at once."""
NEARLY: Final = 1 - Fraction(1, 1 << 40)
"""Factor on the budget that leaves room for rounding of sums."""
MIDDLE: Final = 128


@dataclass(frozen=True, kw_only=True)
class BitPlanes(BudgetedMethod):
    """Randomised response on every bit of wavelet coefficients, which are then decoded.

    Groups of 2^k × 2^k pixels, k = `wavelet`, are transformed by an integer Haar wavelet, each channel
    separately. Every bit plane of every coefficient, signs included, goes through randomised response or is
    dropped. ε is divided by public rules for the least squared error. One pixel changes all bits of its own
    group in all channels, so m pixels change up to m groups, and a group may cost ε/min(m, groups).
    `drop_coarse` drops the means of groups, as published; else they cost budget like all other bits. With
    `epsilon` and `delta`, or `rho`, planes get the most that the accountant of many flips accepts.
    `neighbourhood` is m, in pixels of the region's raster (default: all of them, any-image). Raises
    `InvalidParameter`. Source: LDP-Slicing 2026; accounts, means and decoding are ours.

    >>> print(BitPlanes(epsilon=20, neighbourhood=1).guarantee(height=120, width=88, channels=3))
    20-DP, m-pixels (m = 1)
    """

    name: ClassVar[str] = "bit-planes"
    kinds: ClassVar[tuple[str, ...]] = ("pure", "approximate", "zcdp")
    summary: ClassVar[str] = "randomised response on bits of wavelet coefficients"
    source: ClassVar[str] = "LDP-Slicing 2026"
    help: ClassVar[Mapping[str, str]] = {
        "wavelet": "Groups of 2^N × 2^N pixels are transformed together.",
        "drop_coarse": "Leave the means of groups out.",
    }
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "privacy-loss distributions of randomised response, and zCDP",
        "zcdp": "zCDP of randomised response",
    }

    wavelet: Count = Count(default=1, low=1, high=8)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)
    drop_coarse: Flag = Flag(default=False)

    def groups(self, *, height: int, width: int) -> int:
        """Return how many groups a neighbour can change."""
        every = self._every(height, width)
        return every if self.neighbourhood is None else min(every, self.neighbourhood)

    def _every(self, height: int, width: int) -> int:
        """Return the number of groups."""
        return -(-height >> self.wavelet) * -(-width >> self.wavelet)

    def bands(self, *, height: int, width: int, channels: int) -> tuple[Band, ...]:
        """Return the bands of a group in one channel, with the ε of every plane."""
        height, width, channels = check_size(height, width, channels)
        return _calibrated(self, self.groups(height=height, width=width) * channels)

    def account(self, *, height: int, width: int, channels: int) -> DrawsAccount:
        """Return the cost of the bits of all groups that a neighbour changes, in all channels."""
        made = self.bands(height=height, width=width, channels=channels)
        return _account(made, self.groups(height=height, width=width) * channels)

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> DrawsAccount | None:
        """Return the cost of the groups that `changed` pixels can lie in, or None if regions have different
        budgets or more than `MOST_SIZES` sizes.

        *Proof.* If the planes of all regions have the same budgets, every group of each is drawn by one law,
        dominated by flips of the same number and kind. A changed pixel lies in at most one region and there
        in one group, and everything else has the same law: so at most min(changed, groups of all regions)
        groups differ, in all their bits and channels, and flips are independent. ∎
        """
        every_size = different(sizes)
        if len(every_size) > MOST_SIZES:
            return None
        made = only(self.bands(**size) for size in every_size)
        if made is None:
            return None
        every = sum(self._every(size["height"], size["width"]) for size in sizes)
        groups = every if changed is None else min(every, changed)
        return _account(made, groups * sizes[0]["channels"])

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared error on photos under the model of `planes`."""
        return sqrt(squared_error(self.bands(height=height, width=width, channels=channels), self.wavelet))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        made = self.bands(height=height, width=width, channels=channels)
        side = 1 << self.wavelet
        rows = max(1, STRIP // (side * width)) * side
        out = np.empty_like(image)
        for top in range(0, height, rows):
            strip = image[top : top + rows]
            coefficients = forward(padded(strip, side), self.wavelet)
            seen = [_seen(band, values, bits) for band, (_, values) in zip(made, coefficients, strict=True)]
            out[top : top + rows] = inverse(seen)[: len(strip), :width]
        return out


def _account(made: Sequence[Band], groups: int) -> DrawsAccount:
    """Return the cost of all drawn planes of so many groups, each coefficient a separate draw."""
    counts: dict[int, int] = {}
    for band in made:
        for plane in band.planes:
            if plane.epsilon:
                counts[plane.flip] = counts.get(plane.flip, 0) + band.count * groups
    return DrawsAccount(tuple((MirrorPair((TOTAL - flip, flip)), n) for flip, n in sorted(counts.items())))


@lru_cache(maxsize=64)
def _calibrated(method: BitPlanes, groups: int) -> tuple[Band, ...]:
    """Return the bands for a budget shared by so many groups; each channel counts as one."""

    def made(scale: Fraction) -> tuple[Band, ...]:
        return allocated(min(float(1 / scale), full), method.wavelet, coarse=not method.drop_coarse)

    def spent(scale: Fraction) -> Fraction:
        return method.spent(_account(made(scale), groups))

    limit = method.limit
    full = MOST * sum(band.count * len(band.planes) for band in bands(method.wavelet))
    # ρ is at most ε²/2 of the sum for one group, as draws of ε_i have Σ ε_i² ≤ (Σ ε_i)²
    valid = limit / groups if method.rho is None else 1 / root_above(groups / (2 * limit))
    scale = 1 / (valid * NEARLY)
    if method.kind == "pure":
        return made(scale)
    sharpest = 1 / Fraction(full)
    if scale <= sharpest or spent(sharpest) <= limit:
        return made(sharpest)
    return made(least_scale(spent, limit, scale))


def _seen(
    band: Band, values: Int16[np.ndarray, "rows columns c"], bits: BitSource
) -> Int16[np.ndarray, "rows columns c"]:
    """Return coefficients decoded from noisy bits: affine estimates of bits and sign."""
    if not any(plane.epsilon for plane in band.planes):
        return np.full(values.shape, MIDDLE if band.kind == COARSE else 0, np.int16)
    sizes = np.abs(values)
    unseen = sum((plane.value * plane.prior for plane in band.bits if not plane.epsilon), 0.0)
    total = np.full(values.shape, unseen)
    for plane in band.bits:
        if plane.epsilon:
            total += plane.value * _estimate(plane, (sizes & plane.value) != 0, bits)
    if band.kind != COARSE:
        total *= 1 - 2 * _estimate(band.planes[0], values < 0, bits)
    decoded: Int16[np.ndarray, "rows columns c"] = np.rint(total).astype(np.int16)
    return decoded


def _estimate(
    plane: Plane, truth: Bool[np.ndarray, "rows columns c"], bits: BitSource
) -> Float64[np.ndarray, "rows columns c"]:
    """Return the posterior mean of every bit after one flip each; the only place that reads this plane's
    bits.
    """
    flips = bernoulli(Fraction(plane.flip, TOTAL), truth.size, bits).reshape(truth.shape)
    means: Float64[np.ndarray, "rows columns c"] = np.array(plane.decoded)[(truth ^ flips).view(np.uint8)]
    return means

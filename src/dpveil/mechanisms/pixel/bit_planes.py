"""Randomised response on bit planes of an integer wavelet (LDP-Slicing, 2026)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import cosh, exp, log1p, sqrt, tanh
from typing import ClassVar, Final

import numpy as np

from dpveil.accounting.dominating_pairs import DrawsAccount, MirrorPair
from dpveil.accounting.zcdp import least_scale
from dpveil.core.array_types import Bool, Float64, Int16, Shaped, UInt8
from dpveil.core.parameters import Count, Flag, Neighbourhood
from dpveil.core.rationals import root_above
from dpveil.mechanisms.method import Size
from dpveil.mechanisms.pixel.base import MOST_SIZES, BudgetedMethod, check_size, distinct_sizes, only
from dpveil.noise.bernoulli import bernoulli
from dpveil.noise.bits import BitSource
from dpveil.noise.integer_matrix import ROW_SUM
from dpveil.noise.laplace import exp_below

Bands = list[tuple[str, Int16[np.ndarray, "rows columns c"]]]
"""Pairs (kind, coefficients), the finest level first, the means of whole groups last."""

COARSE, DETAIL, CROSS = "coarse", "detail", "cross"
"""Means 0..255; differences -255..255 along one axis; differences of differences, -510..510."""


def pad_edges(image: UInt8[np.ndarray, "h w c"], side: int) -> UInt8[np.ndarray, "H W c"]:
    """Return the image with its last row and column repeated up to multiples of `side`.

    Repeated pixels stay in the group of their original, so that no pixel affects another group.
    """
    height, width = image.shape[:2]
    return np.pad(image, ((0, -height % side), (0, -width % side), (0, 0)), mode="edge")


def forward(image: UInt8[np.ndarray, "h w c"], levels: int) -> Bands:
    """Return the coefficients of an image whose sides are multiples of 2^levels.

    >>> group = np.array([[[9], [4]], [[1], [2]]], np.uint8)
    >>> [(kind, band.ravel().tolist()) for kind, band in forward(group, 1)]
    [('detail', [5]), ('detail', [2]), ('cross', [6]), ('coarse', [3])]
    """
    bands: Bands = []
    means = image.astype(np.int16)
    for _ in range(levels):
        low, high = _split(means, 1)
        means, down = _split(low, 0)
        across, cross = _split(high, 0)
        bands += [(DETAIL, down), (DETAIL, across), (CROSS, cross)]
    return [*bands, (COARSE, means)]


def inverse(bands: list[Int16[np.ndarray, "rows columns c"]]) -> UInt8[np.ndarray, "h w c"]:
    """Return the image of these coefficients, clamped to 0..255; it inverts `forward` exactly."""
    means = bands[-1]
    for level in reversed(range(0, len(bands) - 1, 3)):
        down, across, cross = bands[level : level + 3]
        means = _join_halves(_join_halves(means, down, 0), _join_halves(across, cross, 0), 1)
    return np.asarray(np.clip(means, 0, 255).astype(np.uint8))


def _split(
    values: Shaped[np.ndarray, "h w c"], axis: int
) -> tuple[Int16[np.ndarray, ...], Int16[np.ndarray, ...]]:
    """Return floor((a + b)/2) and a - b for adjacent a, b along an axis."""
    a, b = (values[start::2] if axis == 0 else values[:, start::2] for start in (0, 1))
    return (a + b) >> 1, a - b


def _join_halves(
    low: Int16[np.ndarray, "h w c"], high: Int16[np.ndarray, "h w c"], axis: int
) -> Int16[np.ndarray, ...]:
    """Return the values whose `_split` along an axis is `low` and `high`."""
    a = low + ((high + 1) >> 1)
    shape = list(low.shape)
    shape[axis] *= 2
    out = np.empty(shape, np.int16)
    for start, part in ((0, a), (1, a - high)):
        if axis == 0:
            out[start::2] = part
        else:
            out[:, start::2] = part
    return out


BITS: Final = {COARSE: 8, DETAIL: 8, CROSS: 9}  # bits of a coefficient, by kind
MEAN: Final = {DETAIL: 8.0, CROSS: 4.0}  # mean magnitude of the model at level 1, by kind
RAREST: Final = 2.0**-10
"""Smallest probability of a bit in the model, so that a set bit is believed once it is paid for."""
SHARE: Final = {COARSE: 4.0, DETAIL: 1.0, CROSS: 0.25}
"""Squared error that a squared error of 1 adds to its four pixels or means in total."""
MOST_EPSILON: Final = 44.0  # of a plane: beyond, a flip is rarer than 2^-63, which 64 bits cannot represent
GRID: Final = tuple(MOST_EPSILON * 2 ** (-step / 4) for step in range(60))  # ε tried for a plane
ENOUGH: Final = 1e-11  # fraction of a budget that may stay unspent: floating-point sums do not resolve it
DIGITS: Final = 192  # bits of precision for e^-ε


@dataclass(frozen=True)
class Plane:
    """One bit of a coefficient: its `value` if set (0 for the sign), its chance in the model, and its ε.

    The model is a guess about photos; it shapes budgets and decoding, never the guarantee. Means are uniform
    on 0..255, signs fair, and magnitudes geometric with a mean of 8 times the level for details and half of
    that for cross differences, but no bit has a probability below 1/1024. Under the model all bits are
    independent (as the digits of a geometric variable are), so the best estimate of each is affine in the
    output of randomised response, with an error in closed form.
    """

    value: int
    prior: float
    epsilon: float = 0.0

    @property
    def flip(self) -> int:
        """The probability of a flip in units of 2^-64, rounded up, so that ln((1 - q)/q) is at most ε."""
        shrink = Fraction(exp_below(Fraction(self.epsilon), DIGITS) + 3, 1 << DIGITS)
        return min(ROW_SUM // 2, int(ROW_SUM * shrink / (1 + shrink)) + 1)

    @property
    def posterior_means(self) -> tuple[float, float]:
        """The posterior mean of the bit after a 0, and after a 1."""
        q = self.flip / ROW_SUM
        one, none = self.prior * (1 - q), (1 - self.prior) * (1 - q)
        return self.prior * q / (self.prior * q + none), one / (one + (1 - self.prior) * q)

    def posterior_variance(self, epsilon: float) -> float:
        """Return the variance of the posterior mean under the model at another ε: 0 at ε = 0."""
        return _posterior_variance(self.prior, epsilon)

    @property
    def missing(self) -> float:
        """The expected posterior variance of the bit."""
        q = exp(-self.epsilon) / (1 + exp(-self.epsilon))
        return self.prior * (1 - self.prior) * q * (1 - q) / _plain_planes(self.prior, q)


@lru_cache(maxsize=1 << 14)
def _posterior_variance(prior: float, epsilon: float) -> float:
    """Return the variance of the posterior mean of a bit with this prior at ε."""
    q = exp(-epsilon) / (1 + exp(-epsilon))
    return (prior * (1 - prior) * (1 - 2 * q)) ** 2 / _plain_planes(prior, q)


def _plain_planes(prior: float, q: float) -> float:
    """Return the product of the probabilities of the outputs 0 and 1."""
    one = prior + q * (1 - 2 * prior)
    return one * (1 - one)


@dataclass(frozen=True)
class Band:
    """Coefficients of one kind and level: `count` per group, and the `weight` of their squared error.

    `planes` are the sign, except for means, and then the bits from the highest.
    """

    kind: str
    count: int
    weight: float
    planes: tuple[Plane, ...]

    @property
    def epsilon(self) -> float:
        """The total ε of all planes of all its coefficients in one group."""
        return self.count * sum(plane.epsilon for plane in self.planes)

    @property
    def bits(self) -> tuple[Plane, ...]:
        """The planes without the sign."""
        return self.planes if self.kind == COARSE else self.planes[1:]

    @property
    def error(self) -> float:
        """The squared error of one coefficient under the model."""
        missing = sum(plane.value**2 * plane.missing for plane in self.bits)
        if self.kind == COARSE:
            return missing
        mean = sum(plane.value * plane.prior for plane in self.bits)
        second = mean**2 + sum(plane.value**2 * plane.prior * (1 - plane.prior) for plane in self.bits)
        unsure = 1 / cosh(self.planes[0].epsilon / 2) ** 2  # 1 - tanh²
        return unsure * second + (1 - unsure) * missing

    def gain(self, place: int) -> Callable[[float], float]:
        """Return the reduction of the model's squared error as a function of the ε of one plane."""
        plane = self.planes[place]
        sign = 1.0 if self.kind == COARSE else tanh(self.planes[0].epsilon / 2) ** 2
        if plane.value:
            worth, before = self.weight * sign * plane.value**2, plane.posterior_variance(plane.epsilon)
            return lambda epsilon: worth * (plane.posterior_variance(epsilon) - before)
        mean = sum(plane.value * plane.prior for plane in self.bits)
        known = sum(plane.value**2 * plane.posterior_variance(plane.epsilon) for plane in self.bits)
        size = self.weight * (mean**2 + known)
        return lambda epsilon: size * (tanh(epsilon / 2) ** 2 - sign)

    def best(self, left: float) -> tuple[float, int, float]:
        """Return the largest gain per unit of budget, with the plane and the ε that reach it."""
        found = (0.0, 0, 0.0)
        for place, plane in enumerate(self.planes):
            top, gain = min(MOST_EPSILON, plane.epsilon + left / self.count), self.gain(place)
            for epsilon in (top, *(step for step in GRID if plane.epsilon < step < top)):
                if epsilon > plane.epsilon:
                    ratio = gain(epsilon) / (self.count * (epsilon - plane.epsilon))
                    found = max(found, (ratio, place, epsilon))
        return found

    def with_epsilon(self, place: int, epsilon: float) -> Band:
        """Return the band with another ε for one plane."""
        planes = list(self.planes)
        planes[place] = replace(planes[place], epsilon=epsilon)
        return replace(self, planes=tuple(planes))


def bands(levels: int) -> list[Band]:
    """Return the bands of a group of 2^levels × 2^levels pixels, in the order of `forward`."""
    made = []
    for level in range(1, levels + 1):
        count, pixels = 4 ** (levels - level), 4.0 ** (level - 1)
        made += [_band(kind, level, count, pixels) for kind in (DETAIL, DETAIL, CROSS)]
    return [*made, _band(COARSE, levels, 1, 4.0 ** (levels - 1))]


def _band(kind: str, level: int, count: int, pixels: float) -> Band:
    values = [1 << bit for bit in reversed(range(BITS[kind]))]
    if kind == COARSE:
        planes = [Plane(value, 0.5) for value in values]
    else:
        rate = log1p(1 / (MEAN[kind] * level))
        planes = [
            Plane(0, 0.5),
            *(Plane(value, max(RAREST, 1 / (1 + exp(value * rate)))) for value in values),
        ]
    return Band(kind, count, SHARE[kind] * pixels, tuple(planes))


def allocate_budget(budget: float, levels: int, *, coarse: bool) -> tuple[Band, ...]:
    """Return the bands of a group in one channel, with planes whose ε sum to at most `budget`.

    Greedy on the concave envelope: repeatedly take the step, small or large, with the largest reduction of
    the model's squared error per cost. Near ε = 0 half a step is worth a quarter: planes get much or nothing.
    """
    made, left = bands(levels), budget
    open_ = range(len(made) if coarse else len(made) - 1)
    best = {place: made[place].best(left) for place in open_}
    while left > ENOUGH * budget:
        place = max(best, key=lambda place: best[place][0])
        ratio, plane, epsilon = best[place]
        cost = made[place].count * (epsilon - made[place].planes[plane].epsilon)
        if ratio <= 0:
            break
        if cost > left * (1 + 1e-13):  # found when more of the budget was left
            again = made[place].best(left)
            best[place] = (0.0, 0, 0.0) if again == best[place] else again  # too expensive by rounding only
            continue
        left -= cost
        made[place] = made[place].with_epsilon(plane, epsilon)
        best[place] = made[place].best(left)
    return tuple(made)


def squared_error(made: Sequence[Band], levels: int) -> float:
    """Return the mean squared error of a pixel under the model, before rounding and clamping."""
    return float(sum(band.weight * band.count * band.error for band in made) / 4**levels)


STRIP: Final = 1 << 18  # pixels transformed at once
NEARLY: Final = 1 - Fraction(1, 1 << 40)  # factor on the budget that leaves room for rounding of sums
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
        return -(-height >> self.wavelet) * -(-width >> self.wavelet)

    def bands(self, *, height: int, width: int, channels: int) -> tuple[Band, ...]:
        """Return the bands of a group in one channel, with the ε of every plane."""
        height, width, channels = check_size(height, width, channels)
        return _calibrate(self, self.groups(height=height, width=width) * channels)

    def account(self, *, height: int, width: int, channels: int) -> DrawsAccount:
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
        every_size = distinct_sizes(sizes)
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
            coefficients = forward(pad_edges(strip, side), self.wavelet)
            seen = [
                _decode_noisy(band, values, bits)
                for band, (_, values) in zip(made, coefficients, strict=True)
            ]
            out[top : top + rows] = inverse(seen)[: len(strip), :width]
        return out


def _account(made: Sequence[Band], groups: int) -> DrawsAccount:
    """Return the cost of all drawn planes of so many groups, each coefficient a separate draw."""
    counts: dict[int, int] = {}
    for band in made:
        for plane in band.planes:
            if plane.epsilon:
                counts[plane.flip] = counts.get(plane.flip, 0) + band.count * groups
    return DrawsAccount(tuple((MirrorPair((ROW_SUM - flip, flip)), n) for flip, n in sorted(counts.items())))


@lru_cache(maxsize=64)
def _calibrate(method: BitPlanes, groups: int) -> tuple[Band, ...]:
    """Return the bands for a budget shared by so many groups; each channel counts as one."""

    def bands_for(scale: Fraction) -> tuple[Band, ...]:
        return allocate_budget(min(float(1 / scale), full), method.wavelet, coarse=not method.drop_coarse)

    def spent(scale: Fraction) -> Fraction:
        return method.spent(_account(bands_for(scale), groups))

    limit = method.limit
    full = MOST_EPSILON * sum(band.count * len(band.planes) for band in bands(method.wavelet))
    # ρ is at most ε²/2 of the sum for one group, as draws of ε_i have Σ ε_i² ≤ (Σ ε_i)²
    valid = limit / groups if method.rho is None else 1 / root_above(groups / (2 * limit))
    scale = 1 / (valid * NEARLY)
    if method.kind == "pure":
        return bands_for(scale)
    sharpest = 1 / Fraction(full)
    if scale <= sharpest or spent(sharpest) <= limit:
        return bands_for(sharpest)
    return bands_for(least_scale(spent, limit, scale))


def _decode_noisy(
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
    return np.asarray(np.rint(total).astype(np.int16))


def _estimate(
    plane: Plane, truth: Bool[np.ndarray, "rows columns c"], bits: BitSource
) -> Float64[np.ndarray, "rows columns c"]:
    """Return every bit's posterior mean after one flip each; nothing else reads this plane's bits."""
    flips = bernoulli(Fraction(plane.flip, ROW_SUM), truth.size, bits).reshape(truth.shape)
    return np.asarray(np.array(plane.posterior_means)[(truth ^ flips).view(np.uint8)])

"""Budgets of bit planes: how valuable each bit of each coefficient is, from public knowledge alone.

The model is a guess about photos, and shapes budgets and decoding, never the guarantee: means are uniform on
0..255, signs fair, and magnitudes geometric with a mean of 8 times the level for details, half of that for
cross differences, but no bit is rarer than one in 1024. Under it all bits are independent (the digits of a
geometric variable are), so the best estimate of each is affine in what randomised response shows, and its
error has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import cosh, exp, log1p, tanh
from typing import Final

from dpveil.mechanisms.pixel.bit_planes.haar import COARSE, CROSS, DETAIL
from dpveil.noise.laplace import exp_below
from dpveil.noise.matrix import TOTAL

BITS: Final = {COARSE: 8, DETAIL: 8, CROSS: 9}
MEAN: Final = {DETAIL: 8.0, CROSS: 4.0}
RAREST: Final = 2.0**-10
"""No bit is taken to be rarer, so that one that is set is believed once it is paid for."""
SHARE: Final = {COARSE: 4.0, DETAIL: 1.0, CROSS: 0.25}
"""What a squared error of one adds to those of its four pixels or means, summed."""
MOST: Final = 44.0
"""Beyond this ε a flip is rarer than 2^-63, which 64 bits cannot represent."""
GRID: Final = tuple(MOST * 2 ** (-step / 4) for step in range(60))
ENOUGH: Final = 1e-11
"""Part of a budget that is not worth spending: sums of floating-point numbers do not resolve it."""
DIGITS: Final = 192


@dataclass(frozen=True)
class Plane:
    """One bit of a coefficient: `value` if it is set (0 for the sign), how likely that is, and its ε."""

    value: int
    prior: float
    epsilon: float = 0.0

    @property
    def flip(self) -> int:
        """The chance of a flip, in units of 2^-64: rounded up, so that ln((1 - q)/q) is at most ε."""
        shrink = Fraction(exp_below(Fraction(self.epsilon), DIGITS) + 3, 1 << DIGITS)
        return min(TOTAL // 2, int(TOTAL * shrink / (1 + shrink)) + 1)

    @property
    def decoded(self) -> tuple[float, float]:
        """The posterior mean of the bit where 0 is seen, and where 1 is."""
        q = self.flip / TOTAL
        one, none = self.prior * (1 - q), (1 - self.prior) * (1 - q)
        return self.prior * q / (self.prior * q + none), one / (one + (1 - self.prior) * q)

    def known(self, epsilon: float) -> float:
        """Return the variance of the posterior mean under the model, for another ε: 0 at ε = 0."""
        return _known(self.prior, epsilon)

    @property
    def missing(self) -> float:
        """The expected posterior variance of the bit: what remains unknown."""
        q = exp(-self.epsilon) / (1 + exp(-self.epsilon))
        return self.prior * (1 - self.prior) * q * (1 - q) / _seen(self.prior, q)


@lru_cache(maxsize=1 << 14)
def _known(prior: float, epsilon: float) -> float:
    q = exp(-epsilon) / (1 + exp(-epsilon))
    return (prior * (1 - prior) * (1 - 2 * q)) ** 2 / _seen(prior, q)


def _seen(prior: float, q: float) -> float:
    """Return the product of the chances to see a 0 and to see a 1."""
    one = prior + q * (1 - 2 * prior)
    return one * (1 - one)


@dataclass(frozen=True)
class Band:
    """Coefficients of one kind and level: how many a group has, and what their squared error weighs.

    `planes` are the sign, for all but the means, and then the bits from the highest.
    """

    kind: str
    count: int
    weight: float
    planes: tuple[Plane, ...]

    @property
    def epsilon(self) -> float:
        """What all planes of all its coefficients in one group cost together."""
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
        """Return by how much the model's squared error falls if one plane gets an ε, as a function of it."""
        plane = self.planes[place]
        sign = 1.0 if self.kind == COARSE else tanh(self.planes[0].epsilon / 2) ** 2
        if plane.value:
            worth, before = self.weight * sign * plane.value**2, plane.known(plane.epsilon)
            return lambda epsilon: worth * (plane.known(epsilon) - before)
        mean = sum(plane.value * plane.prior for plane in self.bits)
        known = sum(plane.value**2 * plane.known(plane.epsilon) for plane in self.bits)
        size = self.weight * (mean**2 + known)
        return lambda epsilon: size * (tanh(epsilon / 2) ** 2 - sign)

    def best(self, left: float) -> tuple[float, int, float]:
        """Return the most that a unit of budget gains here, at which plane, and by raising its ε to what."""
        found = (0.0, 0, 0.0)
        for place, plane in enumerate(self.planes):
            top, gain = min(MOST, plane.epsilon + left / self.count), self.gain(place)
            for epsilon in (top, *(step for step in GRID if plane.epsilon < step < top)):
                if epsilon > plane.epsilon:
                    ratio = gain(epsilon) / (self.count * (epsilon - plane.epsilon))
                    found = max(found, (ratio, place, epsilon))
        return found

    def raised(self, place: int, epsilon: float) -> Band:
        """Return the band with another ε for one plane."""
        planes = list(self.planes)
        planes[place] = replace(planes[place], epsilon=epsilon)
        return replace(self, planes=tuple(planes))


def bands(levels: int) -> list[Band]:
    """Return the bands of a group of 2^levels × 2^levels pixels, in the order of `haar.forward`."""
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


def allocated(budget: float, levels: int, *, coarse: bool) -> tuple[Band, ...]:
    """Return the bands of a group in one channel with planes whose ε sum to `budget` at most.

    Greedy on the concave envelope: again and again the step, small or large, that lowers the model's squared
    error most for what it costs. Near ε = 0 half a step is worth a quarter, so planes get much or nothing.
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
        if cost > left * (1 + 1e-13):  # found when there was more
            again = made[place].best(left)
            best[place] = (0.0, 0, 0.0) if again == best[place] else again  # too dear by rounding alone
            continue
        left -= cost
        made[place] = made[place].raised(plane, epsilon)
        best[place] = made[place].best(left)
    return tuple(made)


def squared_error(made: Sequence[Band], levels: int) -> float:
    """Return the mean squared error of a pixel under the model, before rounding and clamping."""
    return float(sum(band.weight * band.count * band.error for band in made) / 4**levels)

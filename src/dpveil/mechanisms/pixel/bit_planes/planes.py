"""Budgets of bit planes: the value of each bit of each coefficient, from public knowledge alone.

The model is a guess about photos; it shapes budgets and decoding, never the guarantee. Means are uniform on
0..255, signs fair, and magnitudes geometric with a mean of 8 times the level for details and half of that for
cross differences, but no bit has a probability below 1/1024. Under the model all bits are independent (as the
digits of a geometric variable are), so the best estimate of each is affine in the output of randomised
response, with an error in closed form.
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
"""Bits of a coefficient, by kind."""
MEAN: Final = {DETAIL: 8.0, CROSS: 4.0}
"""Mean magnitude of the model at level 1, by kind."""
RAREST: Final = 2.0**-10
"""Smallest probability of a bit in the model, so that a set bit is believed once it is paid for."""
SHARE: Final = {COARSE: 4.0, DETAIL: 1.0, CROSS: 0.25}
"""Squared error that a squared error of 1 adds to its four pixels or means in total."""
MOST: Final = 44.0
"""Largest ε of a plane: beyond, a flip is rarer than 2^-63, which 64 bits cannot represent."""
GRID: Final = tuple(MOST * 2 ** (-step / 4) for step in range(60))
"""ε tried for a plane."""
ENOUGH: Final = 1e-11
"""Fraction of a budget that may stay unspent: floating-point sums do not resolve it."""
DIGITS: Final = 192
"""Bits of precision for e^-ε."""


@dataclass(frozen=True)
class Plane:
    """One bit of a coefficient: its `value` if set (0 for the sign), its probability in the model, and its
    ε.
    """

    value: int
    prior: float
    epsilon: float = 0.0

    @property
    def flip(self) -> int:
        """The probability of a flip in units of 2^-64, rounded up, so that ln((1 - q)/q) is at most ε."""
        shrink = Fraction(exp_below(Fraction(self.epsilon), DIGITS) + 3, 1 << DIGITS)
        return min(TOTAL // 2, int(TOTAL * shrink / (1 + shrink)) + 1)

    @property
    def decoded(self) -> tuple[float, float]:
        """The posterior mean of the bit after a 0, and after a 1."""
        q = self.flip / TOTAL
        one, none = self.prior * (1 - q), (1 - self.prior) * (1 - q)
        return self.prior * q / (self.prior * q + none), one / (one + (1 - self.prior) * q)

    def known(self, epsilon: float) -> float:
        """Return the variance of the posterior mean under the model at another ε: 0 at ε = 0."""
        return _known(self.prior, epsilon)

    @property
    def missing(self) -> float:
        """The expected posterior variance of the bit."""
        q = exp(-self.epsilon) / (1 + exp(-self.epsilon))
        return self.prior * (1 - self.prior) * q * (1 - q) / _seen(self.prior, q)


@lru_cache(maxsize=1 << 14)
def _known(prior: float, epsilon: float) -> float:
    """Return the variance of the posterior mean of a bit with this prior at ε."""
    q = exp(-epsilon) / (1 + exp(-epsilon))
    return (prior * (1 - prior) * (1 - 2 * q)) ** 2 / _seen(prior, q)


def _seen(prior: float, q: float) -> float:
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
            worth, before = self.weight * sign * plane.value**2, plane.known(plane.epsilon)
            return lambda epsilon: worth * (plane.known(epsilon) - before)
        mean = sum(plane.value * plane.prior for plane in self.bits)
        known = sum(plane.value**2 * plane.known(plane.epsilon) for plane in self.bits)
        size = self.weight * (mean**2 + known)
        return lambda epsilon: size * (tanh(epsilon / 2) ** 2 - sign)

    def best(self, left: float) -> tuple[float, int, float]:
        """Return the largest gain per unit of budget, with the plane and the ε that reach it."""
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
    """Return the bands of a group in one channel, with planes whose ε sum to at most `budget`.

    Greedy on the concave envelope: repeatedly take the step, small or large, with the largest reduction of
    the model's squared error per cost. Near ε = 0 half a step is worth a quarter, so planes get much or
    nothing.
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
        made[place] = made[place].raised(plane, epsilon)
        best[place] = made[place].best(left)
    return tuple(made)


def squared_error(made: Sequence[Band], levels: int) -> float:
    """Return the mean squared error of a pixel under the model, before rounding and clamping."""
    return float(sum(band.weight * band.count * band.error for band in made) / 4**levels)

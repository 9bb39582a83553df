"""Laws of scalar mechanisms to 50 digits, from the definitions, independent of the mechanisms.

A law gives the probability that the response to an answer lies between two points of the lattice, also in
tails where 64-bit floats are 0. It shares with the mechanism the numbering of points, and the scale or the
stairs of the noise, whose sufficiency is what is tested.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import mpmath
import numpy as np

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import ExplicitFair, ScalarMechanism, Staircase
from dpveil.noise.matrix import IntegerMatrix, log_above

DIGITS: Final = 50
MP: Final = mpmath.mp.clone()
MP.dps = DIGITS
Real = Any
"""A number of mpmath."""
End = int | None


def real(value: Fraction | int) -> Real:
    """Return a rational with 50 digits."""
    return MP.mpf(value.numerator) / value.denominator


@lru_cache(maxsize=64)
def decay(rate: Fraction) -> Callable[[int], Real]:
    """Return k ↦ e^(-rate·k), with cached powers."""
    numerator, denominator = rate.numerator, rate.denominator
    return lru_cache(maxsize=1 << 15)(lambda k: MP.exp(-MP.mpf(numerator * k) / denominator))


class Noise(ABC):
    """A symmetric law on the integers."""

    @abstractmethod
    def tail(self, j: int) -> Real:
        """Return P(Z ≥ j) for j ≥ 1."""

    def between(self, low: End, high: End) -> Real:
        """Return P(low ≤ Z ≤ high), from tails that do not cancel."""
        if low is not None and high is not None and low > high:
            return MP.mpf(0)
        if low is not None and low >= 1:
            return self.tail(low) - (0 if high is None else self.tail(high + 1))
        if high is not None and high <= -1:
            return self.between(-high, None if low is None else -low)
        return 1 - sum(self.tail(j) for j in (_after(low, -1), _after(high, 1)) if j is not None)


def _after(end: End, sign: int) -> End:
    return None if end is None else sign * end + 1


@dataclass(frozen=True)
class Exponential(Noise):
    """Discrete Laplace noise: P(z) = (1 - r)/(1 + r)·r^|z| with r = e^(-rate)."""

    rate: Fraction

    def tail(self, j: int) -> Real:
        """Return r^j/(1 + r)."""
        return self._power(j) / self._whole

    @cached_property
    def _power(self) -> Callable[[int], Real]:
        return decay(self.rate)

    @cached_property
    def _whole(self) -> Real:
        return 1 + self._power(1)


@dataclass(frozen=True)
class Stairs(Noise):
    """Heights e^(-ε·k), where k is the stair of |z|; the first stair ends before `inner`."""

    epsilon: Fraction
    width: int
    inner: int

    def _above(self, j: int) -> Real:
        """Return the sum of heights from j ≥ 0 on: the rest of the stair of j, and all further stairs."""
        below = 0 if j < self.inner else (j - self.inner) // self.width + 1
        rest = self.inner + below * self.width - j
        return self._drop**below * (rest + self._behind)

    @cached_property
    def _drop(self) -> Real:
        return MP.exp(-real(self.epsilon))

    @cached_property
    def _behind(self) -> Real:
        return self.width * self._drop / (1 - self._drop)

    @cached_property
    def _whole(self) -> Real:
        return 2 * self._above(0) - 1

    def tail(self, j: int) -> Real:
        """Return the share of the heights from j on."""
        return self._above(j) / self._whole


class PointDistribution(ABC):
    """The law of responses for every answer, on the points of a lattice."""

    @abstractmethod
    def mass(self, x: int, low: End, high: End) -> Real:
        """Return the probability of a response from `low` to `high` to answer `x` (None: unbounded)."""

    def log(self, x: int, y: int) -> Real:
        """Return the log probability of response `y`, or minus infinity."""
        known = self._logs.get((x, y))
        if known is None:
            chance = self.mass(x, y, y)
            known = self._logs[x, y] = MP.log(chance) if chance > 0 else -MP.inf
        return known

    @cached_property
    def _logs(self) -> dict[tuple[int, int], Real]:
        return {}


@dataclass(frozen=True)
class Spans:
    """The allowed points of a mechanism: its range and gaps, in steps from point 0."""

    low: End
    high: End
    gaps: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, method: ScalarMechanism) -> Spans:
        """Return those of a mechanism."""
        start, step = method.lattice.origin, method.lattice.step

        def place(value: Fraction | None) -> End:
            return None if value is None else round((value - start) / step)

        allowed = method.allowed_range
        gaps = tuple((round((a - start) / step), round((b - start) / step)) for a, b in allowed.gaps)
        return cls(place(allowed.low), place(allowed.high), gaps)

    def pieces(self) -> Iterator[tuple[End, End]]:
        """Yield first and last point of every span between gaps."""
        first = self.low
        for left, right in self.gaps:
            yield first, left
            first = right
        yield first, self.high

    def within(self, low: End, high: End) -> Iterator[tuple[End, End]]:
        """Yield the part of every span between two points."""
        for first, last in self.pieces():
            a = first if low is None else low if first is None else max(low, first)
            b = last if high is None else high if last is None else min(high, last)
            if a is None or b is None or a <= b:
                yield a, b


@dataclass(frozen=True)
class Snapped(PointDistribution):
    """Additive noise, snapped to the nearest allowed point, the lower one halfway; or `lost` beyond them."""

    spans: Spans
    noise: Noise
    lost: bool = False

    def mass(self, x: int, low: End, high: End) -> Real:
        """Return the probability of the noise that ends in every span, with the halves of adjacent gaps."""
        total = MP.mpf(0)
        for a, b in self.spans.within(low, high):
            start, stop = (a, b) if self.lost else self._reach(a, b)
            start, stop = (None if start is None else start - x), (None if stop is None else stop - x)
            total += self.noise.between(start, stop)
        return total

    def _reach(self, a: End, b: End) -> tuple[End, End]:
        """Return the first and the last point that are snapped to a to b."""
        before = {right: (left + right) // 2 + 1 for left, right in self.spans.gaps}
        behind = {left: (left + right) // 2 for left, right in self.spans.gaps}
        first = None if a is None or a == self.spans.low else before.get(a, a)
        last = None if b is None or b == self.spans.high else behind.get(b, b)
        return first, last


@dataclass(frozen=True)
class Truncated(PointDistribution):
    """P(y | x) ∝ e^(-rate(x)·|y - x|) over allowed y; `rates` may differ by answer (as published)."""

    spans: Spans
    rate: Fraction
    rates: tuple[tuple[int, Fraction], ...] = ()

    def mass(self, x: int, low: End, high: End) -> Real:
        """Return the share of the weights."""
        power = self._power(x)
        return sum(_powers(x, a, b, power) for a, b in self.spans.within(low, high)) / self._total(x)

    def _total(self, x: int) -> Real:
        known = self._totals.get(x)
        if known is None:
            known = self._totals[x] = sum(_powers(x, a, b, self._power(x)) for a, b in self.spans.pieces())
        return known

    def _power(self, x: int) -> Callable[[int], Real]:
        return self._decays.get(x) or self._decays[None]

    @cached_property
    def _totals(self) -> dict[int, Real]:
        return {}

    @cached_property
    def _decays(self) -> dict[int | None, Callable[[int], Real]]:
        return {None: decay(self.rate), **{x: decay(rate) for x, rate in self.rates}}


def _powers(x: int, low: End, high: End, power: Callable[[int], Real]) -> Real:
    """Return the sum of e^(-rate·|y - x|) for y from low to high."""
    if low is not None and low >= x:
        cut = 0 if high is None else power(high - low + 1)
        return power(low - x) * (1 - cut) / (1 - power(1))
    if high is not None and high <= x:
        return _powers(-x, -high, None if low is None else -low, power)
    return _powers(x, x, high, power) + _powers(x, low, x - 1, power)


@dataclass(frozen=True)
class Table(PointDistribution):
    """Tabulated probabilities, a row for each answer; rows of integers are in units of 2^-64."""

    points: tuple[int, ...]
    rows: tuple[tuple[Any, ...], ...]
    unit: int = 1

    def mass(self, x: int, low: End, high: End) -> Real:
        """Return the sum of the row's entries."""
        row = self.rows[self.points.index(x)]
        inside = (
            chance
            for y, chance in zip(self.points, row, strict=True)
            if (low is None or low <= y) and (high is None or y <= high)
        )
        return sum(inside, MP.mpf(0)) / self.unit


def integer_distribution(points: Sequence[int], matrix: IntegerMatrix) -> Table:
    """Return the law of an integer matrix."""
    return Table(tuple(points), matrix.weights, 1 << 64)


def fair_distribution(method: ExplicitFair) -> Table:
    """Return formula 5.73 with its constants: 5.74 for even sizes, the corrected one for odd (errata E11)."""
    size = (method.lattice.size or 1) - 1
    a = MP.exp(-real(method.budget / method.lattice.reach))
    return _fair(size, a, even_at_odd=False)


def _fair(size: int, a: Real, *, even_at_odd: bool) -> Table:
    if size % 2 == 0 or even_at_odd:
        truth = (1 - a) / (1 + a - 2 * a ** (MP.mpf(size) / 2 + 1))
    else:
        truth = (1 - a) / ((1 + a) * (1 - a ** ((size + 1) // 2)))
    rows = []
    for x in range(size + 1):
        near = min(x, size - x)
        far = [abs(x - y) for y in range(size + 1)]
        rows.append(tuple(truth * a ** (d if d < near else (d + near + 1) // 2) for d in far))
    return Table(tuple(range(size + 1)), tuple(rows))


def published_fair_distribution(method: ExplicitFair) -> Table:
    """Return formulas 5.73 and 5.74 as printed."""
    size = (method.lattice.size or 1) - 1
    return _fair(size, MP.exp(-real(method.budget / method.lattice.reach)), even_at_odd=True)


def stairs_of(method: Staircase, epsilon: Fraction | None = None) -> Stairs:
    """Return the stairs of formula 5.69, the first rounded to whole steps and at least one."""
    reach = method.lattice.reach
    inner = int(MP.nint(reach / (1 + MP.exp(real(method.budget) / 2))))
    return Stairs(epsilon or method.budget, reach, min(max(inner, 1), reach))


def _uniform(method: ScalarMechanism) -> Table:
    points = tuple(method.lattice.points.tolist())
    return Table(points, ((1,) * len(points),) * len(points), len(points))


def _snapped_law(method: ScalarMechanism) -> Snapped:
    return Snapped(Spans.of(method), Exponential(method.budget / method.lattice.reach))


DISTRIBUTIONS: Final[dict[str, Callable[[Any], PointDistribution]]] = {
    "laplace": _snapped_law,
    "geometric": _snapped_law,
    "staircase": lambda method: Snapped(Spans.of(method), stairs_of(method)),
    "truncated-laplace": lambda method: Truncated(Spans.of(method), method.lattice.step / method.scale),
    "explicit-fair": fair_distribution,
    "uniform": _uniform,
}
"""The law by definition, by mechanism name; for others the integers are the definition."""


@lru_cache(maxsize=256)
def distribution_of(method: ScalarMechanism) -> PointDistribution:
    """Return the law that a mechanism should have: by its definition, or else its integers."""
    if method.name in DISTRIBUTIONS:
        return DISTRIBUTIONS[method.name](method)
    if method.integers is None:
        raise InvalidParameter(
            "mechanism", method.name, "has no distribution to hold it against", hint="add it to DISTRIBUTIONS"
        )
    return integer_distribution(method.lattice.points.tolist(), method.integers)


# The privacy loss of neighbouring tables over all released numbers, which are drawn independently.
#
# A mechanism's integers are its law. Where it has none, its law by definition is evaluated at an end, at both
# answers and far out; between these, log-ratios of such laws change direction at stairs only.

UNBOUNDED: Final = Fraction(10**6)
"""Stands for an infinite loss."""
ROUNDED: Final = Fraction(1, 10**30)
"""A bound on the error of log-ratios with 50 digits, and of integers that are rounded up."""
PRINTED: Final = 45
FAR: Final = 600
"""Noise scales beyond both answers at which tails are evaluated."""


@dataclass(frozen=True)
class Number:
    """One released number: a mechanism, and the true answer as a point on its lattice."""

    mechanism: ScalarMechanism
    point: int

    def __hash__(self) -> int:
        """Return a hash without the mechanism's settings, which are slow to hash and rarely differ."""
        return hash((self.mechanism.name, self.point))


Released = tuple[Number, ...]
"""All numbers released about one table."""


def release_points(mechanism: ScalarMechanism, points: Iterable[int]) -> Released:
    """Return numbers that are drawn by one mechanism."""
    return tuple(Number(mechanism, int(point)) for point in points)


def cost(one: Released | None, other: Released | None) -> Fraction:
    """Return the largest log-ratio of all numbers released about two tables, rounded up; None is a refusal.

    As numbers are drawn independently, the largest log-ratios add up. Tables with different counts of
    numbers, or of which only one is refused, are distinguished with certainty.
    """
    if one is None or other is None:
        return Fraction(0) if one is other else UNBOUNDED
    if len(one) != len(other):
        return UNBOUNDED
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    there = sum((loss(a, b) for a, b in pairs), Fraction(0))
    back = sum((loss(b, a) for a, b in pairs), Fraction(0))
    return min(max(there, back), UNBOUNDED)


@lru_cache(maxsize=1 << 16)
def loss(one: Number, other: Number) -> Fraction:
    """Return max ln P(y | one)/P(y | other) over all responses y, rounded up."""
    if one.mechanism.integers is not None and other.mechanism.integers is not None:
        first, second = chances(one), chances(other)
        if any(weight and not second.get(value) for value, weight in first.items()):
            return UNBOUNDED
        return log_above(max(Fraction(weight, second[value]) for value, weight in first.items() if weight))
    if one.mechanism != other.mechanism:
        return UNBOUNDED  # the data decide how noise is made
    distribution = distribution_of(one.mechanism)
    most = max(
        distribution.log(one.point, y) - distribution.log(other.point, y) for y in _looked_at(one, other)
    )
    return max(Fraction(0), Fraction(MP.nstr(most, PRINTED)))


@lru_cache(maxsize=1 << 12)
def chances(number: Number) -> dict[Fraction, int]:
    """Return the probability of every possible response, in units of 2^-64."""
    lattice, matrix = number.mechanism.lattice, number.mechanism.integers
    if matrix is None:
        return {}
    row = matrix.weights[int(np.searchsorted(lattice.points, number.point))]
    values = [lattice.origin + int(point) * lattice.step for point in lattice.points]
    return dict(zip(values, row, strict=True))


def _looked_at(one: Number, other: Number) -> list[int]:
    """Return the responses to evaluate: at ends, at and around both answers, a stair away, and far out."""
    mechanism: Any = one.mechanism
    lattice = mechanism.lattice
    far = FAR * max(1, round(lattice.reach / mechanism.budget))
    ends = [end for span in lattice.spans for end in span if end is not None]
    near = [point + step for point in (one.point, other.point) for step in (-1, 0, 1)]
    stairs = [point + sign * lattice.reach for point in (one.point, other.point) for sign in (-1, 1)]
    out = [one.point - far, other.point + far, one.point + far, other.point - far]
    found = np.unique(np.array([*ends, *near, *stairs, *out], np.int64))
    return [int(point) for point in found[lattice.is_allowed(found)]]

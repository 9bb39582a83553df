"""Interval arithmetic for exact sampling: lazy uniform numbers, and decimals that enclose results.

A draw is a function of uniform numbers of which only the leading bits are known, so every number computed
from them is an interval. More bits are taken until a comparison or a rounding is certain. No kept library
does this: `mpmath.iv` has one precision for all threads of a process, and here each call has its own.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource

MOST_BITS: Final = 6000  # known bits of one uniform number beyond which a draw gives up with `NoiseError`
HALF: Final = Decimal("0.5")
Interval = tuple[Decimal, Decimal]
"""Lower and upper bound of a number."""


class Uniform:
    """A uniform number in [0, 1) with `length` known leading bits, and an independent random sign."""

    def __init__(self, word: int) -> None:
        self.negative, self.value, self.length = bool(word >> 63), word & (1 << 63) - 1, 63

    def extend(self, bits: BitSource) -> None:
        """Take 64 more bits. Raises `NoiseError` beyond `MOST_BITS`."""
        if self.length > MOST_BITS:
            raise NoiseError("a coordinate of the noise was not settled")
        self.value, self.length = self.value << 64 | int(bits.words(1)[0]), self.length + 64

    def ends(self) -> tuple[Fraction, Fraction]:
        """Return the bounds that the known bits imply."""
        unit = 1 << self.length
        return Fraction(self.value, unit), Fraction(self.value + 1, unit)


Pair = tuple[Uniform, Uniform]


def in_disc(bits: BitSource) -> Pair:
    """Return a uniform point of the unit disc without its centre, by rejection, each part with a sign."""
    while True:
        first, second = (Uniform(int(word)) for word in bits.words(2))
        low, high = _square(first, second)
        while low < 1 < high or low == 0:
            first.extend(bits)
            second.extend(bits)
            low, high = _square(first, second)
        if high <= 1:
            return first, second


def _square(first: Uniform, second: Uniform) -> tuple[Fraction, Fraction]:
    (a, b), (c, d) = first.ends(), second.ends()
    return a * a + c * c, b * b + d * d


class Enclosing:
    """Interval arithmetic with `digits` decimal digits: lower bounds are rounded down, upper bounds up.

    `Decimal.ln` and `sqrt` are correctly rounded to nearest, so their results are moved outward by one unit
    in the last place.
    """

    def __init__(self, digits: int) -> None:
        self.below, self.above = (
            Context(digits, rounding, MIN_EMIN, MAX_EMAX) for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )

    def of(self, low: Fraction, high: Fraction | None = None) -> Interval:
        high = low if high is None else high
        return (
            self.below.divide(Decimal(low.numerator), Decimal(low.denominator)),
            self.above.divide(Decimal(high.numerator), Decimal(high.denominator)),
        )

    def add(self, a: Interval, b: Interval) -> Interval:
        return self.below.add(a[0], b[0]), self.above.add(a[1], b[1])

    def subtract(self, a: Interval, b: Interval) -> Interval:
        return self.below.subtract(a[0], b[1]), self.above.subtract(a[1], b[0])

    def negate(self, a: Interval) -> Interval:
        """Return -a without rounding; the unary minus of `Decimal` would round to the caller's context."""
        return a[1].copy_negate(), a[0].copy_negate()

    def multiply(self, a: Interval, b: Interval) -> Interval:
        if a[0] >= 0 and b[0] >= 0:
            return self.below.multiply(a[0], b[0]), self.above.multiply(a[1], b[1])
        corners = [(x, y) for x in a for y in b]
        return (
            min(self.below.multiply(x, y) for x, y in corners),
            max(self.above.multiply(x, y) for x, y in corners),
        )

    def divide(self, a: Interval, b: Interval) -> Interval:
        inverse = self.below.divide(Decimal(1), b[1]), self.above.divide(Decimal(1), b[0])
        return self.multiply(a, inverse)

    def root(self, a: Interval) -> Interval:
        low = self.below.next_minus(self.below.sqrt(a[0])) if a[0] > 0 else Decimal(0)
        return max(Decimal(0), low), self.above.next_plus(self.above.sqrt(a[1]))

    def log(self, a: Interval) -> Interval:
        low = self.below.next_minus(self.below.ln(a[0])) if a[0] > 0 else Decimal("-Infinity")
        return low, self.above.next_plus(self.above.ln(a[1]))

    def nearest(self, a: Interval) -> int | None:
        """Return the integer nearest to a, or None if the two ends round to different ones."""
        low = self.below.add(a[0], HALF).to_integral_value(ROUND_FLOOR)
        high = self.above.add(a[1], HALF).to_integral_value(ROUND_FLOOR)
        return int(low) if low == high else None

    def squares(self, pairs: list[Pair]) -> list[Interval]:
        """Return the squares of independent Gaussians of variance 1/2, two for every point of the unit disc.

        With s = a² + b² for a point (a, b), a·√(-ln(s)/s) and b·√(-ln(s)/s) are independent and Gaussian.
        Source: Marsaglia's polar method.
        """
        found = []
        for pair in pairs:
            length = self.of(*_square(*pair))
            low, high = self.negate(self.log(length))
            # The upper bound of ln(s) can be above 0, although s ≤ 1.
            factor = self.divide((max(Decimal(0), low), high), length)
            for number in pair:
                least, most = number.ends()
                found.append(self.multiply(self.of(least * least, most * most), factor))
        return found

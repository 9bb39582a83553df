"""Noise whose density falls with its Euclidean length, exp(-‖y‖₂/scale), rounded to whole numbers, exactly.

In i dimensions the length is a Gamma(i) variable times the scale and the direction is uniform. Both are
computed from uniform numbers of which only the leading bits are known, with decimals that enclose the true
value on both sides; more bits are taken until every coordinate can be rounded in one way only. What comes out
is the rounding of the continuous law: no distance to bound. The time depends on the random bits alone.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource

MOST_BITS: Final = 6000


class Uniform:
    """A uniform number in [0, 1), of which `length` leading bits are known, and a sign beside it."""

    def __init__(self, word: int) -> None:
        self.negative, self.value, self.length = bool(word >> 63), word & (1 << 63) - 1, 63

    def extend(self, bits: BitSource) -> None:
        """Take 64 more bits."""
        if self.length > MOST_BITS:
            raise NoiseError("a coordinate of the noise was not settled")
        self.value, self.length = self.value << 64 | int(bits.words(1)[0]), self.length + 64

    def ends(self) -> tuple[Fraction, Fraction]:
        """Return the least and the largest number that it can be."""
        unit = 1 << self.length
        return Fraction(self.value, unit), Fraction(self.value + 1, unit)


def spherical_laplace(scale: Fraction, dimension: int, bits: BitSource) -> list[int]:
    """Return the coordinates, each rounded to the nearest integer, of one point with that density.

    `scale` is any positive rational, `dimension` at least 1. Any two centres that are whole numbers are
    ε·d-indistinguishable with ε = 1/scale and d Euclidean: by the triangle inequality the densities differ by
    at most that factor, and rounding is post-processing. Source: Reilly & Fan 2021 eq. 5, by Marsaglia's
    polar method.

    >>> from dpveil.noise.bits import SeededBits
    >>> len(spherical_laplace(Fraction(100), 3, SeededBits(1)))
    3
    """
    if scale <= 0 or dimension < 1:
        raise NoiseError(f"no noise of scale {float(scale):.3g} in {dimension} dimensions")
    pairs = [_in_disc(bits) for _ in range(-(-dimension // 2))]
    lengths = [Uniform(int(word)) for word in bits.words(dimension)]
    while True:
        sizes = _rounded(scale, dimension, pairs, lengths)
        if sizes is not None:
            signs = [number.negative for pair in pairs for number in pair]
            return [-size if minus else size for size, minus in zip(sizes, signs, strict=False)]
        for number in (*lengths, *(number for pair in pairs for number in pair)):
            number.extend(bits)


def _in_disc(bits: BitSource) -> tuple[Uniform, Uniform]:
    """Return a uniform point of the disc without its centre."""
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


def _rounded(
    scale: Fraction, dimension: int, pairs: list[tuple[Uniform, Uniform]], lengths: list[Uniform]
) -> list[int] | None:
    """Return the rounded sizes of the coordinates, or None where the known bits do not decide.

    With s the squared length of a point (a, b) in the disc, a·√(-2·ln(s)/s) and b times the same are two
    independent Gaussians. Of i of them g, and u_1, ..., u_i uniform, scale·(-ln Πu)·g/‖g‖ has the law.
    Everything is positive, so a bound of one side follows from the bounds of the parts.
    """
    below, above = _contexts(lengths[0].length)
    low, high = Decimal(1), Decimal(1)
    for small, large in (number.ends() for number in lengths):
        low, high = below.multiply(low, _decimal(small, below)), above.multiply(high, _decimal(large, above))
    if low == 0:
        return None
    least, most = _minus_log(high, below), _minus_log(low, above)
    squares = []
    for pair in pairs:
        s_low, s_high = (_decimal(s, work) for s, work in zip(_square(*pair), (below, above), strict=True))
        q_low = below.divide(_minus_log(s_high, below), s_high)
        q_high = above.divide(_minus_log(s_low, above), s_low)
        for a, b in (number.ends() for number in pair):
            square = (_decimal(a * a, below), _decimal(b * b, above))
            squares.append((below.multiply(square[0], q_low), above.multiply(square[1], q_high)))
    squares = squares[:dimension]
    total_low, total_high = Decimal(0), Decimal(0)
    for square_low, square_high in squares:
        total_low, total_high = below.add(total_low, square_low), above.add(total_high, square_high)
    if total_low == 0:
        return None
    factor_low = below.divide(_power(least, scale, below), total_high)
    factor_high = above.divide(_power(most, scale, above), total_low)
    sizes = [
        (_nearest(below.multiply(factor_low, a), below), _nearest(above.multiply(factor_high, b), above))
        for a, b in squares
    ]
    return [a for a, _ in sizes] if all(a == b for a, b in sizes) else None


def _contexts(digits: int) -> tuple[Context, Context]:
    """Return arithmetic that rounds down, and one that rounds up; as many digits as bits are plenty."""
    below, above = (
        Context(digits, rounding, MIN_EMIN, MAX_EMAX) for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return below, above


def _decimal(value: Fraction, work: Context) -> Decimal:
    return work.divide(Decimal(value.numerator), Decimal(value.denominator))


def _outward(value: Decimal, work: Context) -> Decimal:
    """Return a bound in the direction of `work` for what `ln` and `sqrt` have rounded to nearest."""
    return work.next_minus(value) if work.rounding == ROUND_FLOOR else work.next_plus(value)


def _minus_log(value: Decimal, work: Context) -> Decimal:
    """Return -ln(value), rounded as `work` says; the inverse is taken so that nothing changes sides."""
    return max(Decimal(0), _outward(work.ln(work.divide(Decimal(1), value)), work))


def _power(length: Decimal, scale: Fraction, work: Context) -> Decimal:
    """Return (scale·length)²."""
    product = work.multiply(_decimal(scale, work), length)
    return work.multiply(product, product)


def _nearest(square: Decimal, work: Context) -> int:
    """Return ⌊√square + 1/2⌋, its root rounded as `work` says."""
    root = max(Decimal(0), _outward(work.sqrt(square), work))
    return int(work.add(root, Decimal("0.5")))

"""Independent chances to lose everything: what δ of one pixel is for a group of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

EXACT_BITS: Final = 4096
"""Powers that have at most so many bits are computed exactly; longer ones are rounded to `WORK_BITS`."""
WORK_BITS: Final = 256
DIGITS: Final = 12


def any_of(chance: Fraction, count: int) -> Fraction:
    """Return 1 - (1 - chance)^count, rounded up to twelve decimals: that at least one of `count` happens.

    >>> any_of(Fraction(1, 100), 1), any_of(Fraction(1, 100), 2)
    (Fraction(1, 100), Fraction(199, 10000))
    """
    if chance.denominator.bit_length() * count <= EXACT_BITS:
        exact = 1 - (1 - chance) ** count
    else:
        exact = 1 - Fraction(_power_below(1 - chance, count), 1 << WORK_BITS)
    unit = 10**DIGITS
    return Fraction(-(-exact.numerator * unit // exact.denominator), unit)


def _power_below(base: Fraction, count: int) -> int:
    """Return base^count in units of 2^-WORK_BITS, never too high: every product is rounded down."""
    square, result = (base.numerator << WORK_BITS) // base.denominator, 1 << WORK_BITS
    while count:
        if count & 1:
            result = result * square >> WORK_BITS
        square = square * square >> WORK_BITS
        count >>= 1
    return result

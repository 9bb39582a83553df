"""The law of the MSE exponential mechanism as integers, which are both certified and drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpveil.accounting.pairs import MirrorPair, extremes
from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel.cells import TOP
from dpveil.noise.laplace import exp_below
from dpveil.noise.matrix import SHRINKS, IntegerMatrix, quantise

DIGITS: Final = 128
"""Bits of precision of exponentials."""
MARGINS: Final = (Fraction(0), *SHRINKS, *(1 - Fraction(1, 1 << k) for k in range(1, 12, 2)), Fraction(1))
"""Fractions of the rate given up for rounding, one after another; the last leaves uniform levels."""


def shown_levels(levels: int) -> list[int]:
    """Return the k possible grey levels 255·j/(k - 1), rounded half up.

    >>> shown_levels(4), shown_levels(3)
    ([0, 85, 170, 255], [0, 128, 255])
    """
    return [(2 * TOP * j + levels - 1) // (2 * (levels - 1)) for j in range(levels)]


def squares(levels: int, x: int) -> list[int]:
    """Return the squared distances of level x to the k levels 255·j/(k - 1), in units of 1/(k - 1)²."""
    return [(x * (levels - 1) - TOP * j) ** 2 for j in range(levels)]


def rows(rate: Fraction, levels: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the integer laws of the true levels 0, ..., count - 1; see `law`."""
    exponents = [squares(levels, x) for x in range(count)]
    unit = rate / (TOP * (levels - 1)) ** 2
    weight = lru_cache(maxsize=None)(lambda square: max(1, exp_below(unit * square, DIGITS)))
    return quantise([[weight(square - min(row)) for square in row] for row in exponents]).weights


@lru_cache(maxsize=256)
def pair(rate: Fraction, levels: int) -> MirrorPair:
    """Return the pair of rows 0 and 255, which dominates all others if `extremes` certifies it."""
    return MirrorPair(rows(rate, levels, 1)[0])


def law(rate: Fraction, levels: int) -> IntegerMatrix:
    """Return rows x = 0..255: level 255·j/(k - 1) has probability ∝ e^(-rate·distance²/255²).

    Row 255 - x is row x reversed, so that normalising constants agree exactly, as in the formula.
    """
    half = rows(rate, levels, (TOP + 1) // 2)
    return IntegerMatrix((*half, *(row[::-1] for row in reversed(half))))


def certified_law(
    rate: Fraction, levels: int, within: Callable[[MirrorPair], bool]
) -> tuple[IntegerMatrix, MirrorPair]:
    """Return the law closest to `rate` whose dominating pair is `within` the budget, and that pair.

    Rounding to integers can raise a cost above the formula's, so the rate is lowered until the integers
    themselves are within the budget. Raises `NoiseError` if none are: even a uniform law costs something
    unless its probabilities are multiples of 2^-64.
    """
    for margin in MARGINS:
        lower = rate * (1 - margin)
        if within(pair(lower, levels)):
            matrix = law(lower, levels)
            worst = extremes(matrix)
            if within(worst):
                return matrix, worst
    raise NoiseError(
        f"64-bit chances of {levels} levels cannot carry {float(rate):.3g} a draw",
        hint="raise the budget, or choose a larger block or a power of two levels",
    )

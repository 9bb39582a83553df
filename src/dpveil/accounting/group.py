"""Group privacy, from m pixels to a whole region, and the probability of at least one failure."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpveil.core.guarantee import Guarantee, Relation
from dpveil.core.numbers import float_above

MOST_POWER: Final = 700
"""Exponent kε above which δ is taken as 1: e^(kε) is near the largest float."""
SMALLEST: Final = Fraction(1, 10**300)
"""Replaces smaller ε above 0; δ of a group grows with ε, so this is sound."""
SLACK: Final = Fraction(1, 2**40)
"""A bound on the relative rounding error of the exponentials, which is a few units of 2^-53."""
EXACT_BITS: Final = 4096
"""Powers with at most this many bits are computed exactly; longer ones are rounded to `WORK_BITS`."""
WORK_BITS: Final = 256
DIGITS: Final = 12
"""Decimals of a probability that is stated."""


def whole_region(guarantee: Guarantee, pixels: int) -> Guarantee | None:
    """Return the guarantee about any two photos that follows by group privacy, or None if no rule is known.

    k·m pixels are k steps of m. Chaining the definition gives kε for pure guarantees and (kε, δ·(1 + e^ε + …
    + e^((k-1)ε))) for approximate ones, rounded up; zCDP gives k²ρ (Bun & Steinke 2016, proposition 1.9).
    `pixels` is the number of pixels in the region.
    """
    if guarantee.relation.m is None:
        return guarantee
    steps = -(-pixels // guarantee.relation.m)
    if steps <= 1:
        return guarantee
    epsilon, delta, rho = (getattr(guarantee, name) or Fraction(0) for name in ("epsilon", "delta", "rho"))
    rules: dict[str, dict[str, Fraction]] = {
        "pure": {"epsilon": epsilon * steps},
        "approximate": {"epsilon": epsilon * steps, "delta": _chained(epsilon, delta, steps)},
        "zcdp": {"rho": rho * steps**2},
    }
    if guarantee.kind not in rules:
        return None
    return replace(guarantee, relation=Relation("any-image"), **rules[guarantee.kind])  # type: ignore[arg-type]


def _chained(epsilon: Fraction, delta: Fraction, steps: int) -> Fraction:
    """Return δ·(e^(kε) - 1)/(e^ε - 1), rounded up and at most one."""
    if epsilon == 0:
        return min(Fraction(1), steps * delta)
    power = steps * max(epsilon, SMALLEST)
    if power > MOST_POWER:
        return Fraction(1)
    growth = math.expm1(float_above(power)) / math.expm1(-float_above(-max(epsilon, SMALLEST)))
    return min(Fraction(1), delta * Fraction(growth) * (1 + SLACK))


def any_of(chance: Fraction, count: int) -> Fraction:
    """Return the probability that at least one of `count` independent events happens, rounded up to 12
    decimals.

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
    """Return base^count in units of 2^-WORK_BITS, rounded down at every product."""
    square, result = (base.numerator << WORK_BITS) // base.denominator, 1 << WORK_BITS
    while count:
        if count & 1:
            result = result * square >> WORK_BITS
        square = square * square >> WORK_BITS
        count >>= 1
    return result

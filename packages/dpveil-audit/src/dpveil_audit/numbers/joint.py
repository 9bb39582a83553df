"""The privacy loss of neighbouring tables over all released numbers, which are drawn independently.

A mechanism's integers are its law. Where it has none, its law by definition is evaluated at an end, at both
answers and far out; between these, log-ratios of such laws change direction at stairs only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.matrix import log_above
from dpveil_audit.scalar.laws import MP, distribution_of

UNBOUNDED: Final = Fraction(10**6)
"""Stands for an infinite loss."""
ROUNDED: Final = Fraction(1, 10**30)
"""A bound on the error of log-ratios with 50 digits, and of integers that are rounded up."""
DIGITS: Final = 45
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


def released(mechanism: ScalarMechanism, points: Iterable[int]) -> Released:
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
    return max(Fraction(0), Fraction(MP.nstr(most, DIGITS)))


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
    return [int(point) for point in found[lattice.allowed(found)]]

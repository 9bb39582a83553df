"""Discrete noise on the integers with 50 digits, from its definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import mpmath

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

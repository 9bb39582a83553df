"""How numbers are rounded to points of a lattice, and how far apart neighbours' points can be.

Answers of neighbours are at most ΔF apart, but a float is off by its own rounding and by that of the sums
behind it. Two floats can thus be ΔF + 2η apart, and two halves that are rounded away from each other end up
one step further apart than ΔF/step (errata E21). So all answers are pulled towards a fixed centre c before
they are rounded:

    a(v) = v - θ·(v - c) for |v - c| ≤ V, and beyond, the same shift as at V.

a is monotone, never increases a distance, and scales distances within V by 1 - θ. θ is large enough for (1 -
θ)(ΔF + 2η) ≤ ΔF, and small enough for no number to move by more than a quarter of a step, so that a point is
still read as itself. Rounded to the nearest point, halves up, two reals within ΔF are at most ⌈ΔF/step⌉
points apart. Ints and fractions are exact (η = 0), so they need no pull beyond V. A float is accepted there
only if it is a point itself: two such points within ΔF + 2η are at most ⌈ΔF/step⌉ steps apart, as 2η is below
a step.

If V cannot cover the whole range and ΔF has many steps, there is no pull. Floats may then be off by a quarter
of a step, and ⌈ΔF/step + 1/2⌉ steps are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

from dpveil.mechanisms.scalar.ranges import Range

OFF: Final = Fraction(1, 1 << 40)
"""η as a fraction of the largest float accepted: how far a float may be off, 8192 roundings of that
number.
"""
FINE: Final = 256
"""Steps to ΔF from which half a step more costs less than the pull."""
FINEST_PULL: Final = 64
"""Smallest pull that is tried, as the exponent of 1/2."""


@dataclass(frozen=True)
class Reading:
    """Rounding of numbers to points: a pull θ towards `centre`, which stops growing at distance `wide` = V.

    `wide` is None if it never stops. `off` is η. `floats` is the largest distance from the centre at which
    floats between points are accepted (None: any), and `largest` the largest absolute value of a float.
    """

    origin: Fraction
    step: Fraction
    sensitivity: Fraction
    centre: Fraction
    pull: Fraction
    wide: Fraction | None
    off: Fraction
    floats: Fraction | None
    largest: Fraction

    @classmethod
    def of(cls, allowed: Range, origin: Fraction, step: Fraction, sensitivity: Fraction) -> Self:
        """Return the rounding for a range, with one pull for the whole range if possible."""
        size = (origin, step, sensitivity)
        if allowed.low is not None and allowed.high is not None:
            largest = max(abs(allowed.low), abs(allowed.high))
            off, centre = OFF * largest, (allowed.low + allowed.high) / 2
            pull = _power_above(2 * off / (sensitivity + 2 * off))
            if off <= step / 4 and pull * (allowed.high - centre) <= step / 4:
                return cls(*size, centre, pull, None, off, None, largest)
        largest = step / 4 / OFF
        if sensitivity >= FINE * step:
            return cls(*size, origin, Fraction(0), None, step / 4, None, largest)
        centre = _nearest_to_zero(allowed)
        for k in range(FINEST_PULL, 0, -1):
            pull = Fraction(1, 1 << k)
            wide = step / (4 * pull)
            off = OFF * (abs(centre) + wide)
            floats = wide - sensitivity - 2 * off
            if off <= step / 4 and 2 * off * (1 - pull) <= pull * sensitivity and floats > 0:
                return cls(*size, centre, pull, wide, off, floats, largest)
        return cls(*size, centre, Fraction(0), None, Fraction(0), Fraction(0), largest)

    @property
    def reach(self) -> int:
        """The most steps between the points of two neighbours' answers."""
        pulled = (self.sensitivity + 2 * self.off) * (1 - self.pull)
        return -(-max(pulled, self.sensitivity) // self.step).__floor__()

    def point(self, value: Fraction) -> int:
        """Return the point to which a number is rounded."""
        if self.wide is not None and abs(value - self.centre) > self.wide:
            moved = self.pull * self.wide * (1 if value > self.centre else -1)
            return ((value - moved - self.origin) / self.step + Fraction(1, 2)).__floor__()
        times, more = self._line
        return (value * times + more).__floor__()

    @cached_property
    def _line(self) -> tuple[Fraction, Fraction]:
        """Slope and offset of the pulled number in steps, plus a half, as a linear function of the number."""
        more = (self.pull * self.centre - self.origin) / self.step + Fraction(1, 2)
        return (1 - self.pull) / self.step, more

    def takes(self, value: Fraction) -> bool:
        """Return whether a rounded number, such as a float, is accepted."""
        if abs(value) > self.largest:
            return False
        near = self.floats is None or abs(value - self.centre) <= self.floats
        return near or (value - self.origin) % self.step == 0

    def first(self, point: int) -> Fraction:
        """Return the threshold of a point: the smallest number that is rounded to it or to a larger one."""
        target = self.origin + (point - Fraction(1, 2)) * self.step - self.centre
        shift = target / (1 - self.pull) - target
        if self.wide is not None:
            most = self.pull * self.wide
            shift = min(max(shift, -most), most)
        return self.centre + target + shift

    def meet(self, low: int, high: int) -> bool:
        """Return whether two neighbours' answers, as floats, can be rounded to these points, low < high."""
        behind, ahead = self.first(low + 1), self.first(high)
        apart = max(abs(behind - self.centre), abs(ahead - self.centre))
        spare = 0 if self.wide is not None and apart > self.wide else 2 * self.off
        return ahead - behind < self.sensitivity + spare


def _power_above(value: Fraction) -> Fraction:
    """Return the smallest power of two that is not below a number from 0 to 1."""
    k = 0
    while Fraction(1, 1 << (k + 1)) >= value:
        k += 1
    return Fraction(1, 1 << k)


def _nearest_to_zero(allowed: Range) -> Fraction:
    low = allowed.low if allowed.low is not None and allowed.low > 0 else Fraction(0)
    return allowed.high if allowed.high is not None and allowed.high < low else low

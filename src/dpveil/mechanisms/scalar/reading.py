"""How a number is read as a point of a lattice, and how far neighbours' points can be apart.

Answers of neighbours are at most ΔF apart, but a float is off: by its own rounding, and by that of the sums
that it came from. Two floats then lie up to ΔF + 2η apart, and halves that both are rounded away from each
other end one step further apart than ΔF/step (errata E21). So answers are pulled towards a fixed centre c
before they are rounded, every one alike:

    a(v) = v - θ·(v - c) for |v - c| ≤ V, and beyond, the same shift as at V.

a is monotone, never takes two numbers further apart, and takes those within V to 1 - θ of their distance. θ
is so large that (1 - θ)(ΔF + 2η) ≤ ΔF, and so small that nothing moves by more than a quarter of a step: a
point is still read as itself. Rounded to the nearest point, halves up, two reals within ΔF are at most
⌈ΔF/step⌉ points apart. Ints and fractions are exact (η = 0), so beyond V they need no pull. A float is taken
there only if it is a point itself: two such points within ΔF + 2η are at most ⌈ΔF/step⌉ steps apart, as 2η is
below a step.

Where V cannot take in the whole range, and ΔF has many steps, there is no pull. Floats may be off by a
quarter of a step, and ⌈ΔF/step + 1/2⌉ steps are counted instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

from dpveil.mechanisms.scalar.ranges import Range

OFF: Final = Fraction(1, 1 << 40)
"""η, how far a float may be off, in parts of the largest number that floats may be: 8192 roundings of it."""
FINE: Final = 256
"""Steps to ΔF from which half a step more costs less than the pull."""
FINEST_PULL: Final = 64


@dataclass(frozen=True)
class Reading:
    """From numbers to points: the pull θ towards `centre`, `wide` = V where it stops growing (None: nowhere).

    `off` is η, `floats` the largest distance from the centre at which floats between points are taken (None:
    any), and `largest` the largest float, in absolute value.
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
        """Return how answers in a range are read, the whole range alike where that is possible."""
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
        """Most steps between the points that the answers of two neighbours are read as."""
        pulled = (self.sensitivity + 2 * self.off) * (1 - self.pull)
        return -(-max(pulled, self.sensitivity) // self.step).__floor__()

    def point(self, value: Fraction) -> int:
        """Return the point that a number is read as."""
        if self.wide is not None and abs(value - self.centre) > self.wide:
            moved = self.pull * self.wide * (1 if value > self.centre else -1)
            return ((value - moved - self.origin) / self.step + Fraction(1, 2)).__floor__()
        times, more = self._line
        return (value * times + more).__floor__()

    @cached_property
    def _line(self) -> tuple[Fraction, Fraction]:
        """The pulled number in steps, and a half more, as a straight line of the number."""
        more = (self.pull * self.centre - self.origin) / self.step + Fraction(1, 2)
        return (1 - self.pull) / self.step, more

    def takes(self, value: Fraction) -> bool:
        """Return whether a number that was rounded, such as a float, can be read here."""
        if abs(value) > self.largest:
            return False
        near = self.floats is None or abs(value - self.centre) <= self.floats
        return near or (value - self.origin) % self.step == 0

    def first(self, point: int) -> Fraction:
        """Return the smallest number that is read as a point, or a larger one: where `point` steps up."""
        target = self.origin + (point - Fraction(1, 2)) * self.step - self.centre
        shift = target / (1 - self.pull) - target
        if self.wide is not None:
            most = self.pull * self.wide
            shift = min(max(shift, -most), most)
        return self.centre + target + shift

    def meet(self, low: int, high: int) -> bool:
        """Return whether two neighbours' answers can be read as these points, low < high, as they arrive."""
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

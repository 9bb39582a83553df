"""The lattice of answers and responses, and how far one record can move an answer on it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from math import gcd, lcm
from numbers import Rational
from typing import Any, Final, Self

import numpy as np

from dpveil.core.array_types import Bool, Float64, Int64
from dpveil.core.rationals import exact, show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar.ranges import Range

OFF: Final = Fraction(1, 1 << 40)
"""η as a share of the largest float accepted: how far a float may be off, 8192 of its roundings."""
FINE: Final = 256  # steps to ΔF from which half a step more costs less than the pull
FINEST_PULL: Final = 64  # smallest pull that is tried, as the exponent of 1/2


@dataclass(frozen=True)
class Reading:
    """Rounding of numbers to points: a pull θ towards `centre`, which stops growing at distance `wide` = V.

    *Why there is a pull.* Answers of neighbours are at most ΔF apart, but a float is off by its own rounding
    and by that of the sums behind it, at most η. Two floats can thus be ΔF + 2η apart, and two halves that
    are rounded away from each other end up one step further apart than ΔF/step (errata E21). So all answers
    are pulled towards a fixed centre c before they are rounded:

        a(v) = v - θ·(v - c) for |v - c| ≤ V, and beyond, the same shift as at V.

    *Proof.* a is monotone, never increases a distance, and scales distances within V by 1 - θ. θ is large
    enough for (1 - θ)(ΔF + 2η) ≤ ΔF, and small enough for no number to move by more than a quarter of a step,
    so that a point is still read as itself. Rounded to the nearest point, halves up, two reals within ΔF are
    at most ⌈ΔF/step⌉ points apart. Ints and fractions are exact (η = 0), so they need no pull beyond V. A
    float is accepted there only if it is a point itself: two such points within ΔF + 2η are at most ⌈ΔF/step⌉
    steps apart, as 2η is below a step. ∎

    If V cannot cover the whole range and ΔF has many steps, there is no pull. Floats may then be off by a
    quarter of a step, and ⌈ΔF/step + 1/2⌉ steps are counted.

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

    def threshold_of(self, point: int) -> Fraction:
        """Return the threshold of a point: the smallest number that is rounded to it or to a larger one."""
        target = self.origin + (point - Fraction(1, 2)) * self.step - self.centre
        shift = target / (1 - self.pull) - target
        if self.wide is not None:
            most = self.pull * self.wide
            shift = min(max(shift, -most), most)
        return self.centre + target + shift

    def meet(self, low: int, high: int) -> bool:
        """Return whether two neighbours' answers, as floats, can be rounded to these points, low < high."""
        behind, ahead = self.threshold_of(low + 1), self.threshold_of(high)
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


LARGEST: Final = 1 << 62  # largest index of a point
FLOAT: Final = 8
"""Fewest bytes of a float that is accepted: shorter ones are rounded more than `Reading` allows."""
Spans = tuple[tuple[int | None, int | None], ...]
"""First and last point of each span between gaps, None where it has no end."""


@dataclass(frozen=True)
class Lattice:
    """The points origin + i·step of a range, indexed by integers i; every end of a range or gap is a point.

    `reach` is the most steps by which one record can move an answer, including the rounding of floats (see
    `reading`). Raises `InvalidParameter` for a step that does not divide the range.

    >>> grid = Lattice(Range(0, 5), Fraction(1, 2), Fraction(1))
    >>> grid.reach, grid.size, grid.index(4.3).item(), grid.value(np.array([9])).item()
    (2, 11, 9, 4.5)
    """

    range: Range
    step: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        for edge in _edges(self.range):
            if (edge - self.origin) % self.step:
                raise InvalidParameter(
                    "step",
                    show(self.step),
                    f"does not divide the range at {show(edge)}",
                    hint=f"choose one that does, such as {show(coarsest(self.range, self.step), 12)}",
                )

    @cached_property
    def origin(self) -> Fraction:
        """The value of point 0: the lower end, else the upper one, else an end of a gap, else 0."""
        ends = (self.range.low, self.range.high, *(left for left, _ in self.range.gaps), Fraction(0))
        return next(end for end in ends if end is not None)

    @cached_property
    def reading(self) -> Reading:
        return Reading.of(self.range, self.origin, self.step, self.sensitivity)

    @cached_property
    def reach(self) -> int:
        """The most steps by which one record can move an answer; noise is calibrated to it."""
        return self.reading.reach

    @cached_property
    def furthest(self) -> int:
        """`reach` of a finite lattice, computed anew, over all pairs of points that two neighbours can have.

        It uses the thresholds between points and not the formula of `reach`.
        """
        points = self.points.tolist()
        found, ahead = 0, 0
        for low in points:
            while ahead + 1 < len(points) and self.reading.meet(low, points[ahead + 1]):
                ahead += 1
            found = max(found, points[ahead] - low)
        return found

    @property
    def refuses(self) -> bool:
        """Whether some floats in the range are refused, which reveals something about the answer."""
        ends = self.range.low, self.range.high
        largest = max((abs(end) for end in ends if end is not None), default=Fraction(0))
        return None in ends or self.reading.floats is not None or largest > self.reading.largest

    @cached_property
    def record(self) -> Fraction:
        """ΔF in steps: at least ΔF/step, and at least the distance between neighbours' answers as points."""
        return max(Fraction(self.furthest), self.sensitivity / self.step)

    @cached_property
    def spans(self) -> Spans:
        """First and last point of every span between gaps, None where it has no end."""
        edges: list[int | None] = [self._place(self.range.low)]
        for gap in self.range.gaps:
            edges += [self._place(edge) for edge in gap]
        edges.append(self._place(self.range.high))
        return tuple(zip(edges[::2], edges[1::2], strict=True))

    @cached_property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """The points at both ends of every gap."""
        edges = [(self._place(left), self._place(right)) for left, right in self.range.gaps]
        return tuple((left, right) for left, right in edges if left is not None and right is not None)

    def _place(self, value: Fraction | None) -> int | None:
        return None if value is None else int((value - self.origin) / self.step)

    @cached_property
    def size(self) -> int | None:
        """The number of points, None if infinite."""
        total = 0
        for first, last in self.spans:
            if first is None or last is None:
                return None
            total += last - first + 1
        return total

    @cached_property
    def points(self) -> Int64[np.ndarray, " points"]:
        ends = [(first, last) for first, last in self.spans if first is not None and last is not None]
        return np.concatenate([np.arange(first, last + 1, dtype=np.int64) for first, last in ends])

    def index(self, answers: Any) -> Int64[np.ndarray, " n"]:
        """Return the point of every answer (the nearest, up to the shift of `Reading`) as a flat array.

        Answers are numbers, or an array of them. Ints, fractions and texts are exact; floats and Decimals may
        be off by `reading.off`. Raises `InvalidParameter` for an answer outside the range, in a gap, that is
        not a number, or that is a float too coarse for the lattice.
        """
        _check_kind(answers)
        flat = np.ravel(np.asarray(answers, dtype=object))
        return np.array([self._read(answer) for answer in flat], np.int64)

    def _read(self, answer: Any) -> int:
        value, rounded = exact(answer, "answer"), not isinstance(answer, Rational | str)
        if rounded:
            value = self._beside_an_edge(value)
        if value not in self.range:
            raise InvalidParameter(
                "answer",
                show(value, 17),
                f"is not in the range {self.range}",
                hint="clip it to the range first",
            )
        if rounded and not self.reading.takes(value):
            raise InvalidParameter(
                "answer",
                show(value, 17),
                f"is a float or Decimal too large to be told apart in steps of {show(self.step)}",
                hint="give an int or a fractions.Fraction, or choose another step",
            )
        place = self.reading.point(value)
        if abs(place) > LARGEST:
            raise InvalidParameter(
                "answer", show(value), "is too many steps away", hint="choose a larger step"
            )
        return place

    def _beside_an_edge(self, value: Fraction) -> Fraction:
        """Return the edge of the range or of a gap that rounding moved a number across, else the number."""
        if value in self.range:
            return value
        nearest = min(_edges(self.range), key=lambda edge: abs(edge - value))
        return nearest if abs(nearest - value) <= self.reading.off else value

    def value(self, points: Int64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Return the numbers at these points, each rounded once to the nearest 64-bit float.

        Rounding once keeps the order, so no number lies beyond an end of the range that is a float.
        """
        common = lcm(self.step.denominator, self.origin.denominator)
        steps, start = int(self.step * common), int(self.origin * common)
        furthest = max(int(np.abs(points).max(initial=0)), 1) * steps + abs(start)
        if max(furthest, common) < 1 << 53:
            return (points * steps + start) / common
        return np.array([float(self.origin + int(point) * self.step) for point in points], np.float64)

    def is_allowed(self, points: Int64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Return which points are in the range and in no gap."""
        inside = np.zeros(points.shape, bool)
        for first, last in self.spans:
            above = True if first is None else points >= first
            below = True if last is None else points <= last
            inside |= above & below
        return inside

    def snap(self, points: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """Return the nearest allowed point to each point; in the middle of a gap, the lower end."""
        first, last = self.spans[0][0], self.spans[-1][1]
        snapped = np.clip(points, first, last) if (first, last) != (None, None) else points.copy()
        for left, right in self.gaps:
            inside = (snapped > left) & (snapped < right)
            snapped[inside] = np.where(snapped[inside] - left <= right - snapped[inside], left, right)
        return snapped


def _check_kind(answers: Any) -> None:
    """Raise `InvalidParameter` for numbers, also within containers, of an unknown or too coarse type."""
    if answers is None or isinstance(answers, str | float | Rational | Decimal):
        return
    if isinstance(answers, list | tuple):
        for answer in answers:
            _check_kind(answer)
        return
    if np.ma.is_masked(answers):
        raise InvalidParameter("answer", None, "is masked in part", hint="say what stands for it first")
    try:
        array = np.asarray(answers)
    except (TypeError, ValueError):
        raise _type_error(type(answers).__name__) from None
    if array.dtype == object and array.ndim:
        for answer in array.ravel().tolist():
            _check_kind(answer)
    elif array.dtype.kind not in "iufUO" or (array.dtype.kind == "f" and array.dtype.itemsize < FLOAT):
        raise _type_error(array.dtype.name)


def _type_error(kind: str) -> InvalidParameter:
    hint = "compute it in float64, or give an int or a fractions.Fraction"
    return InvalidParameter(
        "answer", None, f"is of type {kind}, which is rounded too much or unknown", hint=hint
    )


def _edges(allowed: Range) -> list[Fraction]:
    edges = [allowed.low, *(edge for gap in allowed.gaps for edge in gap), allowed.high]
    return [edge for edge in edges if edge is not None]


def coarsest(allowed: Range, sensitivity: Fraction) -> Fraction:
    """Return the largest step that divides the sensitivity and the distances between all ends of the range.

    >>> coarsest(Range(0, 5), Fraction(2))
    Fraction(1, 1)
    """
    edges = _edges(allowed)
    lengths = [sensitivity, *(edge - edges[0] for edge in edges[1:])]
    common = lcm(*(length.denominator for length in lengths))
    return Fraction(reduce(gcd, (int(length * common) for length in lengths)), common)

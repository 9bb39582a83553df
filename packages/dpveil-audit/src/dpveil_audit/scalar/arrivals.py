"""Pairs of neighbouring answers, floats and exact ones, as they are passed to a mechanism.

`reach`, for which the noise is calibrated, is not trusted here. Answers are searched for next to the
thresholds between points, which are found by bisection of the function that reads answers, and computed from
tables as users do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from dpveil.core.numbers import Number, exact
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource

One = TypeVar("One")
Pair = tuple[Any, Any]
PointPair = tuple[int, int]
Read = Callable[[Lattice, Any], int]
OFF: Final = Fraction(1, 1 << 40)
"""Largest error of a float, relative to the larger one, that mechanisms say they allow for."""
HALVINGS: Final = 64
PROBES: Final = 8
FAR: Final = tuple(sign * ((1 << k) + 3) for k in (10, 19, 29) for sign in (1, -1))
"""PointPair far from all edges, where floats that no longer resolve halves have to be refused."""
EPSILONS: Final[tuple[Number, ...]] = ("0.1", "0.5", 1, 3)
RANGES: Final[tuple[tuple[Number, Number], ...]] = (
    (0, 1),
    (0, 120),
    (-1, 1),
    ("-0.3", "0.7"),
    (1000, 1001),
    (Fraction(1, 3), 5),
)
RECORDS: Final = 9
STEPS: Final = 24
"""Most points of a random lattice, as some mechanisms solve programs over them."""


def read(lattice: Lattice, answer: Any) -> int:
    """Return the point that mechanisms read an answer as."""
    return int(lattice.index(answer)[0])


@lru_cache(maxsize=64)
def arriving(lattice: Lattice) -> tuple[tuple[Pair, ...], frozenset[PointPair]]:
    """Return answers of neighbours next to thresholds, and the points that they are read as, the lower
    first.
    """
    pairs = tuple(beside_turns(lattice))
    places = ((read(lattice, one), read(lattice, other)) for one, other in pairs)
    return pairs, frozenset((min(pair), max(pair)) for pair in places)


def beside_turns(lattice: Lattice) -> Iterator[Pair]:
    """Yield neighbours' answers: one next to a threshold between points, the other ΔF further on.

    Refused answers are left out, such as floats that are too large for the steps.
    """
    for point in _probes(lattice):
        lower, upper = (lattice.origin + at * lattice.step for at in (point - 1, point))
        middle = (lower + upper) / 2
        if not all(number in lattice.range for number in (lower, middle, upper)):
            continue
        below, above = _turn(lattice, lower, upper)
        for start, sign in ((below, 1), (above, -1), (middle, 1)):
            further = _further(start, sign * lattice.sensitivity, lattice.range)
            yield from (pair for pair in further if all(_taken(lattice, number) for number in pair))


def _taken(lattice: Lattice, number: Any) -> bool:
    try:
        read(lattice, number)
    except InvalidParameter:
        return False
    return True


def _probes(lattice: Lattice) -> list[int]:
    """Return points next to every edge, in the middle, and one record further."""
    ends = [end for span in lattice.spans for end in span if end is not None] or [0]
    reach = max(1, int(lattice.sensitivity / lattice.step))
    near = [end + sign * k for end in ends for k in (0, 1, 2, reach, reach + 1) for sign in (1, -1)]
    spans = [span for span in lattice.spans if span[0] is not None and span[1] is not None]
    middle = [(first + last) // 2 + k for first, last in spans for k in (0, 1)]  # type: ignore[operator]
    found, far = (np.unique(np.array(some, np.int64)) for some in ([*near, *middle], FAR))
    kept = found[lattice.allowed(found)]
    chosen = [*kept[:: max(1, len(kept) // (PROBES * len(ends)))], *far[lattice.allowed(far)]]
    return [int(point) for point in chosen]


def _turn(lattice: Lattice, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """Return the last number found that is read as the lower point, and the first that is not."""
    home = read(lattice, lower)
    for _ in range(HALVINGS):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if read(lattice, middle) == home else (lower, middle)
    return lower, upper


def _further(start: Fraction, moved: Fraction, allowed: Range) -> Iterator[Pair]:
    """Yield a number and another `moved` on: exactly, as floats, and as floats with the largest allowed
    error.
    """
    yield from _inside([(start, start + moved)], allowed)
    one, other = float(start), float(start + moved)
    sign = math.copysign(math.inf, moved)
    starts = (one, math.nextafter(one, -sign), math.nextafter(one, sign))
    ends = (other, math.nextafter(other, sign))
    yield from _inside([(a, b) for a in starts for b in ends], allowed)
    off = 2 * OFF * max(abs(start), abs(start + moved))
    furthest = float(start + moved + (off if moved > 0 else -off))
    pairs = [(a, b) for a in starts for b in (furthest, math.nextafter(furthest, -sign))]
    near = [(a, b) for a, b in pairs if abs(Fraction(b) - Fraction(a)) <= abs(moved) + off]  # as floats round
    yield from _inside(near, allowed)
    yield from _inside([(np.float32(one), np.float32(other))], allowed)


def _inside(pairs: Sequence[Pair], allowed: Range) -> Iterator[Pair]:
    return (pair for pair in pairs if all(exact(number) in allowed for number in pair))


MEANS: Final[tuple[Callable[[Any], Any], ...]] = (
    np.mean,
    lambda values: sum(values) / len(values),
    lambda values: sum(value / len(values) for value in values),
    lambda values: math.fsum(values) / len(values),
    lambda values: np.float64(np.dot(values, np.full(len(values), 1 / len(values)))),
    lambda values: float(np.cumsum(values)[-1]) / len(values),
    lambda values: sum(map(Fraction, values), Fraction(0)) / len(values),
)
"""Ways to compute a mean, each with other rounding; the last one is exact."""


@dataclass(frozen=True)
class Dice:
    """Choices from a bit source."""

    bits: BitSource

    def below(self, count: int) -> int:
        """Return an integer below `count`, nearly uniform."""
        return int(self.bits.words(1)[0] % np.uint64(count))

    def pick(self, some: Sequence[One]) -> One:
        """Return one of several items."""
        return some[self.below(len(some))]


@dataclass(frozen=True)
class Table:
    """A mechanism for the mean of so many records in a range, and tables of them."""

    method: ScalarMechanism
    records: int
    low: Fraction
    high: Fraction

    @classmethod
    def random(cls, kind: type[ScalarMechanism], dice: Dice) -> Table:
        """Return a random table: range, ΔF, relation, ε, and a step that need not divide ΔF."""
        ends = Range(*dice.pick(RANGES))
        low, high = ends.low or Fraction(0), ends.high or Fraction(0)
        records = 1 + dice.below(RECORDS)
        moved = (high - low) / records
        # A step divides the range, and ΔF only now and then.
        steps = [(high - low) / (1 + dice.below(STEPS)), moved / (1 + dice.below(max(1, STEPS // records)))]
        own = None if kind.name in ("laplace", "staircase") and dice.below(4) == 0 else dice.pick(steps)
        method = kind(
            range=ends if dice.below(8) or kind.finite_only else Range(low, None),
            sensitivity=moved,
            epsilon=dice.pick(EPSILONS),
            relation=dice.pick(kind.relations),
            step=own,
        )
        return cls(method, records, low, high)

    @cached_property
    def grid(self) -> Any:
        """Values that make ties: ends, halves, thirds, tenths."""
        return self._at(np.array([0, 1, 0.5, 1 / 3, 0.1, 0.25, 0.7]))

    def _at(self, parts: Any) -> Any:
        """Return floats at these fractions of the range, none outside."""
        low, high = float(self.low), float(self.high)
        first = low if Fraction(low) >= self.low else math.nextafter(low, math.inf)
        last = high if Fraction(high) <= self.high else math.nextafter(high, -math.inf)
        return np.clip(low + (high - low) * parts, first, last)

    def pairs(self, count: int, bits: BitSource) -> Iterator[Pair]:
        """Yield the means of `count` tables and of their neighbours, each computed in one of several ways."""
        dice = Dice(bits)
        for _ in range(count):
            values = self._values(bits)
            other = values.copy()
            other[dice.below(self.records)] = self._values(bits)[0]
            mean = dice.pick(MEANS)
            yield mean(values.tolist()), mean(other.tolist())

    def _values(self, bits: BitSource) -> Any:
        words = bits.words(2 * self.records)
        if words[0] % np.uint64(4):
            return self.grid[(words[: self.records] >> np.uint64(8)) % np.uint64(len(self.grid))]
        return self._at((words[self.records :] >> np.uint64(11)).astype(np.float64) / 2**53)


def random_tables(kind: type[ScalarMechanism], count: int, bits: BitSource) -> Iterator[Table]:
    """Yield random tables for a mechanism."""
    dice = Dice(bits)
    return (Table.random(kind, dice) for _ in range(count))

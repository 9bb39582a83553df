"""Audit cases for scalar mechanisms: settings, versions, and entries that are mostly defaults.

A finite mechanism needs no entry: its integers are its law, and the usual settings and mutants apply.
Additions are in `table.OWN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from jaxtyping import Int64

from dpveil.core.numbers import Number, exact, show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import IntegerMatrix, quantise
from dpveil_audit.engine import Drawn, Level, Variant
from dpveil_audit.scalar.laws import PointDistribution, distribution_of

One = TypeVar("One")
Pair = tuple[Any, Any]
PointPair = tuple[int, int]
Read = Callable[[Lattice, Any], int]
OFF: Final = Fraction(1, 1 << 40)
"""Largest error of a float, relative to the larger one, that mechanisms say they allow for."""
HALVINGS: Final = 64
PROBES: Final = 8
FAR_POINTS: Final = tuple(sign * ((1 << k) + 3) for k in (10, 19, 29) for sign in (1, -1))
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
    """Return neighbours' answers next to thresholds, and the points they are read as, the lower first."""
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
    found, far = (np.unique(np.array(some, np.int64)) for some in ([*near, *middle], FAR_POINTS))
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
    """Yield a number and another `moved` on: exactly, as floats, and with the largest allowed error."""
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


# Audit cases for scalar mechanisms: settings, versions, and entries that are mostly defaults.
#
# A finite mechanism needs no entry: its integers are its law, and the usual settings and mutants apply.
# Additions are in `table.OWN`.

Points = Int64[np.ndarray, " n"]
MOST_CELLS: Final = 400
FAR: Final = 600
"""Noise scales from the answers at which tails are evaluated."""
FEW: Final = 20
FINE: Final = 1 << 200


@dataclass(frozen=True)
class ScalarCase:
    """One mechanism with its settings."""

    method: ScalarMechanism

    @cached_property
    def limit(self) -> Fraction:
        """The stated bound: ε for one record, or per ΔF between two answers."""
        return self.method.guarantee().epsilon or Fraction(0)

    def allowance(self, x: int, other: int) -> Fraction | None:
        """Return the largest promised log-ratio of two answers, or None if nothing is promised."""
        if self.method.promise == ANY:
            return self.limit * abs(x - other) / self.reach
        return self.limit if abs(x - other) <= self.reach else None

    @property
    def arrivals(self) -> tuple[Pair, ...]:
        """Answers of neighbours, as they are passed in, next to thresholds between points."""
        return arriving(self.method.lattice)[0]

    @property
    def met(self) -> frozenset[tuple[int, int]]:
        """The points that these answers are read as, the lower one first."""
        return arriving(self.method.lattice)[1]

    @cached_property
    def reach(self) -> int:
        """The most steps between two neighbours' answers: as observed, and at least ⌈ΔF/step⌉."""
        lattice = self.method.lattice
        return max(
            [*(high - low for low, high in self.met), -(-lattice.sensitivity // lattice.step).__floor__()]
        )

    @cached_property
    def length(self) -> int:
        """Approximate steps per noise scale, at least 1."""
        return max(1, round(self.reach / self.method.budget))

    @cached_property
    def edges(self) -> list[int]:
        """The ends of the range and of its gaps as points, or 0 if there are none."""
        spans = self.method.lattice.spans
        return [edge for span in spans for edge in span if edge is not None] or [0]

    def allowed(self, points: Any) -> Points:
        """Return which of these integers are points of the range, in order, once each."""
        unique = np.unique(np.asarray(points, np.int64))
        found: Points = unique[self.method.lattice.allowed(unique)]
        return found

    @cached_property
    def answers(self) -> list[int]:
        """Return answers around every edge, where normalising constants change fastest, and far from all."""
        reach, size = self.reach, self.method.lattice.size
        if size is not None and size <= FEW:
            return [int(point) for point in self.method.lattice.points]
        steps = [0, 1, reach, reach + 1, 2 * reach, self.length, 3 * self.length, 50 * self.length]
        around = [edge + sign * step for edge in self.edges for step in steps for sign in (1, -1)]
        inside = [(a + b) // 2 for a, b in self.method.lattice.spans if a is not None and b is not None]
        return [int(point) for point in self.allowed([*around, *inside])]

    @cached_property
    def outputs(self) -> list[int]:
        """Return responses around every answer and edge, and in tails several hundred scales out."""
        answers = self.answers
        far = [s * k * self.length for k in (1, 2, 5, 10, 20, 50, 100, 300, FAR) for s in (1, -1)]
        near = [base + step for base in (*answers, *self.edges) for step in (-1, 0, 1)]
        return [int(y) for y in self.allowed([*near, *(base + step for base in self.edges for step in far)])]

    @cached_property
    def cells(self) -> Points:
        """Return the first points of categories: every point if few, else fine near edges only."""
        lattice = self.method.lattice
        if lattice.size is not None and lattice.size <= MOST_CELLS:
            return lattice.points
        low, high = min(self.edges), max(self.edges)
        near = range(-8, 9)
        wide = np.linspace(low - 30 * self.length, high + 30 * self.length, 240).round()
        fine = np.linspace(low - 4 * self.length, high + 4 * self.length, 80).round()
        found = self.allowed([*wide, *fine, *(edge + step for edge in self.edges for step in near)])
        gaps = np.array([right for _, right in lattice.gaps], np.int64)
        return np.unique(np.concatenate([found, gaps]))

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Return answers to distinguish: a record from every end inwards, across gaps, and further."""
        reach = self.reach
        wanted = [(edge, edge + sign * reach) for edge in self.edges[:4] for sign in (1, -1)]
        if self.method.promise == ANY:
            wanted += [*self.method.lattice.gaps, (self.edges[0], self.edges[0] + 2 * reach)]
        ordered = dict.fromkeys((min(pair), max(pair)) for pair in wanted)
        return [pair for pair in ordered if len(self.allowed(pair)) == 2]

    def __str__(self) -> str:
        method = self.method
        words = [f"{method.range}", f"ΔF = {show(method.sensitivity)}", f"step {show(method.lattice.step)}"]
        return ", ".join([*words, method.promise, f"ε = {show(method.budget)}"])


ScalarDrawn = Drawn[ScalarCase, int]
ScalarLevel = Level[ScalarCase, int]

Draw = Callable[[ScalarCase, int, int, BitSource], Points]
"""A function that returns the cells (their indices) of many responses to one answer."""


def real_draws(case: ScalarCase, x: int, count: int, bits: BitSource) -> Points:
    """Return the cells of the mechanism's own draws."""
    drawn = case.method.draw(np.full(count, x, np.int64), bits)
    return np.searchsorted(case.cells, drawn, side="right").astype(np.int64).clip(1) - 1


def masses(distribution: PointDistribution, x: int, cells: Points) -> list[Any]:
    """Return the probability of every cell; the first and the last one are unbounded."""
    ends = [None, *(int(cell) for cell in cells[1:])]
    lasts = [int(cell) - 1 for cell in cells[1:]]
    return [distribution.mass(x, low, high) for low, high in zip(ends, [*lasts, None], strict=True)]


def drawn_from(distribution: Callable[[Any], PointDistribution]) -> Draw:
    """Return draws from a law that no mechanism has; missing probability goes to its first cell."""

    @lru_cache(maxsize=64)
    def row(case: ScalarCase, x: int) -> IntegerMatrix:
        weights = [max(0, int(chance * FINE)) for chance in masses(distribution(case.method), x, case.cells)]
        weights[0] += max(0, FINE - sum(weights))
        return quantise([weights])

    def draw(case: ScalarCase, x: int, count: int, bits: BitSource) -> Points:
        return row(case, x).sample(np.zeros(count, np.int64), bits)

    return draw


@dataclass(frozen=True, kw_only=True)
class ScalarVersion(Variant):
    """One way to carry out a mechanism: intact, or a mutant.

    `integers(method)` are those that a finite mechanism draws from, None if there is only a law. `fits(case)`
    tells where a mutant differs at all; `bound` adds settings in which samples detect it. `read` returns the
    point that an answer is read as.
    """

    distribution: Callable[[Any], PointDistribution] = distribution_of
    draw: Draw = real_draws
    integers: Callable[[Any], IntegerMatrix | None] = lambda method: method.integers
    fits: Callable[[ScalarCase], bool] = lambda case: True
    bound: tuple[ScalarDrawn, ...] = ()
    read: Read = read

    @property
    def intact(self) -> bool:
        """Whether it is the mechanism itself."""
        return self.draw is real_draws


def wrong(
    name: str,
    distribution: Callable[[Any], PointDistribution],
    fits: Callable[[ScalarCase], bool] = lambda case: True,
    bound: tuple[ScalarDrawn, ...] = (),
    gates: tuple[str, ...] = (),
) -> ScalarVersion:
    """Return a mutant with another law."""
    return ScalarVersion(
        name=name,
        gates=gates,
        distribution=distribution,
        draw=drawn_from(distribution),
        integers=lambda method: None,
        fits=fits,
        bound=bound,
    )


def cases(method: type[ScalarMechanism], *settings: dict[str, Any]) -> tuple[ScalarCase, ...]:
    """Return settings of a mechanism, with ΔF = 1 and ε = 1 unless given."""
    usual = {"sensitivity": 1, "epsilon": 1}
    return tuple(ScalarCase(method(**(usual | setting))) for setting in settings)


def gapped(low: Any, high: Any, *gaps: tuple[Any, Any]) -> Range:
    """Return a range with gaps."""
    return Range(low, high, gaps=gaps)

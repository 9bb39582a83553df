"""Audit cases for scalar mechanisms: settings, versions, and entries that are mostly defaults.

A finite mechanism needs no entry: its integers are its law, and the usual settings and mutants apply.
Additions are in `table.OWN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.core.numbers import Number, exact, show
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.matrix import IntegerMatrix, log_above, quantise
from dpveil_audit.distributions import Distribution, finite_distribution
from dpveil_audit.engine import (
    ComparedPair,
    Drawn,
    Finding,
    Level,
    Variant,
    bound_findings,
    count_finding,
    fit_finding,
    least_epsilon,
    p_values,
    refusal_finding,
)
from dpveil_audit.lower_bound import Bound, certain, epsilon_at, scores
from dpveil_audit.scalar.laws import MP, ROUNDED, UNBOUNDED, PointDistribution, distribution_of, real

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
            yield from (pair for pair in further if all(_is_accepted(lattice, number) for number in pair))


def _is_accepted(lattice: Lattice, number: Any) -> bool:
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
    kept = found[lattice.is_allowed(found)]
    chosen = [*kept[:: max(1, len(kept) // (PROBES * len(ends)))], *far[lattice.is_allowed(far)]]
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

    def allowed_points(self, points: Any) -> Points:
        """Return which of these integers are points of the range, in order, once each."""
        unique = np.unique(np.asarray(points, np.int64))
        found: Points = unique[self.method.lattice.is_allowed(unique)]
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
        return [int(point) for point in self.allowed_points([*around, *inside])]

    @cached_property
    def outputs(self) -> list[int]:
        """Return responses around every answer and edge, and in tails several hundred scales out."""
        answers = self.answers
        far = [s * k * self.length for k in (1, 2, 5, 10, 20, 50, 100, 300, FAR) for s in (1, -1)]
        near = [base + step for base in (*answers, *self.edges) for step in (-1, 0, 1)]
        return [
            int(y)
            for y in self.allowed_points([*near, *(base + step for base in self.edges for step in far)])
        ]

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
        found = self.allowed_points([*wide, *fine, *(edge + step for edge in self.edges for step in near)])
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
        return [pair for pair in ordered if len(self.allowed_points(pair)) == 2]

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


def range_with_gaps(low: Any, high: Any, *gaps: tuple[Any, Any]) -> Range:
    """Return a range with gaps."""
    return Range(low, high, gaps=gaps)


CLOSE: Final = 1e-9
"""Distance from the largest log-ratio, in floating point, within which ratios are recomputed exactly."""
TIED: Final = 8
MOST_TIED: Final = 4096
UNLIKE: Final = 1e-4
SAME: Final = 200


def same_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield whether `draw`, which other gates use, agrees with `release` for the same bits."""
    method = case.method
    points = np.resize(np.array(case.answers, np.int64), SAME)
    numbers = np.array([method.lattice.origin + int(p) * method.lattice.step for p in points], dtype=object)
    released = method.release(numbers, SeededBits(1, "same"))
    drawn = method.lattice.value(method.draw(points, SeededBits(1, "same")))
    unlike = int(np.sum(released != drawn))
    outside = int(np.sum(~method.lattice.is_allowed(method.lattice.index(released))))
    yield count_finding("same", "values unlike those of release", case, unlike, "values")
    yield count_finding("same", "values out of range", case, outside, "values")


def exact_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield the largest log-ratios of integers and of the law, against the promise, and further checks."""
    matrix = version.integers(case.method)
    if matrix is not None:
        yield _integers(matrix, case)
        if version.intact:
            yield from _certificate_findings(matrix, version.distribution(case.method), case)
    distribution = version.distribution(case.method)
    yield from _losses(distribution, case)
    yield _whole(distribution, case)
    if version.intact and matrix is None:
        yield _table_finding(distribution, case)


def _integers(matrix: IntegerMatrix, case: ScalarCase) -> Finding:
    loss, limit, pairs = worst_integers(matrix, case)
    name = f"log-ratio of integers, {pairs:,} pairs"
    return Finding("exact", name, str(case), float(loss), float(limit), loss <= limit, "ε")


def worst_integers(matrix: IntegerMatrix, case: ScalarCase) -> tuple[Fraction, Fraction, int]:
    """Return the largest log-ratio, rounded up by 10^-40, with its limit and the number of pairs of answers.

    It is over every pair with a promise; under any-database over adjacent ones, as log-ratios add up.
    Floating point only selects what is recomputed in integers.
    """
    points, logs = case.method.lattice.points, log_weights(matrix.weights)
    far = case.allowance(0, 1 << 40) is not None  # something is promised at every distance
    looked: list[tuple[float, int, int, int, Fraction]] = []
    pairs = 0
    for i in range(len(points)):
        near = range(i + 1, min(i + 2, len(points))) if far else range(i + 1, _first_beyond(points, i, case))
        if not near:
            continue
        pairs += len(near)
        allowed = case.allowance(int(points[i]), int(points[near[0]])) or Fraction(0)
        gaps = np.abs(logs[near.start : near.stop] - logs[i])
        most = float(gaps.max())
        tied = np.argwhere(gaps >= most - CLOSE)[:TIED]
        looked += [(most - float(allowed), i, i + 1 + int(j), int(y), allowed) for j, y in tied]
    worst = max((one[0] for one in looked), default=0.0)
    found: tuple[Fraction, Fraction] | None = None
    for _, i, j, y, allowed in [one for one in looked if one[0] >= worst - CLOSE][:MOST_TIED]:
        ratio = ratio_of(matrix.weights[i][y], matrix.weights[j][y])
        loss = log_above(ratio) if ratio else UNBOUNDED
        if found is None or loss - allowed > found[0] - found[1]:
            found = loss, allowed
    return *(found or (Fraction(0), Fraction(0))), pairs


def log_weights(rows: Sequence[Sequence[int]]) -> Float64[np.ndarray, "rows responses"]:
    """Return the logarithms of integers, with a value far below all others for zeros."""
    floats = np.array(rows, dtype=object).astype(np.float64)
    logs: Float64[np.ndarray, "rows responses"] = np.log(floats.clip(1e-300))
    return logs


def _first_beyond(points: Points, row: int, case: ScalarCase) -> int:
    """Return the first row that is more than one record away."""
    return int(np.searchsorted(points, points[row] + case.reach, side="right"))


def ratio_of(first: int, second: int) -> Fraction | None:
    """Return the larger over the smaller, 1 for two zeros, None if only one is zero."""
    low, high = min(first, second), max(first, second)
    return Fraction(high, low) if low else None if high else Fraction(1)


def _certificate_findings(
    matrix: IntegerMatrix, distribution: PointDistribution, case: ScalarCase
) -> Iterator[Finding]:
    """Yield the cost of integers beyond their certificate, and their distance from the law."""
    stated = case.method.certificate
    if stated is not None:
        below = _excess_ratio(matrix, case)
        what = "cost of integers beyond their certificate"
        yield Finding("exact", what, str(case), max(0.0, below), 0, below <= 0, "ε")
    distance = 0.0
    for x in case.answers[:: max(1, len(case.answers) // 2)]:
        row = matrix.weights[int(np.searchsorted(case.method.lattice.points, x))]
        right = [float(distribution.mass(x, int(y), int(y))) for y in case.method.lattice.points]
        distance = max(distance, float(np.abs(np.array(row, np.float64) / 2.0**64 - right).sum() / 2))
    what = "chances unlike the distribution's, in all"
    yield Finding("exact", what, str(case), distance, UNLIKE, distance <= UNLIKE, "total variation")


def _excess_ratio(matrix: IntegerMatrix, case: ScalarCase) -> float:
    """Return by how much a column's ratio, over one record or over all, exceeds the certificate."""
    stated, points, logs = case.method.certificate, case.method.lattice.points, log_weights(matrix.weights)
    if stated is None:
        return 0.0
    most = float((logs.max(axis=0) - logs.min(axis=0)).max()) - float(stated.overall)
    for row in range(len(points)):
        near = logs[row : _first_beyond(points, row, case)]
        most = max(most, float(np.abs(near - logs[row]).max()) - float(stated.epsilon))
    return most


def _losses(distribution: PointDistribution, case: ScalarCase) -> Iterator[Finding]:
    """Yield the worst log-ratio over a grid of answers and responses, tails included, with 50 digits."""
    answers, outputs = case.answers, case.outputs
    logs = [[distribution.log(x, y) for y in outputs] for x in answers]
    floats = np.array(logs, np.float64)
    worst: tuple[float, int, int, int] | None = None
    for i, x in enumerate(answers):
        for j in range(i):
            allowed = case.allowance(x, answers[j])
            if allowed is None:
                continue
            with np.errstate(invalid="ignore"):
                gap = np.nan_to_num(np.abs(floats[i] - floats[j]), nan=0.0, posinf=1e9)
            y = int(gap.argmax())
            excess = float(gap[y] - float(allowed))
            if worst is None or excess > worst[0]:
                worst = excess, i, j, y
    if worst is None:
        return
    _, i, j, y = worst
    limit = case.allowance(answers[i], answers[j]) or Fraction(0)
    loss = MP.mpf(0) if logs[i][y] == logs[j][y] else abs(logs[i][y] - logs[j][y])
    kept = bool(loss <= real(limit + ROUNDED))
    what = f"log-ratio of the distribution, {len(answers)} answers × {len(outputs)} responses"
    pair = f"{place(case, answers[i])} and {place(case, answers[j])}"
    where = f"{case}, answers {pair}, x = {place(case, outputs[y])}"
    yield Finding("exact", what, where, min(float(loss), 1e9), float(limit), kept, "ε")


def place(case: ScalarCase, point: int) -> str:
    """Return the number at a point, as text."""
    return f"{float(case.method.lattice.origin + point * case.method.lattice.step):.6g}"


def _whole(distribution: PointDistribution, case: ScalarCase) -> Finding:
    """Return how far the probabilities for an answer are from summing to 1."""
    lost = max(
        float(abs(1 - sum(masses(distribution, x, case.cells))))
        for x in case.answers[:: max(1, len(case.answers) // 2)]
    )
    return Finding("exact", "sum of chances unlike 1", str(case), lost, CLOSE, lost <= CLOSE, "")


def _table_finding(distribution: PointDistribution, case: ScalarCase) -> Finding:
    """Return the log-distance of the mechanism's own matrix, which figures use, from the law."""
    lattice, answers = case.method.lattice, case.answers[:6]
    shown = [lattice.origin + int(y) * lattice.step for y in case.outputs]
    numbers = [lattice.origin + x * lattice.step for x in answers]
    table = case.method.matrix(shown, numbers)
    cuts = [-((lattice.origin - (a + b) / 2) / lattice.step).__floor__() for a, b in pairwise(shown)]
    cells = np.array([-(1 << 62), *cuts], np.int64)
    most = 0.0
    for column, x in enumerate(answers):
        right = np.array([float(MP.log(m)) if m > 0 else -math.inf for m in masses(distribution, x, cells)])
        kept = right > -600
        with np.errstate(divide="ignore"):
            own = np.log(table[:, column])
        most = max(most, float(np.abs(own[kept] - right[kept]).max()))
    return Finding(
        "exact", "matrix unlike the distribution", str(case), most, CLOSE, most <= CLOSE, "log-ratio"
    )


# The `arrive` gate: the cost of two neighbours' answers after a mechanism has read them

PAIRS: Final = 100
"""Neighbours of one random table."""
DISTRIBUTIONS: Final = 24
"""Pairs of points at which a law without integers is evaluated, the furthest apart first."""


def arrive_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield the largest log-ratio of answers next to thresholds, as this version reads them."""
    pairs = case.met if version.read is read else _points(version, case.method, case.arrivals)
    if pairs and version.fits(case):
        yield _finding(version, case, pairs, f"{len(case.arrivals):,} pairs beside turns")


def tables_gate(
    kind: type[ScalarMechanism], version: ScalarVersion, tables: int, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield the largest log-ratio of the means of random tables and neighbours, floats and exact."""
    found = []
    for table in random_tables(kind, tables, bits):
        case, what = ScalarCase(table.method), f"{tables * PAIRS:,} pairs of random tables"
        points = _points(version, table.method, table.pairs(PAIRS, bits))
        try:
            found.append(_finding(version, case, points, what))
        except NoiseError as error:
            found.append(refusal_finding("arrive", case, error))
    if found:
        yield max(found, key=lambda finding: finding.value - finding.limit)


def _points(version: ScalarVersion, method: ScalarMechanism, pairs: Iterable[Pair]) -> set[PointPair]:
    """Return the points that neighbours are read as, the lower one first."""
    point = lru_cache(maxsize=1 << 14)(partial(version.read, method.lattice))
    places = ((point(one), point(other)) for one, other in pairs)
    return {(min(pair), max(pair)) for pair in places}


def _finding(version: ScalarVersion, case: ScalarCase, pairs: Set[PointPair], what: str) -> Finding:
    matrix = version.integers(case.method)
    if matrix is None:
        losses = _of_distribution(version.distribution(case.method), case, pairs)
    else:
        losses = _of_integers(matrix, case, pairs)
    loss, (x, other) = max(losses)
    where = f"{case}, answers read as {place(case, x)} and {place(case, other)}"
    kept = loss <= case.limit + (0 if matrix else ROUNDED)
    return Finding("arrive", f"log-ratio of {what}", where, float(loss), float(case.limit), kept, "ε")


def _of_integers(
    matrix: IntegerMatrix, case: ScalarCase, pairs: Set[PointPair]
) -> Iterator[tuple[Fraction, PointPair]]:
    """Yield the largest log-ratios of rows, in integers and rounded up by 10^-40."""
    own = case.method.lattice.points
    logs = log_weights(matrix.weights)
    rows = {pair: tuple(int(np.searchsorted(own, point)) for point in pair) for pair in pairs}
    floats = {pair: float(np.abs(logs[i] - logs[j]).max()) for pair, (i, j) in rows.items()}
    most = max(floats.values())
    for pair, (i, j) in rows.items():
        if floats[pair] >= most - CLOSE:
            y = int(np.abs(logs[i] - logs[j]).argmax())
            ratio = ratio_of(matrix.weights[i][y], matrix.weights[j][y])
            yield log_above(ratio) if ratio else UNBOUNDED, pair


def _of_distribution(
    distribution: PointDistribution, case: ScalarCase, pairs: Set[PointPair]
) -> Iterator[tuple[Fraction, PointPair]]:
    """Yield the log-ratio of some pairs, over responses around them and far out."""
    edges = case.edges

    def rank(pair: PointPair) -> tuple[int, int]:
        return pair[0] - pair[1], min(abs(point - edge) for point in pair for edge in edges)

    for x, other in sorted(pairs, key=rank)[:DISTRIBUTIONS]:
        near = case.allowed_points([x, other, *case.outputs[:: max(1, len(case.outputs) // DISTRIBUTIONS)]])
        logs = [(distribution.log(x, int(y)), distribution.log(other, int(y))) for y in near]
        # Noise that no 50 digits see is the same nothing for both.
        seen = [abs(one - two) for one, two in logs if max(one, two) > -MP.inf]
        loss = max(seen, default=MP.mpf(0))
        yield (UNBOUNDED if loss == MP.inf else Fraction(str(loss))), (x, other)


# Gates that draw, for scalar mechanisms: fits of responses, and lower bounds on ε

Counts = Int64[np.ndarray, " cells"]


def fit_gate(
    version: ScalarVersion, setting: ScalarDrawn, right: PointDistribution | None = None, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well responses to an edge, a point next to it, and the middle follow the law."""
    case = setting.case
    right = right or distribution_of(case.method)
    answers = case.answers
    chosen = sorted({answers[0], answers[len(answers) // 2], answers[-1], case.edges[0]} & set(answers))
    found = dict[str, float]()
    for x in chosen:
        distribution = _in_cells(right, x, case)
        seen = version.draw(case, x, setting.draws, bits)
        name = place(case, x)
        found |= p_values(f"answer {name}", seen, distribution)
    yield fit_finding(case, f"{setting.draws:,} draws", found)


@lru_cache(maxsize=512)
def _in_cells(distribution: PointDistribution, x: int, case: ScalarCase) -> Distribution:
    found = np.array([float(chance) for chance in masses(distribution, x, case.cells)])
    return finite_distribution(found / found.sum())


@dataclass(frozen=True)
class _Event:
    score: float
    name: str
    cells: Bool[np.ndarray, " cells"]
    swapped: bool


def bound_gate(version: ScalarVersion, setting: ScalarDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield a lower bound on ε for pairs of answers, from samples alone; alpha covers all pairs together.

    Half of the draws choose an event, of which a half learns which responses distinguish the pair; exact
    confidence limits come from the other half.
    """
    case, draws = setting.case, setting.draws

    @cache  # an answer is in several pairs, whose bounds hold each by itself
    def count(z: int) -> list[Counts]:
        return [_count(version, case, z, n, bits) for n in (draws // 2, draws // 2, draws)]

    def bound(pair: tuple[int, int], share: float) -> Bound:
        sides = [count(z) for z in pair]
        event = _best(sides, case, draws // 2)
        first, second = sides[::-1] if event.swapped else sides
        hits = int(first[2][event.cells].sum()), int(second[2][event.cells].sum())
        return Bound(certain(hits, (draws, draws), epsilon_at(0.0), share), event.name, hits, draws, share)

    pairs = [
        ComparedPair(
            f"{case}, answers {place(case, x)} and {place(case, other)}",
            float(case.allowance(x, other) or 0),
            partial(bound, (x, other)),
        )
        for x, other in setting.pairs or case.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", least=partial(least_epsilon, draws))


CHUNK: Final = 1 << 20


def _count(version: ScalarVersion, case: ScalarCase, x: int, count: int, bits: BitSource) -> Counts:
    found = np.zeros(len(case.cells), np.int64)
    for start in range(0, count, CHUNK):
        cells = version.draw(case, x, min(CHUNK, count - start), bits)
        found += np.bincount(cells, minlength=len(found))
    return found


def _best(sides: list[list[Counts]], case: ScalarCase, draws: int) -> _Event:
    """Return the event that distinguishes a pair best on draws that did not make it."""
    cells = case.cells
    learned = np.log(sides[0][0] + 1.0) - np.log(sides[1][0] + 1.0)
    orders = {"response ≤ {}": np.arange(len(cells)), "likelier ones": np.argsort(-learned, kind="stable")}
    found = []
    for name, order in orders.items():
        for reverse in (False, True):
            way = order[::-1] if reverse else order
            first, second = (np.cumsum(side[1][way]) for side in sides)
            for swapped in (False, True):
                a, b = (second, first) if swapped else (first, second)
                ranked = scores(a, b, draws, epsilon_at(0.0))
                at = int(np.argmax(ranked))
                chosen = np.zeros(len(cells), np.bool_)
                chosen[way[: at + 1]] = True
                words = (name.replace("≤", "≥") if reverse else name).format(place(case, int(cells[way[at]])))
                found.append(_Event(float(ranked[at]), words, chosen, swapped))
    return max(found, key=lambda event: event.score)

"""Scalar mechanisms: settings, versions, and the gates that look at both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.core.numbers import exact, show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.matrix import IntegerMatrix, log_above
from dpveil_audit.engine import Drawn, Finding, Variant, count_finding, fit_finding, sampled
from dpveil_audit.scalar.laws import MP, ROUNDED, UNBOUNDED, PointDistribution, distribution_of, real

Pair = tuple[Any, Any]
PointPair = tuple[int, int]
Read = Callable[[Lattice, Any], int]
OFF: Final = Fraction(1, 1 << 40)
"""Largest error of a float, relative to the larger one, that mechanisms say they allow for."""
HALVINGS: Final = 64
PROBES: Final = 8
FAR_POINTS: Final = tuple(sign * ((1 << k) + 3) for k in (10, 19, 29) for sign in (1, -1))
"""PointPair far from all edges, where floats that no longer resolve halves have to be refused."""


def read(lattice: Lattice, answer: Any) -> int:
    """Return the point that mechanisms read an answer as."""
    return int(lattice.index(answer)[0])


@lru_cache(maxsize=64)
def arrivals(lattice: Lattice) -> tuple[Pair, ...]:
    """Return answers of neighbours, as they are passed in, next to thresholds between points."""
    return tuple(beside_turns(lattice))


@lru_cache(maxsize=64)
def furthest(lattice: Lattice, read: Read) -> int:
    """Return the most points between such answers as they are read."""
    return max(
        (abs(read(lattice, one) - read(lattice, other)) for one, other in arrivals(lattice)), default=0
    )


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


Points = Int64[np.ndarray, " n"]
MOST_CELLS: Final = 400
FAR: Final = 600
"""Noise scales from the answers at which tails are evaluated."""
FEW: Final = 20
FINE: Final = 1 << 200


@dataclass(frozen=True)
class ScalarCase:
    """One mechanism with its settings, and how it reads answers."""

    method: ScalarMechanism
    read: Read = read

    @cached_property
    def limit(self) -> Fraction:
        """The stated bound: ε for one record, or per ΔF between two answers."""
        return self.method.guarantee().epsilon or Fraction(0)

    def allowance(self, x: int, other: int) -> Fraction | None:
        """Return the largest promised log-ratio of two answers, or None if nothing is promised."""
        if self.method.promise == ANY:
            return self.limit * abs(x - other) / self.reach
        return self.limit if abs(x - other) <= self.reach else None

    @cached_property
    def reach(self) -> int:
        """The most steps between two neighbours' answers: as observed, and at least ⌈ΔF/step⌉."""
        lattice = self.method.lattice
        return max(furthest(lattice, self.read), -(-lattice.sensitivity // lattice.step).__floor__())

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

    def __str__(self) -> str:
        method = self.method
        words = [f"{method.range}", f"ΔF = {show(method.sensitivity)}", f"step {show(method.lattice.step)}"]
        return ", ".join([*words, method.promise, f"ε = {show(method.budget)}"])


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


@lru_cache(maxsize=512)
def law_of_cells(distribution: PointDistribution, x: int, case: ScalarCase) -> tuple[np.ndarray]:
    """Return the probabilities of all cells, as the law of one draw; what is missing goes to the first."""
    found = np.array([float(chance) for chance in masses(distribution, x, case.cells)])
    found[0] += max(0.0, 1 - found.sum())
    return (found / found.sum(),)


@dataclass(frozen=True, kw_only=True)
class ScalarVersion(Variant):
    """One way to carry out a mechanism: intact, or a mutant.

    `integers(method)` are those that a finite mechanism draws from, None if there is only a law. `fits(case)`
    tells where a mutant differs at all. `read` returns the point that an answer is read as. Without `draws`,
    a version is drawn from its law.
    """

    distribution: Callable[[Any], PointDistribution] = distribution_of
    draws: Draw | None = None
    integers: Callable[[Any], IntegerMatrix | None] = lambda method: method.integers
    fits: Callable[[ScalarCase], bool] = lambda case: True
    read: Read = read

    def draw(self, case: ScalarCase, x: int, count: int, bits: BitSource) -> Points:
        """Return the cells of many responses to one answer."""
        if self.draws is not None:
            return self.draws(case, x, count, bits)
        return sampled(law_of_cells(self.distribution(case.method), x, case), count, bits)[:, 0]


INTACT: Final = ScalarVersion(name="intact", draws=real_draws)


def wrong(
    name: str,
    distribution: Callable[[Any], PointDistribution],
    fits: Callable[[ScalarCase], bool] = lambda case: True,
    **more: Any,
) -> ScalarVersion:
    """Return a mutant with another law."""
    return ScalarVersion(
        name=name, distribution=distribution, integers=lambda method: None, fits=fits, **more
    )


def cases(method: type[ScalarMechanism], *settings: dict[str, Any]) -> tuple[ScalarCase, ...]:
    """Return settings of a mechanism, with ΔF = 1 and ε = 1 unless given."""
    usual = {"sensitivity": 1, "epsilon": 1}
    return tuple(ScalarCase(method(**(usual | setting))) for setting in settings)


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
    """Yield the largest log-ratios of integers and of the law, against the promise, and further checks.

    They are over all answers as far apart as neighbours' arrive as this version reads them, and not as far as
    the mechanism says that it made noise for.
    """
    case = case if version.read is case.read else replace(case, read=version.read)
    matrix = version.integers(case.method)
    if matrix is not None:
        yield _integers(matrix, case)
        if version is INTACT:
            yield from _certificate_findings(matrix, version.distribution(case.method), case)
    distribution = version.distribution(case.method)
    yield from _losses(distribution, case)
    yield _whole(distribution, case)
    if version is INTACT and matrix is None:
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


def fit_gate(
    version: ScalarVersion, setting: Drawn, right: PointDistribution | None = None, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well responses to an edge, a point next to it, and the middle follow the law."""
    case, law, answers = setting.case, right or distribution_of(setting.case.method), setting.case.answers
    chosen = sorted({answers[0], answers[len(answers) // 2], answers[-1], case.edges[0]} & set(answers))
    seen = (
        (
            f"answer {place(case, x)}",
            version.draw(case, x, setting.draws, bits)[:, None],
            law_of_cells(law, x, case),
        )
        for x in chosen
    )
    yield fit_finding(case, f"{setting.draws:,} draws", seen)

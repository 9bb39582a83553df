"""Gates for scalar mechanisms: laws and integers, answers as they are read, fits, lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.matrix import IntegerMatrix, log_above
from dpveil_audit.distributions import Distribution, finite_distribution
from dpveil_audit.engine import (
    ComparedPair,
    Finding,
    bound_findings,
    counted,
    fit_finding,
    least_epsilon,
    p_values,
    refused,
)
from dpveil_audit.lower_bound import Bound, certain, epsilon_at, scores
from dpveil_audit.scalar.case import (
    Pair,
    PointPair,
    Points,
    ScalarCase,
    ScalarDrawn,
    ScalarVersion,
    masses,
    random_tables,
    read,
)
from dpveil_audit.scalar.laws import MP, ROUNDED, UNBOUNDED, PointDistribution, distribution_of, real

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
    outside = int(np.sum(~method.lattice.allowed(method.lattice.index(released))))
    yield counted("same", "values unlike those of release", case, unlike, "values")
    yield counted("same", "values out of range", case, outside, "values")


def exact_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield the largest log-ratios of integers and of the law, against the promise, and further checks."""
    matrix = version.integers(case.method)
    if matrix is not None:
        yield _integers(matrix, case)
        if version.intact:
            yield from _stated(matrix, version.distribution(case.method), case)
    distribution = version.distribution(case.method)
    yield from _losses(distribution, case)
    yield _whole(distribution, case)
    if version.intact and matrix is None:
        yield _tabulated(distribution, case)


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
        near = range(i + 1, min(i + 2, len(points))) if far else range(i + 1, _reached(points, i, case))
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


def _reached(points: Points, row: int, case: ScalarCase) -> int:
    """Return the first row that is more than one record away."""
    return int(np.searchsorted(points, points[row] + case.reach, side="right"))


def ratio_of(first: int, second: int) -> Fraction | None:
    """Return the larger over the smaller, 1 for two zeros, None if only one is zero."""
    low, high = min(first, second), max(first, second)
    return Fraction(high, low) if low else None if high else Fraction(1)


def _stated(matrix: IntegerMatrix, distribution: PointDistribution, case: ScalarCase) -> Iterator[Finding]:
    """Yield the cost of integers beyond their certificate, and their distance from the law."""
    stated = case.method.certificate
    if stated is not None:
        below = _uncertified(matrix, case)
        what = "cost of integers beyond their certificate"
        yield Finding("exact", what, str(case), max(0.0, below), 0, below <= 0, "ε")
    distance = 0.0
    for x in case.answers[:: max(1, len(case.answers) // 2)]:
        row = matrix.weights[int(np.searchsorted(case.method.lattice.points, x))]
        right = [float(distribution.mass(x, int(y), int(y))) for y in case.method.lattice.points]
        distance = max(distance, float(np.abs(np.array(row, np.float64) / 2.0**64 - right).sum() / 2))
    what = "chances unlike the distribution's, in all"
    yield Finding("exact", what, str(case), distance, UNLIKE, distance <= UNLIKE, "total variation")


def _uncertified(matrix: IntegerMatrix, case: ScalarCase) -> float:
    """Return by how much a column's ratio, over one record or over all, exceeds the certificate."""
    stated, points, logs = case.method.certificate, case.method.lattice.points, log_weights(matrix.weights)
    if stated is None:
        return 0.0
    most = float((logs.max(axis=0) - logs.min(axis=0)).max()) - float(stated.overall)
    for row in range(len(points)):
        near = logs[row : _reached(points, row, case)]
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


def _tabulated(distribution: PointDistribution, case: ScalarCase) -> Finding:
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
            found.append(refused("arrive", case, error))
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
        near = case.allowed([x, other, *case.outputs[:: max(1, len(case.outputs) // DISTRIBUTIONS)]])
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
    def counted(z: int) -> list[Counts]:
        return [_count(version, case, z, n, bits) for n in (draws // 2, draws // 2, draws)]

    def bound(pair: tuple[int, int], share: float) -> Bound:
        sides = [counted(z) for z in pair]
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

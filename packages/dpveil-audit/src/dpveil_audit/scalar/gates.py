"""Gates that compute, for scalar mechanisms: laws and integers against the guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.noise.bits import SeededBits
from dpveil.noise.matrix import IntegerMatrix, log_above
from dpveil_audit.findings import Finding
from dpveil_audit.scalar.case import Points, ScalarCase, ScalarVersion, masses
from dpveil_audit.scalar.distributions import PointDistribution
from dpveil_audit.scalar.noise import MP, real

CLOSE: Final = 1e-9
"""Distance from the largest log-ratio, in floating point, within which ratios are recomputed exactly."""
TIED: Final = 8
MOST_TIED: Final = 4096
UNBOUNDED: Final = Fraction(10**6)
ROUNDED: Final = Fraction(1, 10**30)
"""A bound on the error of 50 digits: what a log-ratio may exceed its limit by."""
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
    yield Finding("same", "values unlike those of release", str(case), unlike, 0, unlike == 0, "values")
    yield Finding("same", "values out of range", str(case), outside, 0, outside == 0, "values")


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

"""What an integer matrix of responses costs, and integers that keep a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.errors import NoiseError
from dpveil.noise.integer_matrix import ROW_SUM, IntegerMatrix, quantise

Rows = Sequence[Sequence[int]]
"""Integer weights of all responses for every true answer, each row in its own unit."""

ROUNDING: Final = Fraction(1, 1 << 42)
"""A bound on the floating-point error of a difference of two logarithms of weights."""
LOWERED: Final = tuple(Fraction(1, 1 << k) for k in range(40, 8, -4))
"""Relative amounts by which the formula's ε is lowered, one after another."""
MIXING: Final = Fraction(1, 1 << 24)
"""Rows are mixed with a uniform law only if ε is lowered by at least this much: its share is small then."""
SPARE: Final = 8  # factor by which the amount ε is lowered must exceed the effect of rounding


@dataclass(frozen=True)
class MatrixCost:
    """The exact cost of an integer matrix, rounded up.

    `epsilon` is the largest log-ratio of two answers at most one sensitivity apart, `per_distance` the
    largest log-ratio of adjacent points of the lattice per sensitivity between them, and `overall` that of
    any two answers.
    """

    epsilon: Fraction
    per_distance: Fraction
    overall: Fraction


def cost_of_matrix(
    matrix: IntegerMatrix, points: Int64[np.ndarray, " rows"], reach: int, record: Fraction
) -> MatrixCost:
    """Return the cost of a matrix whose rows are the answers at these points of a lattice.

    Answers of neighbours are at most `reach` points apart; one sensitivity counts as `record` points.
    """
    return MatrixCost(
        epsilon=log_ratio(matrix, points, reach),
        per_distance=record * steepest(matrix, points),
        overall=log_ratio(matrix, points, int(points[-1] - points[0])),
    )


def log_ratio(matrix: IntegerMatrix, points: Int64[np.ndarray, " rows"], reach: int) -> Fraction:
    """Return max ln(W[x][y] / W[x'][y]) over answers x, x' at most `reach` steps apart, rounded up.

    Raises `NoiseError` for an unbounded ratio.
    """
    if len(set(matrix.weights)) == 1:
        return Fraction(0)
    logs = _logs(matrix)
    lowest, widest = np.empty_like(logs), int(points[-1] - points[0])
    if reach >= widest:
        lowest[:] = logs.min(axis=0)
    elif widest == len(points) - 1:
        from scipy.ndimage import maximum_filter1d  # slow to import

        lowest = -maximum_filter1d(-logs, 2 * reach + 1, axis=0, mode="nearest")
    else:
        for row, point in enumerate(points):
            lowest[row] = logs[np.abs(points - point) <= reach].min(axis=0)
    return _upper_bound(float((logs - lowest).max()))


def steepest(matrix: IntegerMatrix, points: Int64[np.ndarray, " rows"]) -> Fraction:
    """Return max |ln(W[x][y] / W[x'][y])| / steps over adjacent answers x, x', rounded up.

    Adjacent answers suffice, as log-ratios add up over distances. Raises `NoiseError` for an unbounded ratio.
    """
    if len(set(matrix.weights)) == 1:
        return Fraction(0)
    logs = _logs(matrix)
    slopes = np.abs(np.diff(logs, axis=0)) / np.diff(points)[:, None]
    return _upper_bound(float(slopes.max()))


def _logs(matrix: IntegerMatrix) -> Float64[np.ndarray, "rows shown"]:
    """Return the logarithms of all columns that are not zero; raises `NoiseError` for a zero in one."""
    weights = np.array(matrix.weights, dtype=object).astype(np.float64)
    shown = np.flatnonzero(weights.max(axis=0))
    kept = weights[:, shown]
    if kept.min() == 0:
        row, column = np.argwhere(kept == 0)[0]
        raise NoiseError(f"response {shown[column]} never follows answer {row}, but follows others")
    return np.log(kept)


def _upper_bound(found: float) -> Fraction:
    """Return an upper bound on a difference of logarithms that was found in floating point.

    A weight is rounded by a part in 2^53, and its logarithm, at most 45, by four units in its last place of
    2^-47 (the accuracy of NumPy's fastest code); two of them and their difference are off by less than 2^-43.
    """
    return Fraction(found) + ROUNDING


def certify_rows(
    rows_of: Callable[[Fraction], Rows],
    epsilon: Fraction,
    least: Fraction,
    cost: Callable[[IntegerMatrix], Fraction],
) -> IntegerMatrix:
    """Return integers for `rows_of(ε′)` whose `cost` is at most `epsilon`, with ε′ close to `epsilon`.

    The formula is not trusted: its ε′ is lowered slightly until the cost of the integers themselves is kept.

    `least` is the smallest log-ratio that `cost` bounds, such as that of one step of the lattice: rounding
    errors have to be small beside it. Raises `NoiseError` if no 64-bit integers keep the budget.
    """
    small = smallest(rows_of(epsilon)) * ROW_SUM
    for lowered in LOWERED:
        spare = lowered * least
        enough = SPARE / spare
        if spare < SPARE * ROUNDING or (small < enough and lowered < MIXING):
            continue  # lowering ε a little more costs less utility than mixing in much uniform law
        rows = rows_of(epsilon * (1 - lowered))
        matrix = quantise(rows if small >= enough else mix_uniform(rows, enough))
        if cost(matrix) <= epsilon:
            return matrix
    raise NoiseError(
        f"64-bit weights cannot carry a budget of {float(epsilon):.4g} here", hint="raise epsilon"
    )


def smallest(rows: Rows) -> Fraction:
    """Return the smallest non-zero probability of a response."""
    shown = [place for place, kept in enumerate(_possible_responses(rows)) if kept]
    return min(Fraction(min(row[place] for place in shown), sum(row)) for row in rows)


def _possible_responses(rows: Rows) -> list[bool]:
    return [any(column) for column in zip(*rows, strict=True)]


def mix_uniform(rows: Rows, least: Fraction) -> Rows:
    """Return rows mixed with a uniform law over all possible responses.

    No response gets a probability below `least`/2^64, so that its rounding to an integer matters little. The
    uniform law's share λ is the smallest power of two that achieves this. Mixing keeps every ratio within its
    bound: (1-λ)a + λu ≤ e^ε·((1-λ)b + λu) wherever a ≤ e^ε·b.
    """
    shown, count, inverse = _possible_responses(rows), sum(_possible_responses(rows)), 2
    while 2 * inverse * least * count <= ROW_SUM:
        inverse *= 2
    times = count * (inverse - 1)
    totals = [sum(row) for row in rows]
    return [
        [weight * times + total if kept else 0 for weight, kept in zip(row, shown, strict=True)]
        for row, total in zip(rows, totals, strict=True)
    ]

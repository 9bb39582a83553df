"""Requirements and optional properties of a mechanism matrix, as checks that report a violation.

A matrix has one row per response and one column per answer, M[i, j] = P(response i | answer j); `responses`
and `answers` are their numbers, in increasing order. The category of a response contains what is nearer to it
than to the others; a midpoint belongs to the upper one. Source: Croft thesis §5.2.2, R.1 to R.3 and 5.58 to
5.63. Every check returns None, or the first entry (row by row) that violates the property.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar.base import ANY, RECORD

Floats = Float64[np.ndarray, "..."]
TOLERANCE: Final = 1e-12
"""Largest error of a probability, or of a log-ratio, that counts as rounding."""


@dataclass(frozen=True)
class Violation:
    """The first entry that violates a property; row and column count from 0, -1 stands for none.

    `found` is the wrong value, and `bound` the value it is compared with.
    """

    property: str
    row: int
    column: int
    found: float
    bound: float
    words: str

    def __str__(self) -> str:
        return f"{self.property}: {self.words}"


def private(
    matrix: Any,
    answers: Any,
    epsilon: float,
    sensitivity: float = 1,
    relation: str = ANY,
    tolerance: float = TOLERANCE,
) -> Violation | None:
    """Check R.1 (5.52): ln(M[i,j] / M[i,k]) is at most ε for answers j, k at most `sensitivity` apart.

    With any-database it is at most ε per `sensitivity` between any two answers. `tolerance` is on the
    logarithm. Raises `InvalidParameter` for arguments that do not fit the matrix.

    >>> print(private([[0.9, 0.1], [0.1, 0.9]], [0, 1], epsilon=1))
    R.1: M[0, 0] = 0.9 is more than e^1 times M[0, 1] = 0.1, for answers 0 and 1
    """
    table, given = _table(matrix), _numbers("answers", answers, _table(matrix).shape[1])
    if relation not in (ANY, RECORD):
        raise InvalidParameter("relation", relation, "is unknown", hint=f"choose {RECORD} or {ANY}")
    apart = np.abs(given[:, None] - given[None, :])
    bound = np.full(apart.shape, float(epsilon))
    if relation == ANY:
        bound = epsilon * apart / float(sensitivity)
    else:
        bound[apart > float(sensitivity) * (1 + TOLERANCE)] = np.inf
    for i, row in enumerate(table):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(row[:, None] / row[None, :])
        # 0/0 reveals nothing; a negative entry fails R.1 as well
        ratios[(row[:, None] == 0) & (row[None, :] == 0)] = 0
        ratios[np.isnan(ratios)] = np.inf
        wrong = np.argwhere((ratios > bound + tolerance) & np.isfinite(bound))
        if len(wrong):
            j, k = (int(place) for place in wrong[0])
            words = (
                f"M[{i}, {j}] = {row[j]:.6g} is more than e^{bound[j, k]:.6g} times M[{i}, {k}] = "
                f"{row[k]:.6g}, for answers {given[j]:g} and {given[k]:g}"
            )
            return Violation("R.1", i, j, float(row[j]), float(np.exp(bound[j, k]) * row[k]), words)
    return None


def covering(matrix: Any, responses: Any, answers: Any, tolerance: float = TOLERANCE) -> Violation | None:
    """Check R.2 (5.53 to 5.55): categories are disjoint and finite, and every answer lies in one.

    Responses have to be finite and increasing; the outer categories extend as far out as their inner half.
    """
    table = _table(matrix)
    shown = _numbers("responses", responses, table.shape[0], ordered=False)
    given = _numbers("answers", answers, table.shape[1])
    for i, (low, high) in enumerate(itertools.pairwise(shown), 1):
        if not low < high:
            words = f"response {i} is {high:g}, not above {low:g} before it, so categories overlap"
            return Violation("R.2", i, -1, float(high), float(low), words)
    half = np.diff(shown) / 2 if len(shown) > 1 else np.zeros(1)
    low, high = shown[0] - half[0] - tolerance, shown[-1] + half[-1] + tolerance
    for j, answer in enumerate(given):
        if not low <= answer <= high:
            words = f"answer {j} is {answer:g}, in no category: they span {low:g} to {high:g}"
            return Violation("R.2", -1, j, float(answer), float(low if answer < low else high), words)
    return None


def distributions(matrix: Any, tolerance: float = TOLERANCE) -> Violation | None:
    """Check R.3 (5.56, 5.57): no entry is negative (not even within the tolerance), columns sum to 1.

    >>> print(distributions([[0.5, 0.2], [0.5, 0.7]]))
    R.3: column 1 sums to 0.9
    """
    table = _table(matrix)
    negative = np.argwhere(~(table >= 0))
    if len(negative):
        i, j = (int(place) for place in negative[0])
        return Violation("R.3", i, j, float(table[i, j]), 0.0, f"M[{i}, {j}] = {table[i, j]:.6g} is below 0")
    sums = table.sum(axis=0)
    wrong = np.flatnonzero(np.abs(sums - 1) > tolerance * len(table))
    if len(wrong):
        j = int(wrong[0])
        return Violation("R.3", -1, j, float(sums[j]), 1.0, f"column {j} sums to {sums[j]:.12g}")
    return None


def row_monotone(matrix: Any, responses: Any, answers: Any, tolerance: float = TOLERANCE) -> Violation | None:
    """Check 5.60 and 5.61: along a row, probabilities rise up to the answers in the category and then fall.

    Answers in one category must have the same probability, as the formulas require.
    """
    table, home = _with_homes(matrix, responses, answers)
    i = np.arange(len(table))[:, None]
    left, right = table[:, :-1], table[:, 1:]
    rising = (home[None, 1:] <= i) & (left > right + tolerance)
    falling = (home[None, :-1] >= i) & (right > left + tolerance)
    return _steps("row monotonicity", table, rising, falling, (0, 1))


def column_monotone(
    matrix: Any, responses: Any, answers: Any, tolerance: float = TOLERANCE
) -> Violation | None:
    """Check 5.58 and 5.59: along a column, probabilities rise up to the answer's category and then fall.

    >>> matrix = [[0.5, 0.3, 0.2], [0.2, 0.4, 0.2], [0.3, 0.3, 0.6]]
    >>> print(column_monotone(matrix, [0, 1, 2], [0, 1, 2]))
    column monotonicity: M[2, 0] = 0.3 is farther off than M[1, 0] = 0.2, but larger
    """
    table, home = _with_homes(matrix, responses, answers)
    i = np.arange(len(table) - 1)[:, None]
    upper, lower = table[:-1], table[1:]
    rising = (i < home[None, :]) & (upper > lower + tolerance)
    falling = (i >= home[None, :]) & (lower > upper + tolerance)
    return _steps("column monotonicity", table, rising, falling, (1, 0))


def symmetric(matrix: Any, tolerance: float = TOLERANCE) -> Violation | None:
    """Check 5.62: the matrix is unchanged by a rotation by 180°."""
    table = _table(matrix)
    turned = table[::-1, ::-1]
    wrong = np.argwhere(np.abs(table - turned) > tolerance)
    if not len(wrong):
        return None
    i, j = (int(place) for place in wrong[0])
    k, m = len(table) - 1 - i, table.shape[1] - 1 - j
    words = f"M[{i}, {j}] = {table[i, j]:.6g} is not M[{k}, {m}] = {turned[i, j]:.6g}"
    return Violation("symmetry", i, j, float(table[i, j]), float(turned[i, j]), words)


def fair(matrix: Any, responses: Any, answers: Any, tolerance: float = TOLERANCE) -> Violation | None:
    """Check 5.63: the category of the true answer has the same probability for every answer.

    >>> print(fair([[0.6, 0.5], [0.4, 0.5]], [0, 1], [0, 1]))
    fairness: answer 1 is reported truly with chance M[1, 1] = 0.5, answer 0 with 0.6
    """
    table, home = _with_homes(matrix, responses, answers)
    true = table[home, np.arange(table.shape[1])]
    wrong = np.flatnonzero(np.abs(true - true[0]) > tolerance)
    if not len(wrong):
        return None
    j = int(wrong[0])
    i = int(home[j])
    words = (
        f"answer {j} is reported truly with chance M[{i}, {j}] = {true[j]:.6g}, answer 0 with {true[0]:.6g}"
    )
    return Violation("fairness", i, j, float(true[j]), float(true[0]), words)


def check_all(
    matrix: Any,
    responses: Any,
    answers: Any,
    epsilon: float,
    sensitivity: float = 1,
    relation: str = ANY,
    tolerance: float = TOLERANCE,
) -> dict[str, Violation | None]:
    """Return the result of every check by the name of its property: None if it holds.

    >>> [name for name, found in check_all([[0.6, 0.5], [0.4, 0.5]], [0, 1], [0, 1], 1).items() if found]
    ['symmetry', 'fairness']
    """
    return {
        "R.1": private(matrix, answers, epsilon, sensitivity, relation, tolerance),
        "R.2": covering(matrix, responses, answers, tolerance),
        "R.3": distributions(matrix, tolerance),
        "row monotonicity": row_monotone(matrix, responses, answers, tolerance),
        "column monotonicity": column_monotone(matrix, responses, answers, tolerance),
        "symmetry": symmetric(matrix, tolerance),
        "fairness": fair(matrix, responses, answers, tolerance),
    }


def _steps(
    name: str,
    table: Floats,
    rising: Bool[np.ndarray, ...],
    falling: Bool[np.ndarray, ...],
    step: tuple[int, int],
) -> Violation | None:
    wrong = np.argwhere(rising | falling)
    if not len(wrong):
        return None
    i, j = (int(place) for place in wrong[0])
    first, second = (i, j), (i + step[0], j + step[1])
    far, near = (first, second) if rising[i, j] else (second, first)
    words = (
        f"M[{far[0]}, {far[1]}] = {table[far]:.6g} is farther off than "
        f"M[{near[0]}, {near[1]}] = {table[near]:.6g}, but larger"
    )
    return Violation(name, *far, float(table[far]), float(table[near]), words)


def _table(matrix: Any) -> Float64[np.ndarray, "responses answers"]:
    table = np.asarray(matrix, np.float64)
    if table.ndim != 2 or not table.size:
        raise InvalidParameter(
            "matrix", str(table.shape), "is not a table", hint="rows are responses, columns answers"
        )
    return table


def _numbers(name: str, values: Any, count: int, ordered: bool = True) -> Float64[np.ndarray, " n"]:
    numbers = np.asarray([float(value) for value in np.ravel(np.asarray(values, dtype=object))], np.float64)
    if len(numbers) != count:
        raise InvalidParameter(name, len(numbers), f"are not the {count} of the matrix", hint="one for each")
    if not np.isfinite(numbers).all() or (ordered and (np.diff(numbers) <= 0).any()):
        raise InvalidParameter(name, "list", "are not finite and increasing", hint="sort them")
    return numbers


def _with_homes(
    matrix: Any, responses: Any, answers: Any
) -> tuple[Float64[np.ndarray, "responses answers"], Int64[np.ndarray, " answers"]]:
    """Return the matrix, and the row of the category that contains each answer."""
    table = _table(matrix)
    shown = _numbers("responses", responses, table.shape[0])
    given = _numbers("answers", answers, table.shape[1])
    return table, np.searchsorted((shown[:-1] + shown[1:]) / 2, given, side="right")

"""The thesis's linear programs in floating point, not repaired: for comparing errors, not for releases.

By symmetry only half of the entries are variables. That changes no optimum: the mean of a solution and its
mirror image is a solution as well.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from dpveil.errors import DPVeilError

Floats = Float64[np.ndarray, "..."]


class _Program:
    """Rows of `weights · entries ≤ 0`, in the order in which they are added."""

    def __init__(self, responses: int, answers: int) -> None:
        flat = np.arange(responses * answers).reshape(responses, answers)
        _, inverse = np.unique(np.minimum(flat, flat[::-1, ::-1]), return_inverse=True)
        self.entry: Any = inverse.reshape(responses, answers)
        self.rows: list[Any] = []

    def below(self, one: Any, other: Any, factor: float = 1) -> None:
        """Add one ≤ factor · other, entry by entry."""
        one, other = np.ravel(one), np.ravel(other)
        self.rows.append(np.stack([one, other, np.full(one.size, factor)], axis=1))

    def matrix(self) -> Any:
        """Return the distinct rows as a sparse matrix."""
        rows = np.unique(np.concatenate(self.rows), axis=0)
        place = np.arange(len(rows))
        values = np.concatenate([np.ones(len(rows)), -rows[:, 2]])
        columns = rows[:, :2].T.reshape(-1).astype(int)
        return csr_matrix((values, (np.tile(place, 2), columns)), (len(rows), int(self.entry.max()) + 1))


def optimum(
    answers: Floats, responses: Floats, reach: int, epsilon: float, *, fair: bool = False
) -> Float64[np.ndarray, "responses answers"]:
    """Return the matrix of least expected absolute error: variant 1, or with `fair` variant 2.

    `answers` and `responses` are sorted and symmetric about one centre; one record moves the answer by at
    most `reach` of them. Variant 2 has monotone rows and columns, and the same probability of every true
    answer. Raises `DPVeilError` if the solver fails. Source: Croft thesis 5.52, 5.56 to 5.63 and 5.67.
    """
    program = _Program(len(responses), len(answers))
    entry = program.entry
    for d in range(1, min(reach, len(answers) - 1) + 1):
        program.below(entry[:, d:], entry[:, :-d], exp(epsilon))
        program.below(entry[:, :-d], entry[:, d:], exp(epsilon))
    if fair:
        _monotone(program, answers, responses)
    cost = np.bincount(
        entry.ravel(), np.abs(np.subtract.outer(responses, answers)).ravel(), int(entry.max()) + 1
    )
    equal, totals = _equalities(program, answers, responses, fair=fair)
    limits = program.matrix()
    found = linprog(cost, limits, np.zeros(limits.shape[0]), equal, totals, method="highs-ipm")
    if found.status != 0:
        raise DPVeilError(f"the linear program was not solved: {found.message}")
    entries = np.maximum(found.x, 0)[entry]
    solved: Float64[np.ndarray, "responses answers"] = entries / entries.sum(axis=0)
    return solved


def _own(answers: Floats, responses: Floats) -> Any:
    """Return the index of the response nearest to every answer."""
    return np.abs(np.subtract.outer(answers, responses)).argmin(axis=1)


def _monotone(program: _Program, answers: Floats, responses: Floats) -> None:
    """Add constraints: probabilities fall away from the response in rows, and from the answer in columns."""
    entry, half = program.entry, float(responses[1] - responses[0]) / 2
    for i, response in enumerate(responses):
        rising = np.flatnonzero(answers[1:] <= response + half)
        falling = np.flatnonzero(answers[:-1] >= response - half)
        program.below(entry[i, rising], entry[i, rising + 1])
        program.below(entry[i, falling + 1], entry[i, falling])
    for j, own in enumerate(_own(answers, responses)):
        program.below(entry[:own, j], entry[1 : own + 1, j])
        program.below(entry[own + 1 :, j], entry[own:-1, j])


def _equalities(program: _Program, answers: Floats, responses: Floats, *, fair: bool) -> tuple[Any, Any]:
    """Return the constraints that columns sum to 1, and with `fair` that all true answers are equally
    probable.
    """
    entry, half = program.entry, (len(answers) + 1) // 2
    rows = np.repeat(np.arange(half), len(responses))
    columns, values = entry[:, :half].T.ravel(), np.ones(half * len(responses))
    totals = np.ones(half)
    if fair and half > 1:
        true = entry[_own(answers, responses)[:half], np.arange(half)]
        more = np.arange(half, 2 * half - 1)
        rows = np.concatenate([rows, more, more])
        columns = np.concatenate([columns, np.repeat(true[:1], half - 1), true[1:]])
        values = np.concatenate([values, np.ones(half - 1), -np.ones(half - 1)])
        totals = np.concatenate([totals, np.zeros(half - 1)])
    return csr_matrix((values, (rows, columns)), (len(totals), int(entry.max()) + 1)), totals

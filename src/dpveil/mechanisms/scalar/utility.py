"""The utility of a mechanism matrix: expected error, worst-case error, and the error after remapping.

A matrix has one row per response and one column per answer; `responses` and `answers` are their numbers. A
`prior` has one weight per answer (non-negative, normalised here; uniform by default). A loss is a function of
arrays (answers, guesses) that broadcast, such as `absolute` or `squared`. Functions raise `InvalidParameter`
for arguments that do not fit the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from dpveil.errors import InvalidParameter

Floats = Float64[np.ndarray, "..."]
Loss = Callable[[Floats, Floats], Floats]


def absolute(answers: Floats, guesses: Floats) -> Floats:
    """Return |f - f'|. Source: Croft thesis 5.78."""
    found: Floats = np.abs(answers - guesses)
    return found


def squared(answers: Floats, guesses: Floats) -> Floats:
    """Return (f - f')². Source: Croft thesis 5.79."""
    found: Floats = (answers - guesses) ** 2
    return found


def expected_absolute_error(matrix: Any, responses: Any, answers: Any, prior: Any = None) -> float:
    """Return Σ P(f) P(r|f) |f - r|. Source: Croft thesis 5.75, there for a uniform prior.

    >>> expected_absolute_error([[0.75, 0.25], [0.25, 0.75]], [0, 2], [0, 2])
    0.5
    """
    return expected_loss(matrix, responses, answers, prior, absolute)


def expected_squared_error(matrix: Any, responses: Any, answers: Any, prior: Any = None) -> float:
    """Return Σ P(f) P(r|f) (f - r)². Source: Croft thesis 5.76, there for a uniform prior.

    >>> expected_squared_error([[0.75, 0.25], [0.25, 0.75]], [0, 2], [0, 2])
    1.0
    """
    return expected_loss(matrix, responses, answers, prior, squared)


def expected_loss(
    matrix: Any, responses: Any, answers: Any, prior: Any = None, loss: Loss = absolute
) -> float:
    """Return the mean loss over answers drawn from the prior, and their responses."""
    each = loss_of_answers(matrix, responses, answers, loss)
    return float(_prior(prior, len(each)) @ each)


def worst_loss(matrix: Any, responses: Any, answers: Any, loss: Loss = absolute) -> float:
    """Return the largest mean loss of any answer.

    >>> worst_loss([[0.75, 0.5], [0.25, 0.5]], [0, 2], [0, 2])
    1.0
    """
    return float(loss_of_answers(matrix, responses, answers, loss).max())


def loss_of_answers(
    matrix: Any, responses: Any, answers: Any, loss: Loss = absolute
) -> Float64[np.ndarray, " answers"]:
    """Return the mean loss of every answer."""
    table, shown, given = _checked(matrix, responses, answers)
    found: Float64[np.ndarray, " answers"] = (table * loss(given[None, :], shown[:, None])).sum(axis=0)
    return found


@dataclass(frozen=True, eq=False)
class Remapping:
    """The best guess of a Bayesian user for each response, and the mean loss that remains."""

    guesses: Float64[np.ndarray, " responses"]
    loss: float


def remap(matrix: Any, responses: Any, answers: Any, prior: Any = None, loss: Loss = absolute) -> Remapping:
    """Return for every response the answer of least expected posterior loss, and that loss overall.

    Of equally good answers the lowest is guessed; a response of probability 0 is mapped to its nearest
    answer. The loss is Σ_r min_f Σ_f' P(f') P(r|f') Loss(f', f). Croft thesis 5.77 multiplies by P(r) once
    more, which P(f') P(r|f') already contains. Source: Croft thesis 5.77 to 5.79, corrected.

    >>> found = remap([[0.6, 0.5], [0.4, 0.5]], [0, 1], [0, 1])
    >>> found.guesses.tolist(), round(found.loss, 3)
    ([0.0, 1.0], 0.45)
    """
    table, shown, given = _checked(matrix, responses, answers)
    joint = table * _prior(prior, len(given))[None, :]
    losses = joint @ loss(given[:, None], given[None, :])
    best = losses.argmin(axis=1)
    nearest = np.abs(shown[:, None] - given[None, :]).argmin(axis=1)
    guesses = given[np.where(joint.max(axis=1) > 0, best, nearest)]
    return Remapping(guesses=guesses, loss=float(losses.min(axis=1).sum()))


def _prior(prior: Any, count: int) -> Float64[np.ndarray, " answers"]:
    if prior is None:
        return np.full(count, 1 / count)
    weights = np.asarray(prior, np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() <= 0:
        raise InvalidParameter("prior", str(weights.shape), f"is not {count} chances", hint="one per answer")
    chances: Float64[np.ndarray, " answers"] = weights / weights.sum()
    return chances


def _checked(matrix: Any, responses: Any, answers: Any) -> tuple[Floats, Floats, Floats]:
    table = np.asarray(matrix, np.float64)
    shown, given = (np.asarray(values, np.float64).ravel() for values in (responses, answers))
    if table.shape != (len(shown), len(given)) or not table.size:
        raise InvalidParameter(
            "matrix",
            str(table.shape),
            f"does not have {len(shown)} responses and {len(given)} answers",
            hint="rows are responses, columns answers",
        )
    return table, shown, given

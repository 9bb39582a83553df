"""A statistical lower bound on ε from releases of two inputs, for what has no law to compute.

Half of the draws choose one event, and the other half bounds its two probabilities (Clopper & Pearson 1934),
so the choice needs no correction: with probability at least 1 - alpha, the true ε is not below the bound.
Events are thresholds of a log-likelihood ratio that is learned from counts, as if values were independent. A
quarter of the draws learns it and a quarter ranks the events, as a ratio looks too good on the draws that it
was learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import UInt8
from scipy import stats

from dpveil.errors import InvalidParameter
from dpveil_audit.fit import ALPHA

COLUMNS: Final = 8  # values of a release that are used: those whose means differ most
THRESHOLDS: Final = 256  # thresholds that are tried, about
DEVIATIONS: Final = 6.0
"""Standard errors subtracted when an event is chosen; the bound is valid for any number."""
FEWEST: Final = 1000  # draws of each half of a side
CERTAIN: Final = 1e6  # stands for an infinite ε, of inputs that are distinguished with certainty
Draws = UInt8[np.ndarray, "n values"]


@dataclass(frozen=True)
class Bound:
    """`lower` holds with probability 1 - alpha, by an event in words."""

    lower: float
    event: str


def lower_bound(first: np.ndarray, second: np.ndarray, *, alpha: float = ALPHA) -> Bound:
    """Return a lower bound on ε from releases of two inputs as bytes, one release per row.

    Raises `InvalidParameter` for too few draws.

    >>> always, never = np.ones((4000, 1), np.uint8), np.zeros((4000, 1), np.uint8)
    >>> round(lower_bound(always, never).lower, 1)
    4.5
    """
    if first.shape != second.shape:
        return Bound(CERTAIN, "counts of numbers that differ")
    if len(first) < 2 * FEWEST:
        raise InvalidParameter(
            "draws", len(first), "are too few", hint=f"use {2 * FEWEST} or more of each input"
        )
    quarter, draws = len(first) // 4, len(first) // 2
    sides = [side.reshape(len(side), -1) for side in (first, second)]
    ratio = _learned_ratio(*(side[:quarter] for side in sides))
    ranked = [np.sort(ratio(side[quarter : 2 * quarter])) for side in sides]
    edges = np.unique([values[:: max(1, 2 * quarter // THRESHOLDS)] for values in ranked])
    above = np.array([quarter - np.searchsorted(values, edges) for values in ranked])
    # The first input is likelier below an edge, the second one from it on.
    events = np.stack([quarter - above, above[::-1]])
    swapped, at = np.unravel_index(_scores(events[:, 0], events[:, 1], quarter).argmax(), events[:, 0].shape)
    tested = [int((ratio(side[-draws:]) >= edges[at]).sum()) for side in sides]
    likely, rare = tested[::-1] if swapped else (draws - count for count in tested)
    low = float(stats.beta.ppf(alpha / 2, likely, draws - likely + 1)) if likely else 0.0
    high = float(stats.beta.isf(alpha / 2, rare + 1, draws - rare)) if rare < draws else 1.0
    return Bound(
        float(_log_ratio(low, high)), f"learned ratio {'above' if swapped else 'below'} {edges[at]:.2f}"
    )


def _learned_ratio(first: Draws, second: Draws) -> Any:
    """Return the sum of log-ratios of the counts of each value, as a function of draws."""
    shift = np.abs(first.mean(axis=0) - second.mean(axis=0))
    columns = np.argsort(-shift, kind="stable")[:COLUMNS]
    logs = [
        [np.log(np.bincount(side[:, column], minlength=256) + 1.0) for side in (second, first)]
        for column in columns
    ]
    return lambda draws: sum(
        (own - other)[draws[:, column]] for column, (own, other) in zip(columns, logs, strict=True)
    )


def _log_ratio(p: Any, q: Any) -> Any:
    return np.maximum(0.0, np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300)))


def _scores(likely: np.ndarray, rare: np.ndarray, size: int) -> Any:
    """Return approximately the ε that would be certain, by Poisson score limits in closed form."""
    half = DEVIATIONS**2 / 2
    low = likely + half - DEVIATIONS * np.sqrt(likely + half / 2)
    high = rare + half + DEVIATIONS * np.sqrt(rare + half / 2)
    # Events that show nothing are ranked as well, so that some event is always chosen.
    return _log_ratio(np.maximum(low, 0) / size, np.minimum(high / size, 1)) + 1e-9 * (low - high) / size

"""A statistical lower bound on ε from releases of two inputs, for what has no law to compute.

Half of the draws choose one event, and the other half bounds its two probabilities (Clopper & Pearson 1934),
so the choice needs no correction: with probability at least 1 - alpha, the true ε is not below the bound.
Events are thresholds of one value, or of a log-likelihood ratio learned from counts as if values were
independent. A quarter of the draws learns it and a quarter ranks the events, as a ratio looks too good on the
draws that it was learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Int64, Real, UInt8
from scipy import stats

from dpveil.errors import InvalidParameter
from dpveil_audit.fit import ALPHA

MOST_SHIFTED: Final = 6
"""Columns used: those whose means differ most."""
LEAST_SHIFTED: Final = 2
"""Further columns used: those whose means differ least."""
THRESHOLDS: Final = 64
"""Thresholds tried for each projection."""
DEVIATIONS: Final = 6.0
"""Standard errors subtracted when an event is chosen; the bound is valid for any number."""
FEWEST: Final = 1000
"""Draws of each half of a side."""
CERTAIN: Final = 1e6
"""Stands for an infinite ε, of inputs that are distinguished with certainty."""
Draws = UInt8[np.ndarray, "n values"]
Projected = Real[np.ndarray, " n"]
Projection = Callable[[Draws], Projected]


@dataclass(frozen=True)
class Bound:
    """`lower` holds with probability 1 - alpha, by an event with this name."""

    lower: float
    event: str


@dataclass(frozen=True)
class _Event:
    name: str
    projection: Projection
    threshold: float
    above: bool
    swapped: bool

    def hits(self, draws: Draws) -> int:
        values = self.projection(draws)
        return int(np.sum(values >= self.threshold if self.above else values <= self.threshold))


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
    learned, ranked = ([side[start : start + quarter] for side in sides] for start in (0, quarter))
    event = max(_candidates(learned, ranked), key=lambda scored: scored[0])[1]
    likely, rare = (event.hits(side[-draws:]) for side in (sides[::-1] if event.swapped else sides))
    low = float(stats.beta.ppf(alpha / 2, likely, draws - likely + 1)) if likely else 0.0
    high = float(stats.beta.isf(alpha / 2, rare + 1, draws - rare)) if rare < draws else 1.0
    return Bound(float(_log_ratio(np.array(low), np.array(high))), event.name)


def _log_ratio(p: np.ndarray, q: np.ndarray) -> Any:
    return np.maximum(0.0, np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300)))


def _candidates(learned: list[Draws], ranked: list[Draws]) -> Iterator[tuple[float, _Event]]:
    """Yield the best event of every projection, with its score on draws that did not make it."""
    for name, projection in _projections(*learned):
        values = [np.sort(projection(draws), kind="stable") for draws in ranked]  # counts small integers
        edges = np.unique([v[:: max(1, len(v) // THRESHOLDS)] for v in values])
        hits = np.array([[_hits(v, edges, above) for v in values] for above in (False, True)])
        both = np.stack([hits, hits[:, ::-1]], axis=1)  # above, swapped, side, edge
        found = _scores(both[:, :, 0], both[:, :, 1], len(ranked[0]))
        for (above, swapped), best in np.ndenumerate(found.argmax(axis=2)):
            event = _Event(name, projection, float(edges[best]), bool(above), bool(swapped))
            yield float(found[above, swapped, best]), event


def _hits(ordered: Projected, edges: Real[np.ndarray, " k"], above: bool) -> Int64[np.ndarray, " k"]:
    if above:
        return len(ordered) - np.searchsorted(ordered, edges, side="left").astype(np.int64)
    return np.searchsorted(ordered, edges, side="right").astype(np.int64)


def _scores(first: Int64[np.ndarray, "*k"], second: Int64[np.ndarray, "*k"], size: int) -> Any:
    """Return approximately the ε that would be certain, by Poisson score limits in closed form."""
    half = DEVIATIONS**2 / 2
    low = first + half - DEVIATIONS * np.sqrt(first + half / 2)
    high = second + half + DEVIATIONS * np.sqrt(second + half / 2)
    # Events that show nothing are ranked as well, so that some event is always chosen.
    return _log_ratio(np.maximum(low, 0) / size, np.minimum(high / size, 1)) + 1e-9 * (low - high) / size


def _projections(first: Draws, second: Draws) -> Iterator[tuple[str, Projection]]:
    """Yield projections by name; what they learn comes from these draws alone."""
    both = np.ascontiguousarray(np.concatenate([first, second]).T)
    distinct = {values.tobytes(): column for column, values in reversed([*enumerate(both)])}
    shift = np.abs(first.mean(axis=0) - second.mean(axis=0))
    order = sorted(distinct.values(), key=lambda column: -float(shift[column]))
    columns = order[:MOST_SHIFTED] + order[MOST_SHIFTED:][-LEAST_SHIFTED:]
    for column in columns:
        yield f"value {column}", partial(_value, column=column)
    tables = [
        np.subtract(*(np.log(np.bincount(side[:, column], minlength=256) + 1.0) for side in (second, first)))
        for column in columns
    ]
    yield (
        "learned ratio",
        lambda draws: sum(table[draws[:, column]] for column, table in zip(columns, tables, strict=True)),
    )


def _value(draws: Draws, column: int) -> Projected:
    return draws[:, column]

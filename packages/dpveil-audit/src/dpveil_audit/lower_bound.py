"""A statistical lower bound on a privacy budget, from releases of two neighbours.

Training draws choose one event, and test draws bound its two probabilities (Clopper & Pearson 1934), so the
choice needs no correction: with probability at least 1 - alpha, the true ε at this δ, or the true ρ, is not
below `lower`. Events are thresholds of one-dimensional projections: distinct output values, differences of
two, the log-likelihood ratio of Laplace noise around the centres of both inputs, and one learned from the
counts of draws as if values were independent. One half of the training draws makes the projections and the
other half ranks their events, as a projection looks too good on the draws that it was learned from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, Real, UInt8
from scipy import stats

from dpveil.errors import InvalidParameter
from dpveil_audit.fit import ALPHA

MISSED: Final = 1e-9
"""Largest probability that a violation called detectable is missed."""
ORDERS: Final = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Rényi orders at which an event is evaluated."""

Chances = Float64[np.ndarray, "*k"]
Measure = Callable[[Chances, Chances], Chances]
"""A function of (p, q) that returns the smallest budget that allows them; 0 if p ≤ q."""


def epsilon_at(delta: float) -> Measure:
    """Return the measure ln((p - δ)/q) of (ε, δ)-DP.

    >>> round(float(epsilon_at(0.1)(np.array([0.6]), np.array([0.25]))[0]), 3)
    0.693
    """

    def measure(p: Chances, q: Chances) -> Chances:
        ratio = np.maximum(p - delta, 1e-300) / np.maximum(q, 1e-300)
        epsilons: Chances = np.maximum(0.0, np.log(ratio))
        return epsilons

    return measure


def delta_seen(p: Chances, q: Chances) -> Chances:
    """Return p - q, a lower bound on the δ of (0, δ)-DP."""
    deltas: Chances = np.maximum(0.0, p - q)
    return deltas


def rho_seen(p: Chances, q: Chances) -> Chances:
    """Return max D_α(Bernoulli(p), Bernoulli(q))/α over orders α, KL included: a lower bound on ρ.

    The divergence of a release is at least that of any event (data processing), and D_α ≤ ρα.

    >>> float(rho_seen(np.array([0.5]), np.array([0.5]))[0])
    0.0
    """
    hit, miss = np.clip(p, 1e-300, 1.0), np.clip(1 - p, 1e-300, 1.0)
    other_hit, other_miss = np.clip(q, 1e-300, 1.0), np.clip(1 - q, 1e-300, 1.0)
    yes, no = np.log(hit) - np.log(other_hit), np.log(miss) - np.log(other_miss)
    best = hit * yes + np.where(p < 1, miss * no, 0.0)
    for order in ORDERS:
        terms = np.logaddexp(np.log(hit) + (order - 1) * yes, np.log(miss) + (order - 1) * no)
        best = np.maximum(best, terms / (order - 1) / order)
    return np.where(p > q, np.maximum(best, 0.0), 0.0)


def smallest_detectable(
    samples: int,
    budget: float,
    event: Callable[[float], tuple[Chances, Chances]],
    measure: Measure,
    *,
    alpha: float,
    missed: float,
) -> float:
    """Return the smallest true budget that `samples` test draws per side show to be above `budget`.

    `event(b)` returns the probabilities of events under both inputs for a true budget of b. With such an
    event, a violation of at least the result is missed with probability at most 2·`missed`. Infinite if draws
    are too few. Source: binomial quantiles.
    """
    low, high = budget, 40 * budget + 40
    if not _is_detectable(samples, budget, event(high), measure, alpha, missed):
        return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        shown = _is_detectable(samples, budget, event(middle), measure, alpha, missed)
        low, high = (low, middle) if shown else (middle, high)
    return high


def _is_detectable(
    samples: int,
    budget: float,
    chances: tuple[Chances, Chances],
    measure: Measure,
    alpha: float,
    missed: float,
) -> bool:
    fewest = stats.binom.ppf(missed, samples, chances[0])
    most = stats.binom.isf(missed, samples, chances[1])
    low = np.nan_to_num(stats.beta.ppf(alpha / 2, fewest, samples - fewest + 1), nan=0.0)
    high = np.nan_to_num(stats.beta.isf(alpha / 2, most + 1, samples - most), nan=1.0)
    return bool(np.any(measure(low, high) > budget))


def epsilon_event(chance: float, delta: float) -> Callable[[float], tuple[Chances, Chances]]:
    """Return the event of this probability under one input that uses all of (ε, δ) under the other."""

    def event(epsilon: float) -> tuple[Chances, Chances]:
        return np.array([chance]), np.array([(chance - delta) * math.exp(-epsilon)])

    return event


def delta_event(delta: float) -> tuple[Chances, Chances]:
    """Return the event of probability δ under one input that is impossible under the other."""
    return np.array([min(1.0, delta)]), np.zeros(1)


def gaussian_events(rho: float) -> tuple[Chances, Chances]:
    """Return the probabilities of thresholds between two Gaussians √(2ρ) standard deviations apart."""
    move = math.sqrt(2 * rho)
    at = np.linspace(0, move, 29)  # black and white are clamped: what lies outside is not told apart
    return stats.norm.cdf(at), stats.norm.cdf(at - move)


# A statistical lower bound on a privacy budget, from releases of two neighbours.
#
# Training draws choose one event, and test draws bound its two probabilities (Clopper & Pearson 1934), so the
# choice needs no correction: with probability at least 1 - alpha, the true ε at this δ, or the true ρ, is not
# below `lower`. Events are thresholds of one-dimensional projections: distinct output values, differences of
# two, the log-likelihood ratio of Laplace noise around the centres of both inputs, and one learned from the
# counts of draws as if values were independent. One half of the training draws makes the projections and the
# other half ranks their events, as a projection looks too good on the draws that it was learned from.

MOST_SHIFTED: Final = 6
"""Columns used by projections: those whose means differ most."""
LEAST_SHIFTED: Final = 2
"""Further columns used: those whose means differ least."""
THRESHOLDS: Final = 64
"""Thresholds tried for each projection."""
DEVIATIONS: Final = 6.0
"""Standard errors subtracted when an event is chosen; the bound is valid for any number."""

Draws = UInt8[np.ndarray, "n values"]
Projected = Real[np.ndarray, " n"]
Projection = Callable[[Draws], Projected]


@dataclass(frozen=True)
class Bound:
    """`lower` holds with probability 1 - alpha; `event` occurred `hits` times in `draws` of each input."""

    lower: float
    event: str
    hits: tuple[int, int]
    draws: int
    alpha: float


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


def lower_bound(
    train: tuple[Draws, Draws],
    test: tuple[Draws, Draws],
    *,
    measure: Measure | None = None,
    alpha: float = ALPHA,
) -> Bound:
    """Return a lower bound on the budget from releases of a first and a second input, one draw per row.

    `measure` says which budget: ε at δ = 0 by default. `train` and `test` must be independent. Raises
    `InvalidParameter` for too few draws.

    >>> always, never = np.ones((2000, 1), np.uint8), np.zeros((2000, 1), np.uint8)
    >>> round(lower_bound((always, never), (always, never)).lower, 1)
    4.5
    """
    if min(len(draws) for draws in (*train, *test)) < 1000:
        raise InvalidParameter("draws", None, "are too few", hint="use 1000 or more of each input")
    budget = measure or epsilon_at(0.0)
    event = max(_candidates(train, budget), key=lambda scored: scored[0])[1]
    first, second = test[::-1] if event.swapped else test
    hits = event.hits(first), event.hits(second)
    bound = certain(hits, (len(first), len(second)), budget, alpha)
    return Bound(bound, event.name, hits, len(first), alpha)


def certain(hits: tuple[int, int], draws: tuple[int, int], measure: Measure, alpha: float) -> float:
    """Return the budget that follows from both confidence limits: p at its lower one, q at its upper one."""
    low, high = 0.0, 1.0
    if hits[0] > 0:
        low = float(stats.beta.ppf(alpha / 2, hits[0], draws[0] - hits[0] + 1))
    if hits[1] < draws[1]:
        high = float(stats.beta.isf(alpha / 2, hits[1] + 1, draws[1] - hits[1]))
    return float(measure(np.array([low]), np.array([high]))[0])


def _candidates(train: tuple[Draws, Draws], measure: Measure) -> Iterator[tuple[float, _Event]]:
    """Yield the best event of every projection, with its score on training draws that did not make it."""
    half = len(train[0]) // 2
    learned, ranked = (train[0][:half], train[1][:half]), (train[0][half:], train[1][half:])
    for name, projection in _projections(learned):
        values = [np.sort(projection(draws), kind="stable") for draws in ranked]  # counts small integers
        edges = np.unique([v[:: max(1, len(v) // THRESHOLDS)] for v in values])
        hits = np.array([[_hits(v, edges, above) for v in values] for above in (False, True)])
        both = np.stack([hits, hits[:, ::-1]], axis=1)  # above, swapped, side, edge
        found = scores(both[:, :, 0], both[:, :, 1], len(ranked[0]), measure)
        for (above, swapped), best in np.ndenumerate(found.argmax(axis=2)):
            event = _Event(name, projection, float(edges[best]), bool(above), bool(swapped))
            yield float(found[above, swapped, best]), event


def _hits(ordered: Projected, edges: Real[np.ndarray, " k"], above: bool) -> Int64[np.ndarray, " k"]:
    if above:
        return len(ordered) - np.searchsorted(ordered, edges, side="left").astype(np.int64)
    return np.searchsorted(ordered, edges, side="right").astype(np.int64)


def scores(
    first: Int64[np.ndarray, "*k"], second: Int64[np.ndarray, "*k"], size: int, measure: Measure
) -> Float64[np.ndarray, "*k"]:
    """Return approximately the budget that would be certain, by Poisson score limits in closed form."""
    half = DEVIATIONS**2 / 2
    low = first + half - DEVIATIONS * np.sqrt(first + half / 2)
    high = second + half + DEVIATIONS * np.sqrt(second + half / 2)
    # Events that show nothing are ranked as well, so that some event is always chosen.
    scores: Float64[np.ndarray, "*k"] = measure(np.maximum(low, 0) / size, np.minimum(high / size, 1))
    return scores + 1e-9 * (low - high) / size


def _projections(train: tuple[Draws, Draws]) -> Iterator[tuple[str, Projection]]:
    """Yield projections by name; what they learn comes from these draws alone."""
    columns = _distinct_columns(train)
    for column in columns:
        yield f"value {column}", partial(_value, column=column)
    for first, second in combinations(columns, 2):
        yield f"value {first} - value {second}", partial(_difference, first=first, second=second)
    centres = [np.median(draws[:, columns], axis=0) for draws in train]
    spreads = np.maximum(np.abs(train[0][:, columns] - centres[0]).mean(axis=0), 1.0)
    yield "log-likelihood ratio", lambda draws: _ratio(draws[:, columns], centres[0], centres[1], spreads)
    tables = [_learn_likelihood(train[0][:, column], train[1][:, column]) for column in columns]
    yield "learned ratio", partial(_look_up, columns=columns, tables=tables)


def _value(draws: Draws, column: int) -> Projected:
    return draws[:, column].astype(np.int16)


def _difference(draws: Draws, first: int, second: int) -> Projected:
    gap: Projected = draws[:, first].astype(np.int16) - draws[:, second]
    return gap


def _learn_likelihood(
    first: Real[np.ndarray, " n"], second: Real[np.ndarray, " n"]
) -> Float64[np.ndarray, " 256"]:
    counts = [np.bincount(values, minlength=256) + 1.0 for values in (first, second)]
    table: Float64[np.ndarray, " 256"] = np.log(counts[1]) - np.log(counts[0])
    return table


def _look_up(draws: Draws, columns: list[int], tables: list[Float64[np.ndarray, " 256"]]) -> Projected:
    ratio: Projected = np.zeros(len(draws))
    for column, table in zip(columns, tables, strict=True):
        ratio += table[draws[:, column]]
    return ratio


def _ratio(
    draws: Draws,
    first: Float64[np.ndarray, " values"],
    second: Float64[np.ndarray, " values"],
    spreads: Float64[np.ndarray, " values"],
) -> Projected:
    ratio: Projected = ((np.abs(draws - second) - np.abs(draws - first)) / spreads).sum(axis=1)
    return ratio


def _distinct_columns(train: tuple[Draws, Draws]) -> list[int]:
    """Return columns that are not equal: the six whose means differ most and the two that differ least."""
    both = np.ascontiguousarray(np.concatenate(train).T)
    seen: dict[bytes, int] = {}
    for column, values in enumerate(both):
        seen.setdefault(values.tobytes(), column)
    shift = np.abs(train[0].mean(axis=0) - train[1].mean(axis=0))
    ranked = sorted(seen.values(), key=lambda column: -float(shift[column]))
    return ranked[:MOST_SHIFTED] + ranked[MOST_SHIFTED:][-LEAST_SHIFTED:]

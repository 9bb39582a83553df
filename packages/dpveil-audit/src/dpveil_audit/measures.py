"""The budget implied by an event with probability p under one neighbour and q under the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float64
from scipy import stats

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
    if not _shown(samples, budget, event(high), measure, alpha, missed):
        return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        shown = _shown(samples, budget, event(middle), measure, alpha, missed)
        low, high = (low, middle) if shown else (middle, high)
    return high


def _shown(
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

"""Laws of released coordinates on the 2^16 steps of a box, from their formulas, as logarithms."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil_audit.divergence import ORDERS, log_sum
from dpveil_audit.latent.case import SIDE, CodeDistribution, LatentCase, Logs

REACH: Final = 12
"""Standard deviations at which Gaussian tails are cut, below 10^-32."""


@lru_cache(maxsize=256)
def clipped_laplace(centre: int, scale: Fraction) -> Logs:
    """Return discrete Laplace noise around a point, clipped to the box."""
    rate = 1 / float(scale)
    steps = np.arange(SIDE + 1)
    logs = -rate * np.abs(steps - centre) + math.log(math.tanh(rate / 2))
    logs[0], logs[-1] = _below(-centre, rate), _below(centre - SIDE, rate)
    return logs


def _below(most: int, rate: float) -> float:
    """Return ln P(Z ≤ most) of discrete Laplace noise of this rate."""
    if most < 0:
        return rate * most - math.log1p(math.exp(-rate))
    return math.log1p(-math.exp(-rate * (most + 1)) / (1 + math.exp(-rate)))


@lru_cache(maxsize=256)
def truncated_laplace(centre: int, scale: Fraction) -> Logs:
    """Return probabilities ∝ exp(-|y - centre|/scale) within the box."""
    logs = -np.abs(np.arange(SIDE + 1) - centre) / float(scale)
    found: Logs = logs - log_sum(logs)
    return found


@lru_cache(maxsize=256)
def clipped_gaussian(centre: int, variance: Fraction) -> Logs:
    """Return discrete Gaussian noise around a point, clipped to the box."""
    twice = 2 * float(variance)
    reach = math.ceil(REACH * math.sqrt(float(variance))) + SIDE + abs(centre)
    steps = np.arange(-reach, reach + 1, dtype=np.float64)
    logs = -((steps - centre) ** 2) / twice
    logs -= log_sum(logs)
    inside = logs[reach : reach + SIDE + 1].copy()
    inside[0], inside[-1] = log_sum(logs[: reach + 1]), log_sum(logs[reach + SIDE :])
    return inside


@lru_cache(maxsize=256)
def always(point: int) -> Logs:
    """Return the law of a coordinate that is released without noise."""
    logs = np.full(SIDE + 1, -np.inf)
    logs[min(max(point, 0), SIDE)] = 0.0
    return logs


FAMILIES: Final = {"laplace": clipped_laplace, "truncated": truncated_laplace, "gaussian": clipped_gaussian}


def loss(case: LatentCase, first: CodeDistribution, second: CodeDistribution) -> float:
    """Return the privacy loss between two codes in the promise's unit: ε, or ρ over twelve orders.

    As a release has independent parts, the largest log-ratio is the sum of theirs, and so are divergences.
    """
    if first.box != second.box:
        return math.inf
    pairs = list(zip(first.parts, second.parts, strict=True))
    if case.guarantee.rho is None:
        return sum(_ratio(a, b) for a, b in pairs)
    divergences = np.sum([_renyi(a, b) for a, b in pairs], axis=0)
    return float(np.max(divergences / np.array(ORDERS)))


def _ratio(first: Logs, second: Logs) -> float:
    """Return the largest log-ratio of two laws; infinite where only the first allows an outcome."""
    if first is second:
        return 0.0
    seen = first > -np.inf
    return float(np.max(first[seen] - second[seen]))


def _renyi(first: Logs, second: Logs) -> Float64[np.ndarray, " orders"]:
    """Return D_α of the first law from the second at every order."""
    if first is second:
        return np.zeros(len(ORDERS))
    seen = first > -np.inf
    if np.any(second[seen] == -np.inf):
        return np.full(len(ORDERS), np.inf)
    own, ratio = first[seen], first[seen] - second[seen]
    return np.array([log_sum(own + (order - 1) * ratio) / (order - 1) for order in ORDERS])

"""The best tests and guesses against ρ-zCDP: tight bounds over all ρ-zCDP releases.

A test maps the release to one bit, which is still ρ-zCDP by post-processing: with false-alarm rate a and
detection rate d, the Rényi divergences of the bit's two laws are at most αρ at every order α ≥ 1, in both
directions (Bun & Steinke 2016, lemma 1.8). Conversely, releasing that bit alone is ρ-zCDP. So the largest d
that the divergences allow is the tightest bound that follows from ρ. Checking fewer orders, with some slack,
can only allow more, so the result is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float

from dpveil.core.numbers import float_above

GAPS: Final = np.geomspace(1e-3, 1e6, 400)
"""Orders α - 1 at which divergences are checked; order 1, the Kullback-Leibler divergence, is checked too."""
ROOM: Final = 1e-9
"""Relative slack on αρ."""
ROUNDING: Final = 1e-12
"""Absolute slack on αρ; both are far above the rounding of floats."""
STEPS: Final = 60
"""Bisection steps."""


@lru_cache(maxsize=1024)
def zcdp_detection(rho: Fraction, false_alarm: float) -> float:
    """Return the highest detection rate of any test with this false-alarm rate, rounded up.

    >>> round(zcdp_detection(Fraction(1, 2), 0.05), 3)
    0.336
    """
    if false_alarm in (0.0, 1.0):  # under ρ-zCDP neighbours have the same support
        return false_alarm
    return _largest(lambda detection: _possible(float_above(rho), false_alarm, detection), false_alarm)


@lru_cache(maxsize=1024)
def zcdp_success(rho: Fraction, candidates: int) -> float:
    """Return the best probability of naming the true one of k equally likely candidates, rounded up.

    `candidates` is k, all of them neighbours. Naming i is a test of i against each j. The possible (a, d)
    form a convex set, since e^((α - 1)D_α) is jointly convex, so their average over all pairs, ((1 - s)/(k -
    1), s) for success s, is possible too.

    >>> round(zcdp_success(Fraction(1, 2), 2), 3), round(zcdp_success(Fraction(1, 2), 10), 3)
    (0.74, 0.395)
    """
    others = candidates - 1
    return _largest(lambda s: _possible(float_above(rho), (1 - s) / others, s), 1 / candidates)


def _largest(possible: Callable[[float], bool], low: float) -> float:
    """Return an upper bound, by bisection, on the values from `low` that are possible."""
    high = 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return high


def _possible(rho: float, false_alarm: float, detection: float) -> bool:
    """Return whether all divergences of the two laws of the bit are within what ρ allows."""
    if not 0 < false_alarm < 1 or not 0 < detection < 1:
        return rho == np.inf
    p = np.log([detection, 1 - detection])
    q = np.log([false_alarm, 1 - false_alarm])
    most = np.append(1, 1 + GAPS) * rho * (1 + ROOM) + ROUNDING
    return bool((_divergences(p, q) <= most).all() and (_divergences(q, p) <= most).all())


def _divergences(p: Float[np.ndarray, 2], q: Float[np.ndarray, 2]) -> Float[np.ndarray, " orders"]:
    """Return D_1 and D_α at every order, for two laws of a bit given as logarithms."""
    first = float(np.exp(p) @ (p - q))
    return np.append(first, np.logaddexp(*(p[:, None] + GAPS * (p - q)[:, None])) / GAPS)

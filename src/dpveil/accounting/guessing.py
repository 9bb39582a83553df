"""The best tests and guesses against ρ-zCDP: tight bounds over all ρ-zCDP releases.

A test turns the release into one bit, which keeps ρ-zCDP: with false alarms a and detection d, the Rényi
divergences of the bits are at most αρ at every order α ≥ 1, in both directions (Bun & Steinke 2016, lemma
1.8). Conversely a release of that bit alone is ρ-zCDP. So the largest d that the divergences allow is the
best bound that follows from ρ. Fewer orders and more room allow more, so both are on the safe side.
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
"""The orders less one; order one itself, the Kullback-Leibler divergence, is beside them."""
ROOM: Final = 1e-9
ROUNDING: Final = 1e-12
"""Relative and absolute amounts by which divergences may exceed αρ: far above float rounding."""
STEPS: Final = 60


@lru_cache(maxsize=1024)
def zcdp_detection(rho: Fraction, false_alarm: float) -> float:
    """Return the highest chance of detection of any test with this rate of false alarms, rounded up.

    >>> round(zcdp_detection(Fraction(1, 2), 0.05), 3)
    0.336
    """
    if false_alarm in (0.0, 1.0):  # a ρ-zCDP release shows nothing that its neighbour could not show
        return false_alarm
    return _largest(lambda detection: _possible(float_above(rho), false_alarm, detection), false_alarm)


@lru_cache(maxsize=1024)
def zcdp_success(rho: Fraction, candidates: int) -> float:
    """Return the best chance of naming the true one among k equally likely candidates, rounded up.

    Naming i is a test of i against each j. The possible (a, d) are a convex set, since e^((α - 1)D_α) is
    jointly convex, so their average over all pairs, ((1 - s)/(k - 1), s) for success s, is possible too.

    >>> round(zcdp_success(Fraction(1, 2), 2), 3), round(zcdp_success(Fraction(1, 2), 10), 3)
    (0.74, 0.395)
    """
    others = candidates - 1
    return _largest(lambda s: _possible(float_above(rho), (1 - s) / others, s), 1 / candidates)


def _largest(possible: Callable[[float], bool], low: float) -> float:
    """Return a value that is not possible, or 1, just above all that are: they begin at `low`."""
    high = 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return high


def _possible(rho: float, false_alarm: float, detection: float) -> bool:
    """Return whether no divergence of the two bits is above what ρ allows."""
    if not 0 < false_alarm < 1 or not 0 < detection < 1:
        return rho == np.inf
    p = np.log([detection, 1 - detection])
    q = np.log([false_alarm, 1 - false_alarm])
    most = np.append(1, 1 + GAPS) * rho * (1 + ROOM) + ROUNDING
    return bool((_divergences(p, q) <= most).all() and (_divergences(q, p) <= most).all())


def _divergences(p: Float[np.ndarray, 2], q: Float[np.ndarray, 2]) -> Float[np.ndarray, " orders"]:
    """Return D_1 and D_α, for every order, of two laws of a bit that are given as logarithms."""
    first = float(np.exp(p) @ (p - q))
    return np.append(first, np.logaddexp(*(p[:, None] + GAPS * (p - q)[:, None])) / GAPS)

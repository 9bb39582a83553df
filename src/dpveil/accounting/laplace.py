"""Many discrete Laplace draws as one (ε, δ): privacy loss distributions at the worst neighbour.

A neighbour moves the true answers by integers t_1, ..., t_k, and each answer gets discrete Laplace noise of
one scale s. Let q = e^(-1/s) and T = clip(X, 0, t) for one draw X: T is all of a draw that distinguishes the
two. Its law has atoms at 0 and t and density q^j between. For two draws moved by a ≥ b, T₁ + T₂ has the loss
of (a, b). Replacing (a, b) by (a + d, b - d) moves mass from the interior outwards on both sides, with the
same mean of e^(2T/s): a mean-preserving spread, so the hockey-stick divergence grows at every ε (docs:
accounting; tests check it by enumeration). So the worst movements within a set are those that no such shift
worsens: the neighbour's changes fill the largest answers first. A larger movement only adds loss. Its
privacy loss distribution dominates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float, Int64

from dpveil.accounting.search import TOLERANCE, least_scale
from dpveil.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho
from dpveil.core.numbers import float_above

FLOAT_SLACK: Final = 1e-12
"""Taken off δ before the accountant is asked: more than ten times the rounding of its Fourier transforms."""
SLACK_PER_DRAW: Final = 1e-15
"""Further slack per draw.

A transform is raised to the power of the number of draws, and its rounding with it: 200 000 draws have been
seen to lose 7e-12 of δ (docs: accounting; a test compares with the binomial law).
"""
MOST_LOSS: Final = 500
"""Mean pure ε per draw above which no privacy loss distribution is computed."""
SMALLEST_DELTA: Final = Fraction(1, 10**10)
"""δ below which only closed formulas are used: the accountant's transforms are too coarse."""
MOST_DRAWS: Final = 200_000
"""Draws above which no privacy loss distribution is computed."""
GRID: Final = 20
"""Points of the accountant's grid per largest loss of one draw."""
WHOLE: Final = 20_000
"""Losses up to which a composition is computed in full; truncating tails would take longer."""
TAIL: Final = 1e-15
"""Mass of the tails that are truncated beyond that; it counts as an infinite loss."""
CLOSE: Final = Fraction(7, 8)
"""First step of the search for a scale, as a factor."""

Shifts = tuple[tuple[int, int], ...]
"""Pairs (shift, number of draws): how far a neighbour moves so many of the integer answers."""


def pure_epsilon(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact pure ε of draws of one scale: Σ shift / scale."""
    return sum((moved * count for moved, count in shifts), 0) / scale


def laplace_rho(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact ρ of draws of one scale: Σ (shift / scale)² / 2 (Bun & Steinke 2016, proposition
    1.4).
    """
    return sum((Fraction(moved**2 * count) for moved, count in shifts), Fraction(0)) / scale**2 / 2


def laplace_epsilon(scale: Fraction, shifts: Shifts, delta: Fraction) -> Fraction:
    """Return an ε for which draws of one `scale`, moved by at most `shifts`, are (ε, δ)-DP.

    It is the smallest of pure composition, zCDP (ε-DP is ε²/2-zCDP) and the pessimistic privacy loss
    distribution of `dp_accounting` with connected dots. The last is left out above 200 000 draws and for δ
    below 1e-10 or near the accountant's own rounding.
    """
    rho = laplace_rho(scale, shifts)
    least = pure_epsilon(scale, shifts)
    draws = sum(count for _, count in shifts)
    slack = float_slack(draws)
    if (
        draws <= MOST_DRAWS
        and delta >= max(SMALLEST_DELTA, Fraction(2 * slack))
        and least <= MOST_LOSS * draws
    ):
        least = min(least, _pld_epsilon(scale, shifts, float(delta) - slack))
    return min(least, zcdp_epsilon(rho, delta)) if zcdp_delta(rho, least) <= delta else least


def float_slack(draws: int) -> float:
    """Return what to take off δ before 64-bit Fourier transforms of this many draws are asked about it."""
    return FLOAT_SLACK + SLACK_PER_DRAW * draws


@lru_cache(maxsize=256)
def laplace_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return the smallest scale, to one part in 10^5, for which `laplace_epsilon` is at most ε."""
    spent = lru_cache(maxsize=None)(lambda scale: laplace_epsilon(scale, shifts, delta))
    good = pure_epsilon(Fraction(1), shifts) / epsilon
    by_zcdp = _zcdp_scale(epsilon, delta, shifts)
    if by_zcdp < good and spent(by_zcdp) <= epsilon:
        good = by_zcdp
    return least_scale(spent, epsilon, good, close=CLOSE)


def _zcdp_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return a scale slightly above the one at which zCDP alone gives (ε, δ): a starting point of the
    search.
    """
    squares = sum(moved**2 * count for moved, count in shifts)
    return Fraction(math.sqrt(squares / zcdp_rho(epsilon, delta) / 2)) * (1 + TOLERANCE)


def _pld_epsilon(scale: Fraction, shifts: Shifts, delta: float) -> Fraction:
    from dp_accounting.pld import pld_pmf  # slow to import

    loss = float(max((moved for moved, _ in shifts), default=0) / scale)
    grid, inverse = max(1e-4, loss / GRID), float_above(1 / scale)
    composed = None
    for moved, count in shifts:
        places = _places(moved, inverse, grid)
        deltas = _one_delta(moved, inverse, places * grid)
        one = pld_pmf.create_pmf_pessimistic_connect_dots(grid, places, deltas)
        many = one.self_compose(count, 0 if count * len(places) <= WHOLE else TAIL)
        composed = many if composed is None else pld_pmf.compose_pmfs(composed, many)
    if composed is None:
        return Fraction(0)
    found = composed.get_epsilon_for_delta(delta)
    return Fraction(found) if math.isfinite(found) else pure_epsilon(scale, shifts)


def _places(moved: int, inverse: float, grid: float) -> Int64[np.ndarray, " n"]:
    """Return the multiples of `grid` next below and above the losses (t - 2j)/s of one draw, j = 0..t."""
    top = math.ceil(moved * inverse / grid)
    if 2 * inverse <= grid:  # every grid interval contains a loss
        return np.arange(-top, top + 1)
    losses = np.arange(-moved, moved + 1, 2) * (inverse / grid)
    return np.unique(np.concatenate([np.floor(losses), np.ceil(losses)])).astype(np.int64)


def _one_delta(moved: int, inverse: float, epsilon: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return δ(ε) of one draw moved by t, at scale 1/`inverse`, up to a few roundings of each value.

    With u = t - εs, the outputs T < J = ⌈u/2⌉ are those whose loss is above ε; summing the table of T, δ =
    ((1 - q^J) + q·(1 - q^(u - J))) / (1 + q), without cancellation.
    """
    above = moved - epsilon / inverse
    count = np.ceil(above / 2)
    q = math.exp(-inverse)
    inner = -(np.expm1(-count * inverse) + q * np.expm1((count - above) * inverse)) / (1 + q)
    delta = np.where(count > moved, -np.expm1(np.minimum(epsilon, 0)), np.where(above > 0, inner, 0))
    return np.minimum.accumulate(np.clip(delta, 0, 1))


def merged(shifts: Mapping[int, int]) -> Shifts:
    """Return shifts with their counts as pairs, the largest first, without those of size or count zero."""
    return tuple((moved, count) for moved, count in sorted(shifts.items(), reverse=True) if moved and count)

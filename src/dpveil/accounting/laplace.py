"""Many discrete Laplace draws as one (ε, δ): privacy-loss distributions at the worst neighbour.

A neighbour moves the true answers by integers t_1, ..., t_k, and each answer gets discrete Laplace noise
of one scale. Which movement is worst? Write s for the scale, q = e^(-1/s), and let T = clip(X, 0, t) for one
draw X: all of a draw that tells the two apart. Its law has atoms at 0 and t and density q^j between. For two
draws moved by a ≥ b, T₁ + T₂ has the loss of (a, b), and replacing (a, b) by (a + d, b - d) takes mass out of
the interior and puts it, with the same mean of e^(2T/s), further out on both sides: a mean-preserving
spread, so the hockey-stick divergence grows at every ε (docs: accounting; tests check it by enumeration). So
of all movements within a set the worst are those that no such shift worsens: what one neighbour may change
fills the largest answers first. A larger movement is worse than a smaller one. Its PLD dominates.
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
SLACK_PER_DRAW: Final = 1e-15
"""Taken off δ before it is asked for: over ten times the rounding of the accountant's Fourier transforms.

A transform is raised to the power of the number of draws, and its rounding with it: 200 000 draws have been
seen to lose 7e-12 of δ (docs: accounting; a test holds it to the binomial law).
"""
MOST_LOSS: Final = 500
SMALLEST_DELTA: Final = Fraction(1, 10**10)
MOST_DRAWS: Final = 200_000
GRID: Final = 20
WHOLE: Final = 20_000
"""Numbers of losses composed in full: truncating tails would take longer."""
TAIL: Final = 1e-15
"""Mass of the truncated tails for more losses: it counts as an infinite loss."""
CLOSE: Final = Fraction(7, 8)

Shifts = tuple[tuple[int, int], ...]
"""Pairs (movement, number of draws moved by it), movements in units of the integer answers."""


def pure_epsilon(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact pure ε of draws of one scale: Σ movement / scale."""
    return sum((moved * count for moved, count in shifts), 0) / scale


def laplace_rho(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact Σ (movement / scale)² / 2 (Bun & Steinke 2016, proposition 1.4)."""
    return sum((Fraction(moved**2 * count) for moved, count in shifts), Fraction(0)) / scale**2 / 2


def laplace_epsilon(scale: Fraction, shifts: Shifts, delta: Fraction) -> Fraction:
    """Return an ε for which draws of one `scale`, moved by at most `shifts`, are (ε, δ)-DP.

    The smallest of pure composition, zCDP (ε-DP is ε²/2-zCDP) and, up to 200 000 draws and as long as δ is
    1e-10 and well above the accountant's own rounding, the pessimistic PLD of `dp_accounting` with connected
    dots.
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
    """Return what to take off a δ before 64-bit Fourier transforms of this many draws are asked about it."""
    return FLOAT_SLACK + SLACK_PER_DRAW * draws


@lru_cache(maxsize=256)
def laplace_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return a scale for which `laplace_epsilon` itself is at most ε: the smallest to one part in 10^5.

    The search begins below what zCDP asks for.
    """
    spent = lru_cache(maxsize=None)(lambda scale: laplace_epsilon(scale, shifts, delta))
    good = pure_epsilon(Fraction(1), shifts) / epsilon
    by_zcdp = _zcdp_scale(epsilon, delta, shifts)
    if by_zcdp < good and spent(by_zcdp) <= epsilon:
        good = by_zcdp
    return least_scale(spent, epsilon, good, close=CLOSE)


def _zcdp_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return about the scale at which zCDP alone gives (ε, δ): a little above it, and not proven."""
    squares = sum(moved**2 * count for moved, count in shifts)
    return Fraction(math.sqrt(squares / zcdp_rho(epsilon, delta) / 2)) * (1 + TOLERANCE)


def _pld_epsilon(scale: Fraction, shifts: Shifts, delta: float) -> Fraction:
    from dp_accounting.pld import pld_pmf  # takes a while to import

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
    """Return the multiples of `grid` just below and above the losses (t - 2j)/s of one draw, j = 0..t."""
    top = math.ceil(moved * inverse / grid)
    if 2 * inverse <= grid:  # there is a loss between any two
        return np.arange(-top, top + 1)
    losses = np.arange(-moved, moved + 1, 2) * (inverse / grid)
    return np.unique(np.concatenate([np.floor(losses), np.ceil(losses)])).astype(np.int64)


def _one_delta(moved: int, inverse: float, epsilon: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return δ(ε) of one draw moved by t, at scale 1/`inverse`: exact but for a few roundings of each value.

    With u = t - εs, the outputs T < J = ⌈u/2⌉ are those whose loss is above ε; summing the table of T,
    δ = ((1 - q^J) + q·(1 - q^(u - J))) / (1 + q), without the cancellation of a difference of chances.
    """
    above = moved - epsilon / inverse
    count = np.ceil(above / 2)
    q = math.exp(-inverse)
    inner = -(np.expm1(-count * inverse) + q * np.expm1((count - above) * inverse)) / (1 + q)
    delta = np.where(count > moved, -np.expm1(np.minimum(epsilon, 0)), np.where(above > 0, inner, 0))
    return np.minimum.accumulate(np.clip(delta, 0, 1))


def merged(shifts: Mapping[int, int]) -> Shifts:
    """Return movements sorted from the largest, without those of size or number zero."""
    return tuple((moved, count) for moved, count in sorted(shifts.items(), reverse=True) if moved and count)

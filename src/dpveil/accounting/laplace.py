"""Many discrete Laplace draws as one (ε, δ): privacy-loss distributions over the worst neighbour.

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

from dpveil.accounting.zcdp import zcdp_epsilon
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
STEPS: Final = 40
TOLERANCE: Final = Fraction(1, 10**5)

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
    candidates = [pure_epsilon(scale, shifts), zcdp_epsilon(laplace_rho(scale, shifts), delta)]
    draws = sum(count for _, count in shifts)
    slack = float_slack(draws)
    if (
        draws <= MOST_DRAWS
        and delta >= max(float(SMALLEST_DELTA), 2 * slack)
        and candidates[0] <= MOST_LOSS * draws
    ):
        candidates.append(_pld_epsilon(scale, shifts, float(delta) - slack))
    return min(candidates)


def float_slack(draws: int) -> float:
    """Return what to take off a δ before 64-bit Fourier transforms of this many draws are asked about it."""
    return FLOAT_SLACK + SLACK_PER_DRAW * draws


def laplace_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return a scale for which `laplace_epsilon` itself is at most ε: the smallest to one part in 10^5."""
    return _scale(epsilon, delta, shifts)


@lru_cache(maxsize=256)
def _scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return a scale that was tested, between one that is too small and is at least 1 - 10^-5 of it.

    The accountant takes a tenth of a second, so the next scale to test is guessed from the last two: log ε
    is nearly linear in log scale. A guess only saves time; what is returned was accepted.
    """
    spent = lru_cache(maxsize=None)(lambda scale: laplace_epsilon(scale, shifts, delta))
    good = pure_epsilon(Fraction(1), shifts) / epsilon
    bad = good / 2
    while spent(bad) <= epsilon:
        good, bad = bad, bad / 2
    for step in range(STEPS):
        if good <= bad * (1 + TOLERANCE):
            break
        over, under = (math.log(spent(scale) / epsilon or FLOAT_SLACK) for scale in (bad, good))
        part = over / (over - under) if step % 4 < 3 and over > under else 0.5
        aim = float(bad) * float(good / bad) ** part
        near = Fraction(aim * (1 + float(TOLERANCE) / 3 * (-1) ** step))  # from both sides in turn
        middle = near if bad < near < good else (bad + good) / 2
        good, bad = (middle, bad) if spent(middle) <= epsilon else (good, middle)
    return good


def _pld_epsilon(scale: Fraction, shifts: Shifts, delta: float) -> Fraction:
    from dp_accounting.pld import privacy_loss_distribution  # takes a second to import

    loss = float(max(moved for moved, _ in shifts) / scale)
    composed = None
    for moved, count in shifts:
        one = privacy_loss_distribution.from_discrete_laplace_mechanism(
            parameter=float_above(1 / scale),
            sensitivity=moved,
            value_discretization_interval=max(1e-4, loss / GRID),
            use_connect_dots=True,
        )
        many = one.self_compose(count)
        composed = many if composed is None else composed.compose(many)
    if composed is None:
        return Fraction(0)
    return Fraction(composed.get_epsilon_for_delta(delta))


def merged(shifts: Mapping[int, int]) -> Shifts:
    """Return movements sorted from the largest, without those of size or number zero."""
    return tuple((moved, count) for moved, count in sorted(shifts.items(), reverse=True) if moved and count)

"""Many draws of bounded range as one (ε, δ): the exact optimum for non-adaptive draws.

A draw has range η if, for any two inputs, ln P(y)/Q(y) lies in some interval [t - η, t]. Weights e^(ε′q) with
q in [0, 1] have range η = 2ε′: ε′(q - q′) spans at most 2ε′, and the normalisers add a constant. Since P and
Q are laws, 0 ≤ t ≤ η.

*One draw.* Under Q, P/Q has mean 1 and lies in [e^(t-η), e^t]. Of all such laws the one on the two ends is
largest in convex order, and a hockey-stick divergence is the mean of a convex function of P/Q, so the worst
draw has two outcomes: with r = (1 - e^-t)/(1 - e^-η), Q gives the second one r and P gives it r·e^(t-η), and
P gives the first e^t·(1 - r). Independent draws multiply, and each may be replaced in turn.

*k draws* whose laws do not depend on each other's outcomes have parameters t_1, ..., t_k. If j of them show
the second outcome the ratio is e^(Σt - jη), so δ(ε) is the largest of G_i = P(J ≤ i) - e^ε·Q(J ≤ i) over i <
k. In one t_m, dG_i/dt_m is a non-negative factor times e^(ε - t_m) - e^(Σt - (i+1)η): positive while t_m < τ
and negative beyond, with τ = ε + (i+1)η - Σt the same for all m. At a maximum over the box [0, η]^k a
coordinate inside it is τ, one at 0 needs τ ≤ 0 and one at η needs τ ≥ η: so all are equal, to (ε +
(i+1)η)/(k+1) cut to [0, η] (where the factor vanishes, by continuity), and J is binomial under both (Dong,
Durfee & Rogers 2020, theorem 2, for draws that are not adaptive; adaptive ones cost more). tests/accounting
holds it to enumeration and to unequal parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.accounting.account import Account
from dpveil.accounting.laplace import SMALLEST_DELTA
from dpveil.accounting.zcdp import smallest, zcdp_epsilon, zcdp_rho
from dpveil.core.numbers import float_above, root_above

MOST_DRAWS: Final = 1 << 15
"""Draws above which only zCDP is used: it is within a few per cent there, and the optimum takes seconds."""
CDF_ERROR: Final = 1e-9
"""A bound on the relative error of SciPy's incomplete beta function, which is near 1e-12 for these sizes."""
SMALLEST_CHANCE: Final = 1e-290
"""Probabilities under Q below this count as 0, which only raises δ: floats lose digits there."""
FARTHEST: Final = 700.0
"""Largest exponent passed to exp, which overflows above 709."""
TOLERANCE: Final = Fraction(1, 10**6)
"""Relative precision of a calibrated range."""
Chances = Float64[np.ndarray, " draws"]
Counts = Int64[np.ndarray, " draws"]


@dataclass(frozen=True)
class BoundedRangeAccount(Account):
    """`draws` non-adaptive draws of range `spread` each, such as those of an exponential mechanism.

    >>> account = BoundedRangeAccount(Fraction(1, 10), 5292)
    >>> account.pure, account.rho, round(float(account.epsilon(Fraction(1, 10**6))), 1)
    (Fraction(2646, 5), Fraction(1323, 200), 23.3)
    """

    spread: Fraction
    draws: int

    @property
    def pure(self) -> Fraction:
        """η a draw."""
        return self.spread * self.draws

    @property
    def rho(self) -> Fraction:
        """η²/8 a draw (Cesar & Rogers 2021, lemma 3.4)."""
        return self.spread**2 * self.draws / 8

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the smallest ε of pure composition, zCDP and, for at most `MOST_DRAWS` draws, the exact
        optimum.
        """
        known = min(self.pure, zcdp_epsilon(self.rho, delta))
        if not countable(self.draws, delta) or self.delta(known) > delta:
            return known
        return smallest(lambda epsilon: self.delta(epsilon) <= delta, known, steps=32)

    def delta(self, epsilon: Fraction) -> float:
        """Return δ(ε) of the worst draws of this range, rounded up; for δ of at least 1e-10."""
        eta, draws, at = float_above(self.spread), self.draws, float(epsilon)
        later = np.arange(draws)
        t = np.clip((at + (later + 1) * eta) / (draws + 1), 0.0, eta)
        whole = math.expm1(-eta)
        seen = _at_most(later, draws, np.exp(t - eta) * np.expm1(-t) / whole, np.expm1(t - eta) / whole)
        under_q = _at_most(later, draws, np.expm1(-t) / whole, np.exp(-t) * np.expm1(t - eta) / whole)
        known = np.log(np.maximum(under_q, SMALLEST_CHANCE))
        other = np.where(under_q > SMALLEST_CHANCE, np.exp(np.minimum(at + known, FARTHEST)), 0.0)
        return float(np.max(seen * (1 + CDF_ERROR) - other * (1 - CDF_ERROR), initial=0.0))


def _at_most(count: Counts, draws: int, chance: Chances, rest: Chances) -> Chances:
    """Return P(J ≤ count) for a binomial J of `draws` trials.

    `rest` is 1 - chance; both are given because for a large range one of them is too close to 1 for a float.
    """
    from scipy.special import betainc, betaincc  # slow to import, and most releases do without

    chance, rest = np.clip(chance, 0.0, 1.0), np.clip(rest, 0.0, 1.0)
    low = betaincc(count + 1, draws - count, np.minimum(chance, 0.5))
    high = betainc(draws - count, count + 1, np.minimum(rest, 0.5))
    found: Chances = np.where(chance <= rest, low, high)
    return found


def countable(draws: int, delta: Fraction) -> bool:
    """Return whether the exact optimum is computed for this many draws at this δ."""
    return draws <= MOST_DRAWS and delta >= SMALLEST_DELTA


@lru_cache(maxsize=256)
def bounded_range_spread(epsilon: Fraction, delta: Fraction, draws: int) -> Fraction:
    """Return the largest range η, to one part in 10^6, at which `draws` draws are (ε, δ)-DP by their account.

    >>> spread = bounded_range_spread(Fraction(20), Fraction(1, 10**6), 5292)
    >>> BoundedRangeAccount(spread, 5292).epsilon(Fraction(1, 10**6)) <= 20
    True
    """
    below = epsilon * (1 - TOLERANCE)  # so that the account of the result is not above ε either
    plain = max(epsilon / draws, 1 / root_above(draws / (8 * zcdp_rho(below, delta))))
    if not countable(draws, delta):
        return plain

    def accepted(inverse: Fraction) -> bool:
        return BoundedRangeAccount(1 / inverse, draws).delta(below) <= delta

    best = smallest(accepted, 1 / plain, steps=24)
    return max(plain, 1 / best) if accepted(best) else plain

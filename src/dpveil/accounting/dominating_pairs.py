"""Many draws from finite distributions as one ε, ρ or (ε, δ), by dominating pairs of integer distributions.

A pair (P, Q) dominates a draw if its hockey-stick divergence is at every ε at least that of any two
neighbours. All other numbers follow from that curve, also under composition (Dong, Roth & Su 2022). The
integers of P are the law that is drawn (`noise.integer_matrix`), and Q is P reversed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import log1p
from typing import Final

import numpy as np

from dpveil.accounting.draw_cost import Account
from dpveil.accounting.zcdp import MOST_DRAWS, SMALLEST_DELTA, float_slack, zcdp_epsilon
from dpveil.core.array_types import Float64
from dpveil.errors import NoiseError
from dpveil.noise.integer_matrix import ROW_SUM, IntegerMatrix, log_above
from dpveil.noise.laplace import exp_below

TOLERANCE: Final = 1e-3  # relative gap between the bound and the largest value reached
FIRST: Final = 16  # orders at which the search starts
SMALL: Final = 1e-5  # size of α·v below which a sum is replaced by Taylor's remainder

Masses = Float64[np.ndarray, " n"]


def largest_rate(losses: Masses, masses: Masses, pure: float) -> float:
    """Return a number between sup D_α/α over α > 1 and 1.001 times that, for P = Q·e^losses.

    `masses` are Q, and `pure` is the largest |ln(P/Q)|. On an interval [a, b] of orders two bounds hold:
    D_b/a, as D_α grows with α; and D_a/a·e^(2·pure·(b - a)), as the slope of ln ψ'' is at most the range of
    the loss. For with ψ(α) = ln Σ P^α·Q^(1-α), D_α/α = ψ(α)/(α(α - 1)) is the divided difference of ψ at 0, 1
    and α, as ψ(0) = ψ(1) = 0: half an average of ψ'' (Hermite-Genocchi), which at each order is the variance
    of the loss under a tilted law. Intervals are halved until the better bound is near the largest value
    reached. Beyond α = pure/ρ, D_α ≤ pure gives D_α/α ≤ ρ.
    """
    if pure == 0:
        return 0.0
    top = pure / (np.log1p(masses @ np.expm1(losses) ** 2) / 2)
    orders = np.geomspace(1.0, max(top, 2.0), FIRST)
    rates = np.array([rate(order, losses, masses) for order in orders])
    while True:
        growth = np.exp(np.minimum(700.0, 2 * pure * np.diff(orders)))
        bounds = np.minimum(rates[1:] * orders[1:] / orders[:-1], rates[:-1] * growth)
        wide = np.flatnonzero(bounds > rates.max() * (1 + TOLERANCE))
        if not len(wide):
            return float(max(bounds.max(), rates.max()))
        middle = np.sqrt(orders[wide] * orders[wide + 1])
        found = [rate(order, losses, masses) for order in middle]
        orders, rates = np.insert(orders, wide + 1, middle), np.insert(rates, wide + 1, found)


def rate(order: float, losses: Masses, masses: Masses) -> float:
    """Return D_α/α, rounded up; at α = 1 the Kullback-Leibler divergence.

    Under Q, v = P/Q - 1 has mean zero, so ψ follows from Σ Q·((1 + v)^α - 1 - α·v), where nothing large
    cancels. For small α·v the term itself would cancel, and Taylor's remainder bounds it: α(α - 1)/2·v²·e^(|α
    - 2|·|ln(1 + v)|).
    """
    gains = np.expm1(losses)
    remainder = gains**2 / 2 * np.exp(np.minimum(700.0, abs(order - 2) * np.abs(losses)))
    product = order * (order - 1)
    if product == 0:
        direct = (1 + gains) * losses - gains
    else:
        direct = (np.expm1(np.minimum(700.0, order * losses)) - order * gains) / product
    convex = masses @ np.where(np.maximum(order, 1) * np.abs(gains) < SMALL, remainder, direct)
    return float(convex if product == 0 else np.log1p(product * convex) / product)


GRID: Final = 32  # grid points of the accountant per largest loss of one draw
ROUNDING: Final = Fraction(1, 10**9)
"""Relative amount added to 64-bit results: about a thousand times their rounding error."""
DIGITS: Final = 192  # bits of precision for e^-ε


@dataclass(frozen=True)
class MirrorPair:
    """A dominating pair: P in units of 2^-64, all masses positive, and Q = P reversed: (Q, P) is the same.

    >>> MirrorPair((1 << 63, 1 << 63)).pure
    Fraction(0, 1)
    """

    masses: tuple[int, ...]

    @cached_property
    def pure(self) -> Fraction:
        """The largest ln(P/Q), rounded up."""
        return log_above(max(Fraction(p, q) for p, q in self._both))

    @cached_property
    def rho(self) -> Fraction:
        """The ρ of zCDP: at least the supremum over orders α > 1 of D_α(P‖Q)/α."""
        found = Fraction(largest_rate(self.losses, self.against, float(self.pure)))
        return min(self.pure**2 / 2, found * (1 + ROUNDING))

    def loss_distribution(self, step: float) -> dict[int, float]:
        """Return the law of the loss ln(P/Q) under P on multiples of `step`, pessimistically rounded.

        A mass between two multiples is split so that the sums under P and under Q stay: a mean-preserving
        spread of e^-loss, under which the hockey-stick divergence grows at every ε (Doroshenko et al. 2022).
        """
        below = np.floor(self.losses / step).astype(int)
        part = np.expm1(below * step - self.losses) / np.expm1(-step)
        law: dict[int, float] = defaultdict(float)
        for place, mass, above in zip(below.tolist(), self.against[::-1].tolist(), part, strict=True):
            law[place] += mass * (1 - min(1.0, above))
            law[place + 1] += mass * min(1.0, above)
        return law

    @cached_property
    def losses(self) -> Float64[np.ndarray, " n"]:
        """ln(P/Q) of every outcome, with a small relative error also near zero."""
        half = [log1p(float(Fraction(p - q, q))) for p, q in self._both if p >= q]
        found = np.zeros(len(self.masses))
        found[[p >= q for p, q in self._both]] = half
        return found - found[::-1]

    @cached_property
    def against(self) -> Float64[np.ndarray, " n"]:
        """Q as probabilities."""
        return np.array([mass / ROW_SUM for mass in self.masses[::-1]])

    @property
    def _both(self) -> list[tuple[int, int]]:
        return list(zip(self.masses, self.masses[::-1], strict=True))


def randomised_response(epsilon: Fraction) -> MirrorPair:
    """Return the pair that dominates every ε-DP draw (Kairouz, Oh & Viswanath 2015).

    Rounding keeps their ratio at least e^ε. Raises `NoiseError` for ε above ln(2^64 - 1).

    >>> float(randomised_response(Fraction(1)).pure)
    1.0
    """
    shrink = Fraction(exp_below(epsilon, DIGITS), 1 << DIGITS)
    false = max(1, int(ROW_SUM * shrink / (1 + shrink)))
    pair = MirrorPair((ROW_SUM - false, false))
    if pair.pure < epsilon:
        raise NoiseError(
            f"64-bit weights cannot carry a budget of {float(epsilon):.4g}", hint="44 or less for each draw"
        )
    return pair


def extremes(matrix: IntegerMatrix) -> MirrorPair:
    """Return a pair that dominates all pairs of rows of a matrix.

    It is the first and the last row if the integers certify three things: all masses are positive; row n - x
    is row x reversed; and likelihood ratios are monotone, W[x][y]·W[x+1][y+1] ≥ W[x][y+1]·W[x+1][y], which
    for positive masses extends from adjacent to all rows and columns. Then for rows x < x' and every ratio γ
    the best test of x against x' is some set A = {y ≤ c}, and

        W[x](A) - γ·W[x'](A) ≤ W[0](A) - γ·W[n](A),

    because the mass of A falls from row to row. For x > x' reverse both rows. If the integers do not certify
    this, the pair is randomised response at the largest log-ratio of the matrix.
    """
    rows = matrix.weights
    mirrored = all(row == other[::-1] for row, other in zip(rows, reversed(rows), strict=True))
    if mirrored and min(map(min, rows)) > 0 and all(_has_monotone_ratios(a, b) for a, b in pairwise(rows)):
        return MirrorPair(rows[0])
    return randomised_response(matrix.log_ratio())


def _has_monotone_ratios(row: Sequence[int], after: Sequence[int]) -> bool:
    pairs = zip(pairwise(row), pairwise(after), strict=True)
    return all(left * next_right >= right * next_left for (left, right), (next_left, next_right) in pairs)


@dataclass(frozen=True)
class DrawsAccount(Account):
    """Independent draws, each dominated by a pair: `parts` are pairs with their numbers of draws.

    >>> bit = randomised_response(Fraction(1, 2))
    >>> float(DrawsAccount(((bit, 4),)).pure)
    2.0
    """

    parts: tuple[tuple[MirrorPair, int], ...]

    @property
    def draws(self) -> int:
        return sum(count for _, count in self.parts)

    @property
    def pure(self) -> Fraction:
        return sum((pair.pure * count for pair, count in self.parts), Fraction(0))

    @property
    def rho(self) -> Fraction:
        return sum((pair.rho * count for pair, count in self.parts), Fraction(0))

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the smallest ε of pure composition, zCDP and privacy loss distributions.

        The last are left out for many draws and for δ near the rounding of their Fourier transforms.
        """
        candidates = [self.pure, zcdp_epsilon(self.rho, delta)]
        slack = float_slack(self.draws)
        if self.pure and self.draws <= MOST_DRAWS and delta >= max(SMALLEST_DELTA, Fraction(2 * slack)):
            candidates.append(self._pld_epsilon(float(delta) - slack) * (1 + ROUNDING))
        return min(candidates)

    def _pld_epsilon(self, delta: float) -> Fraction:
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution  # takes a second

        step = float(max(pair.pure for pair, _ in self.parts)) / GRID
        total = None
        for pair, count in self.parts:
            one = PrivacyLossDistribution.create_from_rounded_probability(
                pair.loss_distribution(step), 0.0, step
            )
            many = one.self_compose(count)
            total = many if total is None else total.compose(many)
        found = 0.0 if total is None else total.get_epsilon_for_delta(delta)
        return self.pure if found == np.inf else Fraction(found)

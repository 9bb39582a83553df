"""An upper bound on the ρ of zCDP for a pair of finite distributions: sup D_α/α over all orders α > 1.

With ψ(α) = ln Σ P^α·Q^(1-α), D_α = ψ(α)/(α - 1), and D_α/α = ψ(α)/(α(α - 1)) is the divided difference of ψ
at 0, 1 and α, as ψ(0) = ψ(1) = 0. So it is an average of ψ'' (Hermite-Genocchi), which is the variance of the
loss under a tilted law.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

TOLERANCE: Final = 1e-3
"""Relative gap between the bound and the largest value reached."""
FIRST: Final = 16
"""Orders at which the search starts."""
SMALL: Final = 1e-5
"""Size of α·v below which a sum is replaced by Taylor's remainder."""

Masses = Float64[np.ndarray, " n"]


def largest_rate(losses: Masses, masses: Masses, pure: float) -> float:
    """Return a number between sup D_α/α over α > 1 and 1.001 times that, for P = Q·e^losses.

    `masses` are Q, and `pure` is the largest |ln(P/Q)|. On an interval [a, b] of orders two bounds hold:
    D_b/a, as D_α grows with α; and D_a/a·e^(2·pure·(b - a)), as the slope of ln ψ'' is at most the range of
    the loss. Intervals are halved until the better bound is near the largest value reached. Beyond α =
    pure/ρ, D_α ≤ pure gives D_α/α ≤ ρ.
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

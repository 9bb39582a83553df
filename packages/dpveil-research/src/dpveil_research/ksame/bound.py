"""An upper bound on the success of any attacker who names a face from releases of given privacy loss."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from dpveil.errors import DataError
from dpveil.mechanisms.latent import BoxLaplace, CodeSpace, CroftMetric
from dpveil.mechanisms.latent.base import STEPS

Codes = Float64[np.ndarray, "n m"]
Losses = Float64[np.ndarray, "n n"]


def scaled(codes: Codes, mechanism: CroftMetric | BoxLaplace, space: CodeSpace) -> Codes:
    """Return codes, clipped and rounded as by the mechanism, in units of each coordinate's noise.

    The log-ratio of two faces' laws is at most the sum of their absolute differences, by the proofs of both
    mechanisms; scales are rounded up, so it is no more. As clipping to the box follows the draw, the most
    likely of some faces is the one with the smallest such sum: at an end of the box, too, probability falls
    by e^(-1/scale) per step.
    """
    box = space.bounds(mechanism.clip)
    inside = (np.clip(codes, box.low, box.high) - box.low) / (box.high - box.low)
    budgets = np.full(space.length, float(mechanism.epsilon) / space.length)
    if isinstance(mechanism, BoxLaplace):
        budgets = np.array([float(share * mechanism.epsilon) for share in mechanism.shares(space)])
    rounded: Codes = np.rint(inside * STEPS) / STEPS * budgets
    return rounded


def losses(faces: Codes) -> Losses:
    """Return the largest log-ratio of the laws of every two faces, given the result of `scaled`."""
    found: Losses = cdist(faces, faces, "cityblock")
    return found


def best_success(loss: Losses) -> float:
    """Return an upper bound on the success of naming the right one of n equally likely faces.

    An attacker who names face i on the set G_i of outputs is right with p_i = P_i(G_i), and P_j(G_i) ≥
    e^(-L_ij)·p_i. The G_i are disjoint, so Σ_i e^(-L_ij)·p_i ≤ 1 for every j: the mean of p is at most the
    value of a linear program. The result is the value of its dual at the solver's multipliers, an upper bound
    whatever the solver's tolerance. It holds for any attacker whose other knowledge does not depend on the
    draw; r releases of a face have r times the losses. Raises `DataError`.
    """
    count = len(loss)
    rows = np.exp(-loss)  # row j, column i, and symmetric
    gain, most = np.full(count, -1 / count), np.ones(count)
    result = linprog(gain, A_ub=rows, b_ub=most, bounds=(0, 1), method="highs")
    if result.status != 0:
        raise DataError(f"no bound was found: {result.message}")
    multipliers = np.maximum(-result.ineqlin.marginals, 0)
    slack = np.maximum(1 / count - rows.T @ multipliers, 0)
    return float(min(1.0, multipliers.sum() + slack.sum()))

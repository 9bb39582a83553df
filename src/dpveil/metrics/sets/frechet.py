"""Fréchet distance between normal distributions with the means and covariances of two sets."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from dpveil.metrics.sets.base import Rows, check_rows


def frechet(one: Rows, two: Rows) -> float:
    """Return the squared Fréchet distance |μ₁ - μ₂|² + tr(Σ₁ + Σ₂ - 2·(Σ₁Σ₂)^½) of two sets of features.

    `one` is n × d and `two` m × d. It is a Fréchet *inception* distance only for features of that network:
    always name the features. Small sets give larger distances: give that of two real sets of these sizes
    beside. Raises `InvalidParameter`. Source: Dowson & Landau 1982; Heusel et al. 2017, equation 6.

    >>> line = np.arange(5.0)[:, None]
    >>> frechet(line, line + 3)
    9.0
    """
    first = check_rows("one", one)
    second = check_rows("two", two, first.shape[1])
    roots = [_root(rows) for rows in (first, second)]
    apart = first.mean(axis=0) - second.mean(axis=0)
    # The trace of (Σ₁Σ₂)^½ is the nuclear norm of A·Bᵀ for Σ₁ = AᵀA and Σ₂ = BᵀB: no square root of a
    # product that rounding makes indefinite.
    shared = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spread = sum((root**2).sum() for root in roots) - 2 * shared
    return float(apart @ apart + max(0.0, spread))


def _root(rows: Rows) -> Float64[np.ndarray, "k d"]:
    """Return A with AᵀA the sample covariance."""
    centred = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    if len(centred) <= centred.shape[1]:
        return np.asarray(centred)
    return np.asarray(np.linalg.qr(centred, mode="r"))

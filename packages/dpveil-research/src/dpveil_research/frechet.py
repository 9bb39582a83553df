"""How far apart two sets of pictures are, by features of theirs: the Fréchet distance."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.errors import InvalidParameter

Rows = Float64[np.ndarray, "n d"]
"""n pictures by d features; finite."""
LEAST: Final = 2  # least number of rows in a set


def check_rows(name: str, rows: Rows, width: int | None = None) -> Rows:
    """Return rows of `width` features as 64-bit floats, or raise `InvalidParameter`."""
    out = np.asarray(rows, np.float64)
    if out.ndim != 2 or len(out) < LEAST or out.shape[1] == 0:
        problem = f"are not {LEAST} or more rows of features"
        raise InvalidParameter(name, "×".join(map(str, out.shape)), problem, hint="n pictures × d features")
    if width is not None and out.shape[1] != width:
        problem = f"have {out.shape[1]} features, and the other set has {width}"
        raise InvalidParameter(name, None, problem, hint="compute both in the same way")
    if not np.isfinite(out).all():
        raise InvalidParameter(name, None, "are not all finite", hint="leave out pictures without features")
    return out


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

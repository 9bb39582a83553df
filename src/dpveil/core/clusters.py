"""k-means clustering."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

LLOYD: Final = 12
"""Rounds of k-means."""

Rows = Float64[np.ndarray, "n d"]


def clusters(
    rows: Rows, uniform: Float64[np.ndarray, " k"], rounds: int = LLOYD
) -> tuple[Rows, Int64[np.ndarray, " n"]]:
    """Return the centres of as many clusters as `uniform` has numbers (0 to 1), and the cluster of each row.

    The start is k-means++ (Arthur & Vassilvitskii 2007), drawn by `uniform`. Centres without rows stay.
    """
    centres = rows[[int(uniform[0] * len(rows))]]
    far = squares(rows, centres)[:, 0]
    for number in uniform[1:]:
        total = np.cumsum(far)
        place = int(np.searchsorted(total, number * total[-1]))
        centres = np.concatenate([centres, rows[[min(place, len(rows) - 1)]]])
        far = np.minimum(far, squares(rows, centres[-1:])[:, 0])
    for _ in range(rounds):
        chosen = squares(rows, centres).argmin(axis=1)
        for j in np.unique(chosen):
            centres[j] = rows[chosen == j].mean(axis=0)
    return centres, squares(rows, centres).argmin(axis=1)


def squares(rows: Rows, centres: Rows) -> Float64[np.ndarray, "n k"]:
    """Return the squared distance of every row from each centre."""
    norms = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(norms - 2 * rows @ centres.T, 0))

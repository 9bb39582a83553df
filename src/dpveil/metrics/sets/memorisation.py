"""Memorisation: whether made faces lie nearer to faces in training than strangers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.errors import InvalidParameter
from dpveil.metrics.sets.base import Rows, check_rows

SHARE: Final = 0.05
"""Share of strangers that lie within the threshold, by its definition."""
BATCH: Final = 256


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each row its nearest training face and their Euclidean distance; `threshold` for strangers."""

    rows: Int64[np.ndarray, " n"]
    distances: Float64[np.ndarray, " n"]
    threshold: float

    @property
    def share(self) -> float:
        """The share of rows nearer to a training face than all but 5 % of strangers: 0.05 by chance."""
        return float((self.distances < self.threshold).mean())


def memorised(made: Rows, training: Rows, strangers: Rows, *, share: float = SHARE) -> Nearest:
    """Return how near made faces are to those in training; all three are sets of the same features.

    `strangers` are real faces that are not in training, of the same kind. The threshold is the `share`
    quantile of their distances to the nearest training face. Use features in which smooth pictures are not
    near to everything, such as embeddings. Raises `InvalidParameter`.
    """
    if not 0 < share < 1:
        raise InvalidParameter("share", share, "is not between 0 and 1", hint="such as 0.05")
    known = check_rows("training", training)
    rows, distances = nearest(check_rows("made", made, known.shape[1]), known)
    _, others = nearest(check_rows("strangers", strangers, known.shape[1]), known)
    return Nearest(rows, distances, float(np.quantile(others, share)))


def nearest(rows: Rows, references: Rows) -> tuple[Int64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Return for each row the nearest reference and its Euclidean distance."""
    from scipy.spatial.distance import cdist

    parts = [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    found = [(far.argmin(axis=1), far.min(axis=1)) for far in (cdist(part, references) for part in parts)]
    return np.concatenate([one for one, _ in found]), np.concatenate([far for _, far in found])

"""An attack on DP-SVD, which releases singular vectors as they are (errata E9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.pixels import SIDE
from dpveil.attacks.resampling import patch
from dpveil.attacks.vectors import VectorAttack, Vectors


@dataclass(frozen=True)
class Subspaces(VectorAttack):
    """Compares the spaces that the leading left and right singular vectors span, whatever their values.

    A linear discriminant of the two projections, reduced to 28 rows and 23 columns, learnt from releases.
    `rank` is the number of leading vectors. Source: docs, DP-SVD and errata E9.
    """

    name: ClassVar[str] = "subspaces"
    summary: ClassVar[str] = "spaces of the leading singular vectors, which DP-SVD shows as they are"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    rank: int = 6

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the upper triangles of both projections."""
        return np.stack([self._of(patch(view)) for view in views])

    def _of(self, seen: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(seen.mean(axis=2, dtype=np.float64), full_matrices=False)
        return np.concatenate(
            [_projection(left[:, : self.rank], SIDE[1]), _projection(right[: self.rank].T, SIDE[0])]
        )


def _projection(basis: np.ndarray, side: int) -> np.ndarray:
    """Return the upper triangle of the projection on columns, after a mean over `side` parts of the rows."""
    fewer = cv2.resize(basis, (basis.shape[1], side), interpolation=cv2.INTER_AREA)
    fewer = fewer.reshape(side, -1) * np.sqrt(len(basis) / side)
    return np.asarray((fewer @ fewer.T)[np.triu_indices(side)])

"""Attacks on what single methods show: true pixels, singular vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.patches import OUTSIDE, TOP, patch
from dpveil.attacks.vectors import RASTER, VectorAttack, Vectors
from dpveil.core.array_types import Bool, Float32
from dpveil.opencv import cv2

BLANK: Final = 0.05  # least share of pixels of Snow's grey that is taken for pixels that are not shown
WIDEST: Final = 16.0
"""Standard deviation of the widest mean by which a pixel is filled from those around it, in pixels."""
BENDS: Final = 2.0  # least second difference, in levels, at which interpolation between shown pixels bends
LEAST: Final = 1e-3


@dataclass(frozen=True)
class ShownPixels(VectorAttack):
    """Fills what is not shown from the true pixels around it, and knows where true pixels are.

    Pixels of Snow's grey are those not shown. DP-Samp interpolates between shown pixels, so its pictures bend
    where one is. A linear discriminant of the filled picture and of the density of bends, learnt from
    releases. Source: docs, errata E5.
    """

    name: ClassVar[str] = "shown"
    summary: ClassVar[str] = "true pixels that Snow and DP-Samp show: filled in between, and their places"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the filled picture and the density of bends, 23 × 28 each, 0 to 1."""
        return np.stack([_levels_of(patch(view)) for view in views]).astype(np.float64)


def fill_unseen(
    levels: Float32[np.ndarray, "h w"], seen: Bool[np.ndarray, "h w"]
) -> Float32[np.ndarray, "h w"]:
    """Return levels with those not seen filled by means of seen ones, as narrow as hold enough of them."""
    out, lacking = np.where(seen, levels, np.float32(0)), ~seen
    sigma = 1.0
    while lacking.any() and sigma <= WIDEST:
        weight = cv2.GaussianBlur(seen.astype(np.float32), (0, 0), sigma)
        mean = cv2.GaussianBlur(np.where(seen, levels, np.float32(0)), (0, 0), sigma)
        enough = lacking & (weight > (LEAST if 2 * sigma > WIDEST else 1 / (4 * sigma * sigma)))
        out = np.where(enough, mean / np.maximum(weight, LEAST), out)
        lacking, sigma = lacking & ~enough, 2 * sigma
    rest = float(levels[seen].mean()) if seen.any() else float(OUTSIDE)
    return np.where(lacking, np.float32(rest), out).astype(np.float32)


def _levels_of(seen: np.ndarray) -> np.ndarray:
    blank = (seen == OUTSIDE).all(axis=2)
    grey = seen.mean(axis=2, dtype=np.float32)
    whole = fill_unseen(grey, ~blank) if blank.mean() >= BLANK else grey
    bends = (np.abs(cv2.Laplacian(grey, cv2.CV_32F)) > BENDS).astype(np.float32)
    parts = [cv2.resize(one, RASTER, interpolation=cv2.INTER_AREA).ravel() for one in (whole / TOP, bends)]
    return np.concatenate(parts)


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
        return np.stack([self._of(patch(view)) for view in views])

    def _of(self, seen: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(seen.mean(axis=2, dtype=np.float64), full_matrices=False)
        return np.concatenate(
            [_projection(left[:, : self.rank], RASTER[1]), _projection(right[: self.rank].T, RASTER[0])]
        )


def _projection(basis: np.ndarray, side: int) -> np.ndarray:
    """Return the upper triangle of the projection on columns, after a mean over `side` parts of the rows."""
    fewer = cv2.resize(basis, (basis.shape[1], side), interpolation=cv2.INTER_AREA)
    fewer = fewer.reshape(side, -1) * np.sqrt(len(basis) / side)
    return np.asarray((fewer @ fewer.T)[np.triu_indices(side)])

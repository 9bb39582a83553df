"""Attacks on methods that show true pixels: Snow, and DP-Samp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Bool, Float32

from dpveil.attacks.around import WEIGHTS, outside
from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.pixels import SIDE
from dpveil.attacks.resampling import OUTSIDE, TOP, patch
from dpveil.attacks.vectors import VectorAttack, Vectors


@dataclass(frozen=True)
class Appearance(VectorAttack):
    """Learns from releases whose regions have which thumbnail, colours and gradients.

    Where nothing was replaced, it sees the whole photo.
    """

    name: ClassVar[str] = "appearance"
    summary: ClassVar[str] = "thumbnail, colours and gradients of the regions, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the regions as numbers."""
        found = [outside(view.image, ~view.hidden & view.hidden.any()) for view in views]
        return np.stack([np.concatenate([WEIGHTS[name] * one[name] for name in WEIGHTS]) for one in found])


BLANK: Final = 0.05
"""Least share of pixels of Snow's grey that is taken for pixels that are not shown."""
WIDEST: Final = 16.0
"""Standard deviation of the widest mean by which a pixel is filled from those around it, in pixels."""
BENDS: Final = 2.0
"""Least second difference, in levels, at which interpolation between shown pixels bends."""
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
        return np.stack([_of(patch(view)) for view in views]).astype(np.float64)


def filled(levels: Float32[np.ndarray, "h w"], seen: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w"]:
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


def _of(seen: np.ndarray) -> np.ndarray:
    blank = (seen == OUTSIDE).all(axis=2)
    grey = seen.mean(axis=2, dtype=np.float32)
    whole = filled(grey, ~blank) if blank.mean() >= BLANK else grey
    bends = (np.abs(cv2.Laplacian(grey, cv2.CV_32F)) > BENDS).astype(np.float32)
    parts = [cv2.resize(one, SIDE, interpolation=cv2.INTER_AREA).ravel() for one in (whole / TOP, bends)]
    return np.concatenate(parts)

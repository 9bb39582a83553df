"""Multi-scale structural similarity."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from dpveil.metrics.base import Image, check_pair
from dpveil.metrics.ssim import WINDOW, means

WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Weights of the scales, the finest first (Wang et al. 2003, §3.2)."""


def ms_ssim(original: Image, released: Image, *, data_range: float) -> float:
    """Return the multi-scale structural similarity, from 0 to 1; 1 means equal.

    Both are h × w or h × w × c, of any real type and the same shape; `data_range` is the distance from black
    to white: 255 for 8-bit levels. Each scale has half the sides of the one before, by means of 2 × 2 pixels.
    Contrast and structure count at every scale, and levels at the last one only; a mean below 0 counts as 0.
    Windows are those of `ssim`, uniform squares of 7 × 7 pixels. Of the five scales, those count in which a
    window fits, one at least, and their weights are divided by their sum: compare pictures of one size only.
    Raises `InvalidParameter`.
    Source: Wang, Simoncelli & Bovik 2003, equation 7.

    >>> black = np.zeros((112, 112), np.uint8)
    >>> ms_ssim(black, black, data_range=255)
    1.0
    """
    check_pair(original, released, data_range)
    short = min(original.shape[:2])
    count = max(1, sum(short >> scale >= WINDOW for scale in range(len(WEIGHTS))))
    weights = np.array(WEIGHTS[:count]) / sum(WEIGHTS[:count])
    pair, found = (original, released), []
    for scale in range(count):
        whole, structure = means(*pair, data_range)
        found.append(whole if scale == count - 1 else structure)
        pair = (_halved(pair[0]), _halved(pair[1])) if scale < count - 1 else pair
    return float(np.prod(np.maximum(found, 0) ** weights))


def _halved(image: Image) -> Image:
    """Return the means of squares of 2 × 2 pixels, without an odd last row or column."""
    rows, columns = image.shape[0] // 2, image.shape[1] // 2
    even = np.asarray(image[: 2 * rows, : 2 * columns], np.float64)
    small = cv2.resize(even, (columns, rows), interpolation=cv2.INTER_AREA)
    return np.reshape(small, (rows, columns, *image.shape[2:]))

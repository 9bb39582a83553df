"""Structural similarity."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpveil.metrics.mse import Image, check_pair, strips
from dpveil.opencv import cv2

WINDOW: Final = 7
"""Side in pixels of the square window over which means, variances and the covariance are taken."""


def ssim(original: Image, released: Image, *, data_range: float) -> float:
    """Return the mean structural similarity, from -1 to 1, over all windows and channels; 1 means equal.

    Both are h × w or h × w × c, of any real type and the same shape; `data_range` is the distance from black
    to white: 255 for 8-bit levels. Windows are uniform squares of 7 × 7 pixels inside the image, variances
    are sample variances, K1 = 0.01 and K2 = 0.03. For a side shorter than 7 pixels, the window is the largest
    odd square that fits; for 1 or 2 pixels, it is a single pixel, and only levels are compared. Raises
    `InvalidParameter`.
    Source: Wang, Bovik, Sheikh & Simoncelli 2004, equation 13.

    >>> black = np.zeros((9, 9), np.uint8)
    >>> ssim(black, black, data_range=255)
    1.0
    """
    check_pair(original, released, data_range)
    return means(original, released, data_range)[0]


def means(original: Image, released: Image, data_range: float) -> tuple[float, float]:
    """Return the means over windows and channels of `ssim`, and of its factor of contrast and structure."""
    short = min(WINDOW, *original.shape[:2])
    window = short if short % 2 else short - 1
    rows = original.shape[0] - window + 1
    seen = [slice(strip.start, strip.stop + window - 1) for strip in strips(rows)]
    sums = np.sum([_window_sums(original[part], released[part], window, data_range) for part in seen], axis=0)
    count = rows * (original.shape[1] - window + 1) * math.prod(original.shape[2:])
    return float(sums[0] / count), float(sums[1] / count)


def _window_sums(a: Image, b: Image, window: int, data_range: float) -> tuple[float, float]:
    """Return the sums over all windows of equation 13, and of its second fraction.

    They are computed from sums, which are exact for 8-bit levels. In a window of n pixels, n²·(μ_a·μ_b) =
    Σa·Σb and n·(n - 1)·σ_ab = n·Σab - Σa·Σb, so both fractions are expanded by these factors.
    """
    n = window**2
    c1, c2 = (0.01 * data_range * n) ** 2, (0.03 * data_range) ** 2 * n * max(1, n - 1)
    x, y = a.astype(np.float64), b.astype(np.float64)
    in_x, in_y = _windows(x, window), _windows(y, window)
    both, squares = 2 * in_x * in_y, in_x**2 + in_y**2
    likeness = (both + c1) / (squares + c1)
    covariance = 2 * n * _windows(x * y, window) - both + c2
    variances = n * _windows(x * x + y * y, window) - squares + c2
    structure = covariance / variances
    return float(np.sum(likeness * structure)), float(np.sum(structure))


def _windows(values: Image, window: int) -> Image:
    half = window // 2
    sums = cv2.boxFilter(values, cv2.CV_64F, (window, window), normalize=False)
    return sums[half : len(sums) - half, half : sums.shape[1] - half]


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
        pair = (_halve(pair[0]), _halve(pair[1])) if scale < count - 1 else pair
    return float(np.prod(np.maximum(found, 0) ** weights))


def _halve(image: Image) -> Image:
    """Return the means of squares of 2 × 2 pixels, without an odd last row or column."""
    rows, columns = image.shape[0] // 2, image.shape[1] // 2
    even = np.asarray(image[: 2 * rows, : 2 * columns], np.float64)
    small = cv2.resize(even, (columns, rows), interpolation=cv2.INTER_AREA)
    return np.reshape(small, (rows, columns, *image.shape[2:]))

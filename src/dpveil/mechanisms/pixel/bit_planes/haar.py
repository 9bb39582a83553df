"""The integer Haar wavelet (S-transform): reversible, separately for each group of 2^L × 2^L pixels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16, Shaped, UInt8

Bands = list[tuple[str, Int16[np.ndarray, "rows columns c"]]]
"""Pairs (kind, coefficients), the finest level first, the means of whole groups last."""

COARSE, DETAIL, CROSS = "coarse", "detail", "cross"
"""Means 0..255; differences -255..255 along one axis; differences of differences, -510..510."""


def padded(image: UInt8[np.ndarray, "h w c"], side: int) -> UInt8[np.ndarray, "H W c"]:
    """Return the image with its last row and column repeated up to multiples of `side`.

    Repeated pixels stay in the group of their original, so that no pixel affects another group.
    """
    height, width = image.shape[:2]
    return np.pad(image, ((0, -height % side), (0, -width % side), (0, 0)), mode="edge")


def forward(image: UInt8[np.ndarray, "h w c"], levels: int) -> Bands:
    """Return the coefficients of an image whose sides are multiples of 2^levels.

    >>> group = np.array([[[9], [4]], [[1], [2]]], np.uint8)
    >>> [(kind, band.ravel().tolist()) for kind, band in forward(group, 1)]
    [('detail', [5]), ('detail', [2]), ('cross', [6]), ('coarse', [3])]
    """
    bands: Bands = []
    means = image.astype(np.int16)
    for _ in range(levels):
        low, high = _split(means, 1)
        means, down = _split(low, 0)
        across, cross = _split(high, 0)
        bands += [(DETAIL, down), (DETAIL, across), (CROSS, cross)]
    return [*bands, (COARSE, means)]


def inverse(bands: list[Int16[np.ndarray, "rows columns c"]]) -> UInt8[np.ndarray, "h w c"]:
    """Return the image of these coefficients, clamped to 0..255; it inverts `forward` exactly."""
    means = bands[-1]
    for level in reversed(range(0, len(bands) - 1, 3)):
        down, across, cross = bands[level : level + 3]
        means = _joined(_joined(means, down, 0), _joined(across, cross, 0), 1)
    image: UInt8[np.ndarray, "h w c"] = np.clip(means, 0, 255).astype(np.uint8)
    return image


def _split(
    values: Shaped[np.ndarray, "h w c"], axis: int
) -> tuple[Int16[np.ndarray, ...], Int16[np.ndarray, ...]]:
    """Return floor((a + b)/2) and a - b for adjacent a, b along an axis."""
    a, b = (values[start::2] if axis == 0 else values[:, start::2] for start in (0, 1))
    return (a + b) >> 1, a - b


def _joined(
    low: Int16[np.ndarray, "h w c"], high: Int16[np.ndarray, "h w c"], axis: int
) -> Int16[np.ndarray, ...]:
    """Return the values whose `_split` along an axis is `low` and `high`."""
    a = low + ((high + 1) >> 1)
    shape = list(low.shape)
    shape[axis] *= 2
    out = np.empty(shape, np.int16)
    for start, part in ((0, a), (1, a - high)):
        if axis == 0:
            out[start::2] = part
        else:
            out[:, start::2] = part
    return out

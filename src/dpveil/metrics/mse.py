"""Mean squared error, in squared grey levels."""

from __future__ import annotations

import math

import numpy as np

from dpveil.metrics.base import Image, check_pair, strips


def mse(original: Image, released: Image, *, data_range: float) -> float:
    """Return the mean squared error over all pixels and channels, in squared levels; 0 means equal.

    Both are h × w or h × w × c, of any real type and the same shape. `data_range` is the distance from black
    to white: 255 for 8-bit levels. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §4.

    >>> black = np.zeros((4, 4), np.uint8)
    >>> mse(black, black + 2, data_range=255)
    4.0
    """
    check_pair(original, released, data_range)
    wrong = (np.subtract(original[part], released[part], dtype=np.float64) for part in strips(len(original)))
    return sum(float(np.vdot(part, part)) for part in wrong) / original.size


def psnr(original: Image, released: Image, *, data_range: float) -> float:
    """Return 10·log10(data_range² / mean squared error) in dB over all pixels and channels; inf when equal.

    Both are h × w or h × w × c, of any real type and the same shape. `data_range` is the distance from black
    to white: 255 for 8-bit levels. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §4 (MSE), in
    decibels.

    >>> import numpy as np
    >>> black = np.zeros((4, 4), np.uint8)
    >>> round(psnr(black, black + 1, data_range=255), 2)
    48.13
    """
    error = mse(original, released, data_range=data_range)
    return 10 * math.log10(data_range**2 / error) if error else math.inf

"""Structural similarity."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpveil.errors import UsageError
from dpveil.metrics.base import Image, check_pair

WINDOW: Final = 7
"""Side in pixels of the square window over which means, variances and the covariance are taken."""


def ssim(original: Image, released: Image, *, data_range: float) -> float:
    """Return the mean structural similarity, from -1 to 1, over all windows and channels; 1 means equal.

    Both are h × w or h × w × c, of any real type and one shape; `data_range` is the distance from black to
    white: 255 for 8-bit levels. Windows are squares of 7 × 7 pixels of equal weight that lie inside the
    image, variances are sample variances, K1 = 0.01 and K2 = 0.03. Where a side is shorter than 7 pixels the
    window is the largest odd square that fits; where one has 1 or 2 pixels that is a single pixel, and only
    levels are compared. Raises `InvalidParameter`, and `UsageError` without scikit-image, which computes it.
    Source: Wang, Bovik, Sheikh & Simoncelli 2004, equation 13.

    >>> black = np.zeros((9, 9), np.uint8)
    >>> ssim(black, black, data_range=255)
    1.0
    """
    check_pair(original, released, data_range)
    try:
        from skimage.metrics import structural_similarity  # half a second that other commands need not pay
    except ImportError as error:
        raise UsageError("SSIM needs scikit-image", hint="pip install 'dpveil[metrics]'") from error
    short = min(WINDOW, *original.shape[:2])
    window = short if short % 2 else short - 1
    channels = (slice(None),) if original.ndim == 2 else range(original.shape[2])
    values = [
        structural_similarity(  # type: ignore[no-untyped-call]
            original[:, :, channel] if original.ndim == 3 else original,
            released[:, :, channel] if original.ndim == 3 else released,
            win_size=window,
            data_range=data_range,
            use_sample_covariance=window > 1,
        )
        for channel in channels
    ]
    return float(np.mean(values))

"""Mean squared error, in squared grey levels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from dpveil.core.array_types import Shaped
from dpveil.errors import InvalidParameter

Image = Shaped[np.ndarray, "h w *c"]
"""Real levels, h × w or h × w × c; both images of a pair have the same shape."""

STRIP: Final = 24  # rows processed at a time


class Measure(Protocol):
    """A function of an original and an output; `data_range` is the distance from black to white."""

    def __call__(self, original: Image, released: Image, *, data_range: float) -> float:
        """Return the similarity, or the error, of the two images."""


def strips(rows: int) -> Iterator[slice]:
    """Yield slices of all rows, a few at a time, so that intermediate results fit into the CPU cache."""
    return (slice(top, min(top + STRIP, rows)) for top in range(0, rows, STRIP))


def check_pair(original: Image, released: Image, data_range: float) -> None:
    """Raise `InvalidParameter` unless both are images of the same shape and `data_range` is positive."""
    if original.ndim not in (2, 3) or original.size == 0:
        shape = "×".join(map(str, original.shape))
        raise InvalidParameter("original", shape, "is not an image", hint="h × w or h × w × channels levels")
    if original.shape != released.shape:
        raise InvalidParameter(
            "released",
            str(released.shape),
            f"is not of the shape {original.shape}",
            hint="compare like with like",
        )
    if not 0 < data_range < math.inf:
        raise InvalidParameter("data_range", data_range, "is not above 0", hint="255 for 8-bit levels")


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
    to white: 255 for 8-bit levels. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §4, in decibels.

    >>> import numpy as np
    >>> black = np.zeros((4, 4), np.uint8)
    >>> round(psnr(black, black + 1, data_range=255), 2)
    48.13
    """
    error = mse(original, released, data_range=data_range)
    return 10 * math.log10(data_range**2 / error) if error else math.inf

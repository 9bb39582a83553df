"""The interface of a measure: the similarity of two images of the same shape, as one number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
from jaxtyping import Shaped

from dpveil.errors import InvalidParameter

Image = Shaped[np.ndarray, "h w *c"]
"""Real levels, h × w or h × w × c; both images of a pair have the same shape."""

STRIP: Final = 24
"""Rows processed at a time."""


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

"""The input of trainers: batches of public crops that can be read several times."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float32

from dpveil.codecs.base import Canvas, Crops
from dpveil.errors import InvalidParameter

Source = Callable[[], Iterable[Crops]]
"""Returns the training crops in batches, in the same order at every call."""


def mean_of(source: Source, length: int) -> tuple[Float32[np.ndarray, " pixels"], int, Canvas]:
    """Return the mean crop as a row of levels, the number of crops, and their canvas.

    Raises `InvalidParameter` if there are no more than `length` crops, or they differ in shape.
    """
    total, count, canvas = np.zeros(0), 0, (0, 0, 0)
    for crops in source():
        if not count:
            canvas = (crops.shape[1], crops.shape[2], crops.shape[3])
            total = np.zeros(crops[0].size)
        if crops.shape[1:] != canvas:
            raise InvalidParameter("images", None, "are not of one shape", hint="give crops of one canvas")
        total += crops.reshape(len(crops), -1).sum(axis=0, dtype=np.float64)
        count += len(crops)
    if count <= length:
        raise InvalidParameter(
            "length", length, f"is not below the number of training images, {count}", hint="give more images"
        )
    return (total / count).astype(np.float32), count, canvas

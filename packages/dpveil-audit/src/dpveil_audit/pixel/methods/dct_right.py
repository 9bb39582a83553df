"""The coefficients of `dct-gaussian` from first principles: weights and sums by loops."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.mechanisms.pixel import DCTGaussian
from dpveil.mechanisms.pixel.dct.plan import Plan
from dpveil.mechanisms.pixel.dct.transform import UNIT
from dpveil_audit.pixel.product import Image

COLOURS: Final = {1: [[1]], 3: [[1, 1, 1], [1, 0, -1], [1, -2, 1]]}


def whole_cosine(side: int, row: int, column: int) -> int:
    """Return one entry of the orthonormal cosine transform times 1024, rounded."""
    size = math.sqrt((1 if row == 0 else 2) / side)
    return round(UNIT * size * math.cos(math.pi * (2 * column + 1) * row / (2 * side)))


@lru_cache(maxsize=64)
def kernels(tall: int, wide: int, channels: int) -> Int64[np.ndarray, "coefficients tall wide channels"]:
    """Return the integer weights of every coefficient: planes, frequencies, then pixels."""
    rows, columns = (
        [[whole_cosine(side, u, i) for i in range(side)] for u in range(side)] for side in (tall, wide)
    )
    return np.array(
        [
            [[[m * r * c for m in mixed] for c in across] for r in down]
            for mixed in COLOURS[channels]
            for down in rows
            for across in columns
        ]
    )


def coefficients(
    method: DCTGaussian, image: Image, *, fill: str = "grey"
) -> tuple[Plan, Int64[np.ndarray, "blocks coefficients"]]:
    """Return the plan, and the coefficients of all blocks before clipping, by definition.

    `fill` is what lies beyond the edges: "grey", or "repeated" pixels.
    """
    height, width, channels = image.shape
    made = method.plan(height=height, width=width, channels=channels)
    tall, wide = made.transform.tall, made.transform.wide
    weights = kernels(tall, wide, channels)
    found = []
    for top, left in product(range(0, height, tall), range(0, width, wide)):
        block = np.zeros((tall, wide, channels), np.int64)
        for i, j in product(range(tall), range(wide)):
            row, column = top + i, left + j
            if fill == "repeated":
                row, column = min(row, height - 1), min(column, width - 1)
            if row < height and column < width:
                block[i, j] = 2 * image[row, column].astype(int) - 255
        found.append((weights * block).sum(axis=(1, 2, 3)))
    return made, np.array(found)

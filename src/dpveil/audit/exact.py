"""Exact laws of small pixelisations from first principles, and their largest loss over all neighbours.

Nothing here calls a sampler or a mechanism: cells are listed by loops, sums are Python integers, tails are
geometric series in 40-digit decimals, or sums of Gaussian weights from the far end. A release whose parts
(cells and channels) have independent noise has the product of its parts' laws, so the largest log-ratio over
all outputs is the sum of the parts' largest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import ceil, sqrt
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.errors import InvalidParameter

LEVELS: Final = 256
MOST_IMAGES: Final = 10_000
WORK: Final = Context(prec=40)
CHUNK: Final = 512

Pairs = Int64[np.ndarray, "pairs 2"]
Images = UInt8[np.ndarray, "images h w c"]


def cells(height: int, width: int, block: int) -> list[list[tuple[int, int]]]:
    """Return the pixels (row, column) of every block × block cell, row by row; edge cells are smaller.

    >>> [len(cell) for cell in cells(3, 3, 2)]
    [4, 2, 2, 1]
    """
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in range(height):
        for column in range(width):
            found.setdefault((row // block, column // block), []).append((row, column))
    return [found[key] for key in sorted(found)]


def totals(image: UInt8[np.ndarray, "h w c"], block: int) -> list[int]:
    """Return the sum of every part: cell by cell, and within a cell channel by channel."""
    height, width, channels = image.shape
    return [
        sum(int(image[row, column, channel]) for row, column in cell)
        for cell in cells(height, width, block)
        for channel in range(channels)
    ]


@lru_cache(maxsize=100_000)
def level_law(total: int, area: int, scale: Fraction) -> tuple[float, ...]:
    """Return the chance of each level 0..255 shown by a cell of `area` pixels with sum `total`.

    The sum gets discrete Laplace noise of `scale`, is divided by the area, clamped and rounded half up.

    >>> round(sum(level_law(300, 4, Fraction(255))), 12)
    1.0
    """
    ratio = WORK.exp(WORK.divide(Decimal(-scale.denominator), Decimal(scale.numerator)))
    norm = WORK.add(Decimal(1), ratio)

    def at_least(threshold: int) -> Decimal:
        steps = threshold - total
        if steps >= 1:
            return WORK.divide(WORK.power(ratio, steps), norm)
        return WORK.subtract(Decimal(1), WORK.divide(WORK.power(ratio, 1 - steps), norm))

    edges = [at_least(ceil(Fraction(area * (2 * level - 1), 2))) for level in range(1, LEVELS)]
    upper = [Decimal(1), *edges, Decimal(0)]
    return tuple(float(WORK.subtract(high, low)) for high, low in pairwise(upper))


@lru_cache(maxsize=64)
def _gaussian_tail(variance: Fraction) -> tuple[int, Float64[np.ndarray, " n"]]:
    """Return R and P(Z ≥ k) for k from -R to R + 1, summed from the far end so that small chances last."""
    reach = ceil(14 * sqrt(variance)) + 14
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2.0) / (2 * float(variance)))
    above = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
    return reach, above / above[0]


@lru_cache(maxsize=100_000)
def gaussian_level_law(total: int, area: int, variance: Fraction) -> tuple[float, ...]:
    """Return the chance of each level as `level_law` does, with discrete Gaussian noise.

    >>> round(sum(gaussian_level_law(300, 4, Fraction(255**2))), 12)
    1.0
    """
    reach, above = _gaussian_tail(variance)
    edges = np.array([ceil(Fraction(area * (2 * level - 1), 2)) for level in range(1, LEVELS)]) - total
    high = above[np.clip(edges, -reach, reach + 1) + reach]
    low = above[np.clip(1 - edges, -reach, reach + 1) + reach]  # P(Z < edge), by symmetry
    upward = np.concatenate([[1.0], high]) - np.concatenate([high, [0.0]])
    downward = np.concatenate([low, [1.0]]) - np.concatenate([[0.0], low])
    return tuple(np.where(np.append(edges, reach) <= 0, downward, upward).tolist())


def all_images(height: int, width: int, channels: int, levels: tuple[int, ...]) -> Images:
    """Return every image over these levels. Raises `InvalidParameter` above 10 000 of them."""
    count = len(levels) ** (height * width * channels)
    if count > MOST_IMAGES:
        raise InvalidParameter("levels", levels, f"make {count} images", hint="take a smaller image")
    flat = np.array(list(product(levels, repeat=height * width * channels)), np.uint8)
    return flat.reshape(-1, height, width, channels)


def neighbours(images: Images, m: int | None) -> Pairs:
    """Return all ordered pairs that differ in 1 to m pixels (None: any two), each with all its channels."""
    count, height, width = images.shape[:3]
    pixels = images.reshape(count, height * width, -1)
    most = height * width if m is None else m
    found = []
    for start in range(0, count, CHUNK):
        part = pixels[start : start + CHUNK]
        distance = np.zeros((len(part), count), np.int64)
        for pixel in range(height * width):
            distance += np.any(part[:, None, pixel] != pixels[None, :, pixel], axis=2)
        first, second = np.nonzero((distance >= 1) & (distance <= most))
        found.append(np.stack([first + start, second], axis=1))
    return np.concatenate(found).astype(np.int64)


@dataclass(frozen=True)
class ProductLaw:
    """Laws of releases with independent parts: part j of image i has law `masses[j][index[i, j]]`."""

    index: Int64[np.ndarray, "images parts"]
    masses: list[Float64[np.ndarray, "_ _"]]

    def losses(self, pairs: Pairs) -> Float64[np.ndarray, " pairs"]:
        """Return the largest log-ratio over all outputs for every pair; infinite where support differs."""
        total = np.zeros(len(pairs))
        for part, masses in enumerate(self.masses):
            table = _worst(masses)
            total += table[self.index[pairs[:, 0], part], self.index[pairs[:, 1], part]]
        return total

    def largest_loss(self, pairs: Pairs) -> float:
        """Return the largest log-ratio over all outputs and pairs."""
        return float(self.losses(pairs).max())

    def distance(self, other: ProductLaw) -> float:
        """Return the largest difference of a chance between two laws of the same images."""
        gaps = [
            np.abs(a[self.index[:, part]] - b[other.index[:, part]]).max()
            for part, (a, b) in enumerate(zip(self.masses, other.masses, strict=True))
        ]
        return float(max(gaps))


def _worst(masses: Float64[np.ndarray, "distinct outcomes"]) -> Float64[np.ndarray, "distinct distinct"]:
    table = np.empty((len(masses), len(masses)))
    for row, mass in enumerate(masses):
        seen = mass > 0
        with np.errstate(divide="ignore"):
            table[row] = np.max(np.log(mass[seen]) - np.log(masses[:, seen]), axis=1)
    return table


def product_law(
    parts: Int64[np.ndarray, "images parts"], masses_of: dict[int, Float64[np.ndarray, "_ _"]]
) -> ProductLaw:
    """Return the product law in which part j with value v has the row of `masses_of[j]` of v's rank."""
    index = np.stack([np.unique(column, return_inverse=True)[1] for column in parts.T], axis=1)
    return ProductLaw(index.astype(np.int64), [masses_of[part] for part in range(parts.shape[1])])


def pixelisation_law(
    images: Images,
    block: int,
    parameter: Fraction,
    law: Callable[[int, int, Fraction], tuple[float, ...]] = level_law,
) -> ProductLaw:
    """Return the law of the released levels of all `images` from first principles (methods §3).

    `parameter` is that of the noise on cell sums, and `law` gives the levels of one cell.
    """
    _, height, width, channels = images.shape
    areas = [len(cell) for cell in cells(height, width, block) for _ in range(channels)]
    parts = np.array([totals(image, block) for image in images], np.int64)
    masses = {
        part: np.array([law(int(total), area, parameter) for total in np.unique(parts[:, part])])
        for part, area in enumerate(areas)
    }
    return product_law(parts, masses)


def sensitivity(images: Images, pairs: Pairs, block: int) -> int:
    """Return the largest L1 distance between the cell sums of two neighbours, by brute force."""
    return int(np.abs(_movements(images, pairs, block)).sum(axis=1).max())


def squared_sensitivity(images: Images, pairs: Pairs, block: int) -> int:
    """Return the largest squared L2 distance between the cell sums of two neighbours, by brute force."""
    return int((_movements(images, pairs, block) ** 2).sum(axis=1).max())


def _movements(images: Images, pairs: Pairs, block: int) -> Int64[np.ndarray, "pairs parts"]:
    parts = np.array([totals(image, block) for image in images], np.int64)
    moved: Int64[np.ndarray, "pairs parts"] = parts[pairs[:, 0]] - parts[pairs[:, 1]]
    return moved

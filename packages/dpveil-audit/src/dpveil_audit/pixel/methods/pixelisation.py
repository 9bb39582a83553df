"""The law of pixelisation from first principles, to compare a method's steps with.

Nothing here calls a sampler or a mechanism: cells are enumerated by loops, sums are Python integers, tails
are geometric series in 40-digit decimals, or sums of Gaussian weights from the far end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil_audit.pixel.pairs import cells
from dpveil_audit.pixel.product import Images, Part, ProductDistribution
from dpveil_audit.pixel.version import Size

LEVELS: Final = 256
WORK: Final = Context(prec=40)
LevelDistribution = Callable[[int, int, Fraction], tuple[float, ...]]


def totals(image: UInt8[np.ndarray, "h w c"], block: int) -> list[int]:
    """Return the sum of every part: cell by cell, and within a cell channel by channel."""
    height, width, channels = image.shape
    return [
        sum(int(image[row, column, channel]) for row, column in cell)
        for cell in cells(height, width, block)
        for channel in range(channels)
    ]


@lru_cache(maxsize=100_000)
def level_distribution(total: int, area: int, scale: Fraction) -> tuple[float, ...]:
    """Return the probability of each level 0..255 for a cell of `area` pixels with sum `total`.

    The sum gets discrete Laplace noise of `scale`, is divided by the area, clamped and rounded half up.

    >>> round(sum(level_distribution(300, 4, Fraction(255))), 12)
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
    """Return R and P(Z ≥ k) for k from -R to R + 1, summed from the far end so that small values are
    accurate.
    """
    reach = ceil(14 * sqrt(variance)) + 14
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2.0) / (2 * float(variance)))
    above = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
    return reach, above / above[0]


@lru_cache(maxsize=100_000)
def gaussian_level_distribution(total: int, area: int, variance: Fraction) -> tuple[float, ...]:
    """Return the probability of each level as `level_distribution` does, with discrete Gaussian noise.

    >>> round(sum(gaussian_level_distribution(300, 4, Fraction(255**2))), 12)
    1.0
    """
    reach, above = _gaussian_tail(variance)
    edges = np.array([ceil(Fraction(area * (2 * level - 1), 2)) for level in range(1, LEVELS)]) - total
    high = above[np.clip(edges, -reach, reach + 1) + reach]
    low = above[np.clip(1 - edges, -reach, reach + 1) + reach]  # P(Z < edge), by symmetry
    upward = np.concatenate([[1.0], high]) - np.concatenate([high, [0.0]])
    downward = np.concatenate([low, [1.0]]) - np.concatenate([[0.0], low])
    return tuple(np.where(np.append(edges, reach) <= 0, downward, upward).tolist())


@dataclass(frozen=True)
class Sensitivity:
    """The largest L1 distance of the sums of two neighbours, and the largest squared L2 distance."""

    absolute: int
    squared: int


def filled(method: DPPix | DPPixGaussian, size: Size) -> Sensitivity:
    """Return the sensitivity by filling the largest cells first, from the cells themselves.

    >>> filled(DPPix(epsilon=1, block=2, neighbourhood=5), (3, 3, 1)) == Sensitivity(1275, 1105425)
    True
    """
    height, width, channels = size
    left = method.neighbourhood or height * width
    absolute = squared = 0
    for area in sorted((len(c) for c in cells(height, width, method.block)), reverse=True):
        taken = min(area, left)
        left -= taken
        absolute += 255 * taken
        squared += (255 * taken) ** 2
    return Sensitivity(absolute * channels, squared * channels)


def right_scale(method: DPPix, size: Size) -> Fraction:
    """Return the Laplace scale by formula; for (ε, δ) there is none, and the method's own is taken.

    The hockey-stick divergence tests whether that one keeps its promise. For ρ it is the root of L2²/(2ρ)
    (Bun & Steinke 2016, proposition 1.4).
    """
    epsilon, delta, rho = method.budget
    if delta is not None:
        return method.sum_scale(height=size[0], width=size[1], channels=size[2])
    found = filled(method, size)
    return Fraction(sqrt(found.squared / (2 * rho))) if rho else found.absolute / (epsilon or Fraction(1))


def right_variance(method: DPPixGaussian, size: Size) -> Fraction:
    """Return the variance L2²/(2ρ), with ρ from (ε, δ) by an independent conversion."""
    epsilon, delta, rho = method.budget
    rho = rho or Fraction(largest_rho(float(epsilon or 0), float(delta or 0)))
    return filled(method, size).squared / (2 * rho)


ORDERS: Final = 1 + np.exp(np.linspace(-12, 16, 40_000))


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose δ at this ε is small enough, over a fine grid of orders.

    Source: Canonne, Kamath & Steinke 2020, proposition 12, in plain floating point.
    """
    fixed = ORDERS * np.log1p(-1 / ORDERS) - np.log(ORDERS - 1)
    low, high = 0.0, epsilon + 2 * sqrt(epsilon) + 1
    for _ in range(60):
        rho = (low + high) / 2
        smallest = np.min((ORDERS - 1) * (ORDERS * rho - epsilon) + fixed)
        low, high = (rho, high) if smallest <= np.log(delta) else (low, rho)
    return low


def laplace_right(method: DPPix, images: Images) -> ProductDistribution:
    """Return the right distribution of `dp-pix`."""
    return pixelisation_distribution(
        images, method.block, right_scale(method, images.shape[1:]), level_distribution
    )


def gaussian_right(method: DPPixGaussian, images: Images) -> ProductDistribution:
    """Return the right distribution of `dp-pix-gaussian`."""
    return pixelisation_distribution(
        images, method.block, right_variance(method, images.shape[1:]), gaussian_level_distribution
    )


def cell_parts(height: int, width: int, channels: int, block: int) -> tuple[Part, ...]:
    """Return where the level of every cell and channel is shown."""
    return tuple(
        Part.of_level([(row, column, channel) for row, column in cell])
        for cell in cells(height, width, block)
        for channel in range(channels)
    )


def pixelisation_distribution(
    images: Images, block: int, parameter: Fraction, distribution: LevelDistribution
) -> ProductDistribution:
    """Return the law of the released levels of all `images` from first principles.

    `parameter` is that of the noise on cell sums, and `distribution` returns the law of one cell's level.
    """
    _, height, width, channels = images.shape
    sums = np.array([totals(image, block) for image in images], np.int64)
    areas = [len(cell) for cell in cells(height, width, block) for _ in range(channels)]
    index, masses = [], []
    for column, area in zip(sums.T, areas, strict=True):
        distinct, rank = np.unique(column, return_inverse=True)
        index.append(rank)
        masses.append(np.array([distribution(int(total), area, parameter) for total in distinct]))
    return ProductDistribution(np.stack(index, axis=1), masses, cell_parts(height, width, channels, block))

"""The law of ssim-exponential written a second time, from the printed formulas: means, variances, no sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from dpveil.mechanisms.pixel import SSIMExponential

C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def evenly(levels: int) -> list[int]:
    return [math.floor(255 * j / (levels - 1) + 0.5) for j in range(levels)]


def outputs(cells: int, levels: int) -> np.ndarray:
    """All outputs of a window, one a row, the last cell changing fastest."""
    return np.array(list(itertools.product(evenly(levels), repeat=cells)), float)


def ssim(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """SSIM of a window and each row of y (Wang et al. 2004, equation 13, weights 1/n)."""
    mean_x, mean_y = np.mean(x), y.mean(axis=1)
    var_x, var_y = np.var(x), y.var(axis=1)
    cov = ((x - mean_x) * (y - mean_y[:, None])).mean(axis=1)
    return (2 * mean_x * mean_y + C1) * (2 * cov + C2) / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))


def clipped(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(0, ssim(x, y))


def log_law(
    x: object, exponent: float, levels: int, quality: Callable[..., np.ndarray] = clipped
) -> np.ndarray:
    """ln P of every output of a window whose true cells are x."""
    window = np.asarray(x, float).ravel()
    log_weights = exponent * quality(window, outputs(len(window), levels))
    top = log_weights.max()
    return log_weights - top - math.log(np.exp(log_weights - top).sum())


def windows_of(image: np.ndarray, block: int, side: int) -> list[np.ndarray]:
    """The windows of one channel, cell by cell: rounded means, and the nearest cell where there is none."""
    height, width = image.shape
    rows, columns = math.ceil(height / block), math.ceil(width / block)

    def cell(row: int, column: int) -> int:
        row, column = min(row, rows - 1), min(column, columns - 1)
        part = image[row * block : (row + 1) * block, column * block : (column + 1) * block]
        return math.floor(part.mean() + 0.5)

    return [
        np.array([[cell(top + i, left + j) for j in range(side)] for i in range(side)])
        for top in range(0, rows, side)
        for left in range(0, columns, side)
    ]


def cost(
    one: np.ndarray,
    other: np.ndarray,
    exponent: float,
    levels: int,
    *,
    block: int = 1,
    side: int = 2,
    quality: Callable[..., np.ndarray] = clipped,
) -> float:
    """The largest ln P(release | one) - ln P(release | other): windows are independent, so they add."""
    pairs = zip(windows_of(one, block, side), windows_of(other, block, side), strict=True)
    return sum(
        float(np.max(log_law(x, exponent, levels, quality) - log_law(y, exponent, levels, quality)))
        for x, y in pairs
    )


Draw = tuple[list[tuple[int, int, int]], np.ndarray, np.ndarray]
"""The places (row, column, channel) that show a draw, what each outcome looks like there, and its chances."""


def law(
    method: SSIMExponential,
    image: np.ndarray,
    *,
    factor: float = 1.0,
    quality: Callable[..., np.ndarray] = clipped,
) -> list[Draw]:
    """The independent draws of a release of a height × width × channels image: one a window and channel."""
    height, width, channels = image.shape
    block, side = method.block, method.window
    wide = math.ceil(math.ceil(width / block) / side)
    tall = math.ceil(math.ceil(height / block) / side)
    exponent = factor * float(method.epsilon) / (2 * tall * wide * channels)
    shown = outputs(side * side, method.levels).astype(np.uint8)
    draws = []
    for channel in range(channels):
        for number, window in enumerate(windows_of(image[:, :, channel], block, side)):
            top, left = side * (number // wide), side * (number % wide)
            places = [
                (row, column, channel)
                for row in range(block * top, min(block * (top + side), height))
                for column in range(block * left, min(block * (left + side), width))
            ]
            cells = [(r // block - top) * side + c // block - left for r, c, _ in places]
            chances = np.exp(log_law(window, exponent, method.levels, quality))
            draws.append((places, shown[:, cells], chances))
    return draws


def _published_count(method: SSIMExponential, image: np.ndarray) -> list[Draw]:
    height, width, channels = image.shape
    windows = height * width * channels / (method.window * method.block) ** 2
    return law(method, image, factor=len(law(method, image)) / windows)


def _whole_windows_only(method: SSIMExponential, image: np.ndarray) -> list[Draw]:
    step = method.window * method.block
    whole = (image.shape[0] // step) * (image.shape[1] // step) * image.shape[2]
    return law(method, image, factor=len(law(method, image)) / max(1, whole))


MUTANTS: dict[str, Callable[[SSIMExponential, np.ndarray], list[Draw]]] = {
    "quality without the clip": lambda method, image: law(method, image, quality=ssim),
    "windows counted as n·c/p²": _published_count,
    "factor 2 dropped": lambda method, image: law(method, image, factor=2.0),
    "padding outside the budget": _whole_windows_only,
    "channels not counted": lambda method, image: law(method, image, factor=float(image.shape[2])),
}

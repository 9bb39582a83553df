"""Cells of a pixel grid: exact sums before the noise, and the picture built from noisy means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

BAND: Final = 1 << 18
"""Cells whose sums are held in memory at once."""
TOP: Final = 255
"""The highest 8-bit level, and so the largest change of one pixel in one channel."""


def cell_sums(image: UInt8[np.ndarray, "h w c"], block: int) -> Int64[np.ndarray, "rows columns c"]:
    """Return the exact sum of every block × block cell; cells at the right and bottom may be smaller."""
    height, width, channels = image.shape
    step = min(block, max(height, width))
    narrow = np.uint16 if TOP * step < 2**16 else np.uint32 if TOP * step < 2**32 else np.uint64
    flat, full = np.ascontiguousarray(image).reshape(height, width * channels), height // step
    tall = np.empty((-(-height // step), width * channels), narrow)
    whole = flat[: full * step].reshape(full, step, width * channels)
    np.add.reduce(whole, axis=1, dtype=narrow, out=tall[:full])
    if full < len(tall):
        np.add.reduce(flat[full * step :], axis=0, dtype=narrow, out=tall[full])
    columns = tall.reshape(len(tall), width, channels)
    sums: Int64[np.ndarray, "rows columns c"]
    sums = np.add.reduceat(columns, np.arange(0, width, step), axis=1, dtype=np.int64)
    return sums


def cell_areas(height: int, width: int, block: int) -> Int64[np.ndarray, "rows columns 1"]:
    """Return the number of pixels of each cell; those in the last row and column may be smaller."""
    areas: Int64[np.ndarray, "rows columns 1"]
    areas = (_sides(height, block)[:, None] * _sides(width, block))[:, :, None]
    return areas


def _sides(length: int, block: int) -> Int64[np.ndarray, " cells"]:
    """Return the sides of the cells along a line of pixels; only the last may be shorter."""
    step = min(block, length)
    sides = np.full(-(-length // step), step, np.int64)
    sides[-1] = length - step * (len(sides) - 1)
    return sides


def fullest_cells(height: int, width: int, block: int, changed: int | None) -> dict[int, int]:
    """Return the worst shifts of the sums of one channel by one neighbour, as {shift: number of cells}.

    The `changed` pixels (None: all) fill the largest cells first, each by 255 levels. Of all shifts this has
    the largest L2 norm (docs: accounting), and dominates the others under Laplace noise.

    >>> fullest_cells(5, 5, 2, 9)
    {1020: 2, 255: 1}
    """
    return fullest_of(_areas(height, width, block), changed)


def fullest_in(regions: Iterable[tuple[int, int]], block: int, changed: int | None) -> dict[int, int]:
    """Return the same for the cells of several disjoint regions (height, width).

    >>> fullest_in([(2, 2), (5, 5)], 2, 9)
    {1020: 2, 255: 1}
    """
    areas: Counter[int] = Counter()
    for region in regions:
        areas.update(_areas(*region, block))
    return fullest_of(areas, changed)


def _areas(height: int, width: int, block: int) -> Counter[int]:
    """Return the number of cells of each area."""
    tall, wide = (divmod(side, min(block, side)) for side in (height, width))
    sizes: Counter[int] = Counter()
    for rows, row_count in ((min(block, height), tall[0]), (tall[1], 1)):
        for columns, column_count in ((min(block, width), wide[0]), (wide[1], 1)):
            sizes[rows * columns] += row_count * column_count
    return sizes


def fullest_of(sizes: Mapping[int, int], changed: int | None) -> dict[int, int]:
    """Return the shifts when `changed` pixels fill the largest cells first; `sizes` maps areas to cell
    counts.
    """
    left = sum(area * count for area, count in sizes.items()) if changed is None else changed
    moved: dict[int, int] = {}
    for area, count in sorted(sizes.items(), reverse=True):
        full = min(count, left // area) if area else 0
        left -= full * area
        rest = left if full < count and area else 0
        for pixels, cells in ((area, full), (rest, 1)):
            if pixels and cells:
                moved[TOP * pixels] = moved.get(TOP * pixels, 0) + cells
        left -= rest
    return moved


def pixelise(
    image: UInt8[np.ndarray, "h w c"],
    block: int,
    noise: Callable[[int], Int64[np.ndarray, " cells"]],
) -> UInt8[np.ndarray, "h w c"]:
    """Return the image of noisy cell means; `noise(n)` is called once and added to the n exact sums."""
    height, width, _ = image.shape
    sums = cell_sums(image, block)
    sums += noise(sums.size).reshape(sums.shape)
    means = mean_levels(sums, cell_areas(height, width, block))
    return spread(means, block, height, width)


def mean_levels(
    sums: Int64[np.ndarray, "rows columns c"], areas: Int64[np.ndarray, "rows columns 1"]
) -> UInt8[np.ndarray, "rows columns c"]:
    """Return sums divided by areas, clamped to 0..255 and rounded half up: post-processing of noisy sums."""
    levels: UInt8[np.ndarray, "rows columns c"]
    levels = ((2 * np.minimum(np.maximum(sums, 0), TOP * areas) + areas) // (2 * areas)).astype(np.uint8)
    return levels


def cell_levels(image: UInt8[np.ndarray, "h w c"], block: int) -> UInt8[np.ndarray, "rows columns c"]:
    """Return the mean level of every cell, rounded half up from its exact sum, in bands of cells."""
    height, width, channels = image.shape
    step = min(block, max(height, width))
    if step == 1:
        return image
    areas = cell_areas(height, width, block)
    levels = np.empty((*areas.shape[:2], channels), np.uint8)
    band = max(1, BAND // (areas.shape[1] * channels))
    for row in range(0, len(levels), band):
        sums = cell_sums(image[row * step : (row + band) * step], step)
        levels[row : row + band] = mean_levels(sums, areas[row : row + band])
    return levels


def spread(
    cells: UInt8[np.ndarray, "rows columns c"], block: int, height: int, width: int
) -> UInt8[np.ndarray, "h w c"]:
    """Return the image in which every pixel has its cell's level."""
    return cells.repeat(_sides(width, block), axis=1).repeat(_sides(height, block), axis=0)

"""Rasterisation of triangles row by row, compiled or in NumPy, with the same result.

A triangle owns its left and upper edges, so that every pixel has one owner. Both versions compute in the same
order in 64-bit floats, so that they round alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8

from dpveil.mechanisms.pixel.dp_samp import triangles as triangle_loops
from dpveil.mechanisms.pixel.dp_samp.triangles import ROUNDING
from dpveil.noise import backend

CHUNK: Final = 1 << 12
"""Spans or pixels computed at once."""
TRIANGLES: Final = 1 << 10
"""Triangles computed at once."""
PLAIN_PIXEL: Final = 8
"""Table look-ups of plain NumPy that take as long as painting one pixel."""

Part = tuple[int, int, int, int]
"""First row and last row + 1, then the same for columns."""


Painter = Callable[
    [UInt8[np.ndarray, "h w c"], Float32[np.ndarray, "t 6"], Int64[np.ndarray, "4 2"], Part], None
]


def painter(count: int) -> Painter:
    """Return `paint_plain`, or its compiled equivalent if that is worth it for so many pixels."""
    code = backend.compiled((triangle_loops,), PLAIN_PIXEL * count)
    if code is None:
        return paint_plain
    return lambda pixels, triangles, nearest, part: code.paint(
        pixels, triangles, nearest, *part, np.empty((2, 3), np.int64), np.empty((3, pixels.shape[2]))
    )


def paint_plain(
    pixels: UInt8[np.ndarray, "h w c"],
    triangles: Float32[np.ndarray, "t 6"],
    nearest: Int64[np.ndarray, "4 2"],
    part: Part,
) -> None:
    """Paint to all pixels of `part` of `pixels` the planes through the levels at the corners of triangles.

    `triangles` are x and y of three corners each, integers. A corner outside of `pixels` takes the level at
    the `nearest` position, y and x, on its side: upper left, upper right, lower left and lower right.
    """
    for start in range(0, len(triangles), TRIANGLES):
        paint_planes(pixels, planes(triangles[start : start + TRIANGLES], pixels, nearest), part)


def paint_planes(pixels: UInt8[np.ndarray, "h w c"], made: Planes, part: Part) -> None:
    """Paint planes to all pixels of `part`."""
    y0, y1, x0, x1 = part
    first = np.maximum(made.y[0], y0)
    rows = np.maximum(np.minimum(made.y[2], y1) - first, 0).astype(np.int64)
    for chunk in _chunks(rows):
        t, y = _each(rows[chunk])
        t += chunk.start
        y = y + first[t]
        ends = np.clip([_crossing(made, t, y, long) for long in (True, False)], x0, x1)
        left = np.minimum(*ends)
        length = (np.maximum(*ends) - left).astype(np.int64)
        start = made.level[:, t] + made.along[:, t] * (left - made.x[0, t])
        start += made.down[:, t] * (y - made.y[0, t])
        start += ROUNDING
        for spans in _chunks(length):
            s, offset = _each(length[spans])
            s += spans.start
            levels = start[:, s] + made.along[:, t[s]] * offset
            pixels[y[s].astype(np.int64), left[s].astype(np.int64) + offset] = np.clip(levels, 0, 255).T


@dataclass(frozen=True)
class Planes:
    """Triangles with corners y, x, sorted from top to bottom, and the plane of each channel over them.

    All are integers except `level`, at the first corner, and its change per step `along` x and `down` y.
    """

    y: Float64[np.ndarray, "3 t"]
    x: Float64[np.ndarray, "3 t"]
    level: Float64[np.ndarray, "c t"]
    along: Float64[np.ndarray, "c t"]
    down: Float64[np.ndarray, "c t"]


def planes(
    triangles: Float32[np.ndarray, "t 6"],
    pixels: UInt8[np.ndarray, "h w c"],
    nearest: Int64[np.ndarray, "4 2"],
) -> Planes:
    """Return the plane through the levels of every triangle's corners."""
    size = pixels.shape[:2]
    x, y = triangles.T[::2].astype(np.int64), triangles.T[1::2].astype(np.int64)
    for one, other in ((0, 1), (1, 2), (0, 1)):
        swap = y[one] > y[other]
        for places in (x, y):
            places[one, swap], places[other, swap] = places[other, swap], places[one, swap]
    outside = (y < 0) | (y >= size[0]) | (x < 0) | (x >= size[1])
    seen_y, seen_x = y.copy(), x.copy()
    corner = 2 * (y[outside] > 0) + (x[outside] > 0)
    seen_y[outside], seen_x[outside] = nearest[corner].T
    top, middle, bottom = np.moveaxis(pixels[seen_y, seen_x].astype(np.float64), 2, 1)
    (y1, y2), (x1, x2) = y[1:] - y[0], x[1:] - x[0]
    twice = (x1 * y2 - x2 * y1).astype(np.float64)
    along = ((middle - top) * y2 - (bottom - top) * y1) / twice
    down = ((bottom - top) * x1 - (middle - top) * x2) / twice
    return Planes(y.astype(np.float64), x.astype(np.float64), top, along, down)


def _crossing(
    made: Planes, t: Int64[np.ndarray, " n"], y: Float64[np.ndarray, " n"], long: bool
) -> Float64[np.ndarray, " n"]:
    """Return the first integer x that is not left of the triangle's long edge, or of its other side, in row
    y.

    Exact: a non-integer quotient of integers below 2^20 is further from an integer than its rounding error.
    """
    upper = np.zeros_like(t) if long else (y >= made.y[1, t]).astype(np.int64)
    lower = upper + 2 if long else upper + 1
    ya, xa = made.y[upper, t], made.x[upper, t]
    crossing: Float64[np.ndarray, " n"]
    crossing = np.ceil(xa + (made.x[lower, t] - xa) * (y - ya) / (made.y[lower, t] - ya))
    return crossing


def _chunks(lengths: Int64[np.ndarray, " n"]) -> Iterator[slice]:
    """Yield runs of entries whose lengths sum to at most `CHUNK`, or a single longer one."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        if ends[stop - 1] > done:
            yield slice(start, stop)
        start = stop


def _each(lengths: Int64[np.ndarray, " n"]) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Return for every unit of every length the index of its entry, and its position within it."""
    entry = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    return entry, np.arange(len(entry)) - np.repeat(starts, lengths)

"""Linear interpolation between scattered pixels: post-processing, which reads shown pixels and no other.

Triangles of Delaunay's triangulation are filled row by row, so that the time is that of the triangulation
plus a few operations a pixel. The corners of a square around the picture, three times as large, take the
level of the shown pixel that is nearest to the picture's corner on that side, so that triangles cover the
picture whatever is shown: one pixel, a row of them, or none near the edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

EMPTY: Final = 127
"""The level of a picture in which no pixel is shown."""
MOST_POINTS: Final = 1 << 15
LONGEST: Final = 1 << 16
"""The longest side of a part: single precision, in which triangles are found, holds its places exactly."""
MARGIN: Final = 8
CHUNK: Final = 1 << 16
STRIP: Final = 16
ROUNDING: Final = 0.5 + 1e-9


@dataclass(frozen=True)
class Window:
    """Pixels from (y0, x0) up to but without (y1, x1)."""

    y0: int
    x0: int
    y1: int
    x1: int

    @property
    def pixels(self) -> tuple[slice, slice]:
        """Where the window lies in an array."""
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.y1 - self.y0, self.x1 - self.x0

    def wider(self, height: int, width: int) -> Window:
        """Return the window with an eighth more on every side, within a picture of this size."""
        dy, dx = (side // MARGIN for side in self.size)
        top, left = max(0, self.y0 - dy), max(0, self.x0 - dx)
        return Window(top, left, min(height, self.y1 + dy), min(width, self.x1 + dx))


def interpolate(
    image: UInt8[np.ndarray, "h w c"], shown: Bool[np.ndarray, "h w"]
) -> UInt8[np.ndarray, "h w c"]:
    """Return a picture with the pixels of `image` where `shown`, and linear interpolation between them.

    Hidden pixels are wiped before anything is computed. Parts of the picture with at most 32 768 shown
    pixels each are interpolated by themselves, with those of an eighth around them, to bound the memory.

    >>> row = np.array([[[10], [99], [99], [40]]], np.uint8)
    >>> interpolate(row, np.array([[True, False, False, True]])).ravel().tolist()
    [10, 20, 30, 40]
    """
    kept = np.where(shown[:, :, None], image, np.uint8(EMPTY))
    if not shown.any():
        return kept
    out = np.empty_like(kept)
    for window in _windows(shown, Window(0, 0, *shown.shape)):
        _fill(out, kept, shown, window)
    np.copyto(out, kept, where=shown[:, :, None])
    return out


def _windows(shown: Bool[np.ndarray, "h w"], window: Window) -> Iterator[Window]:
    """Yield parts of the window with at most `MOST_POINTS` shown pixels, halved by number across."""
    part = shown[window.pixels]
    tall = part.shape[0] >= part.shape[1]
    count = np.cumsum(np.count_nonzero(part, axis=1 if tall else 0))
    if count[-1] <= MOST_POINTS and len(count) <= LONGEST:
        yield window
        return
    middle = len(count) // 2 if len(count) > LONGEST else int(np.searchsorted(count, count[-1] // 2))
    cut = min(max(1, middle), len(count) - 1)
    y, x = (window.y0 + cut, window.x1) if tall else (window.y1, window.x0 + cut)
    yield from _windows(shown, Window(window.y0, window.x0, y, x))
    y, x = (y, window.x0) if tall else (window.y0, x)
    yield from _windows(shown, Window(y, x, window.y1, window.x1))


def _fill(
    out: UInt8[np.ndarray, "h w c"],
    kept: UInt8[np.ndarray, "h w c"],
    shown: Bool[np.ndarray, "h w"],
    window: Window,
) -> None:
    """Write the window of `out`."""
    wide = window.wider(*shown.shape)
    points = np.argwhere(shown[wide.pixels])
    levels = kept[wide.pixels][shown[wide.pixels]]
    if len(points) == 0 or (levels == levels[0]).all():
        out[window.pixels] = levels[0] if len(points) else EMPTY
        return
    planes = _planes(_triangles(points, wide.size), kept[wide.pixels], points)
    _paint(out, planes, window, wide)


def _triangles(points: Int64[np.ndarray, "n 2"], size: tuple[int, int]) -> Int64[np.ndarray, "t 3 2"]:
    """Return y and x of the corners of Delaunay's triangles of the points and of a square around the size."""
    far, (height, width) = max(size), size
    corners = [(-far, -far), (-far, width + far), (height + far, -far), (height + far, width + far)]
    vertices = np.concatenate([points, corners])
    strip = vertices[:, 0] // STRIP  # to and fro, so that each vertex is near the last one: half the time
    near = np.lexsort((np.where(strip % 2, -vertices[:, 1], vertices[:, 1]), strip))
    net = cv2.Subdiv2D((-far, -far, width + 2 * far + 1, height + 2 * far + 1))
    net.insert(np.ascontiguousarray(vertices[near, ::-1], np.float32))  # type: ignore[call-overload]
    triangles: Int64[np.ndarray, "t 3 2"]
    triangles = np.asarray(net.getTriangleList()).reshape(-1, 3, 2)[:, :, ::-1].astype(np.int64)
    return triangles


@dataclass(frozen=True)
class Planes:
    """Triangles with corners y, x, from the upper to the lower, and the plane of each channel over them.

    All are whole numbers but for `level`, at the first corner, and its change by a step along and down.
    """

    y: Float64[np.ndarray, "3 t"]
    x: Float64[np.ndarray, "3 t"]
    level: Float64[np.ndarray, "c t"]
    along: Float64[np.ndarray, "c t"]
    down: Float64[np.ndarray, "c t"]


def _planes(
    triangles: Int64[np.ndarray, "t 3 2"],
    kept: UInt8[np.ndarray, "h w c"],
    points: Int64[np.ndarray, "n 2"],
) -> Planes:
    """Return the plane through the levels of every triangle's corners."""
    size = kept.shape[:2]
    places = np.ascontiguousarray(np.moveaxis(triangles, 0, 2))  # corner, y or x, triangle
    for one, other in ((0, 1), (1, 2), (0, 1)):
        swap = places[one, 0] > places[other, 0]
        places[one][:, swap], places[other][:, swap] = places[other][:, swap], places[one][:, swap]
    y, x = places[:, 0], places[:, 1]
    outside = (y < 0) | (y >= size[0]) | (x < 0) | (x >= size[1])
    own = np.array([(0, 0), (0, size[1]), (size[0], 0), size])
    nearest = np.array([points[((points - corner) ** 2).sum(axis=1).argmin()] for corner in own])
    seen_y, seen_x = y.copy(), x.copy()
    corner = 2 * (y[outside] > 0) + (x[outside] > 0)
    seen_y[outside], seen_x[outside] = nearest[corner].T
    top, middle, bottom = np.moveaxis(kept[seen_y, seen_x].astype(np.float64), 2, 1)
    (y1, y2), (x1, x2) = y[1:] - y[0], x[1:] - x[0]
    twice = (x1 * y2 - x2 * y1).astype(np.float64)
    along = ((middle - top) * y2 - (bottom - top) * y1) / twice
    down = ((bottom - top) * x1 - (middle - top) * x2) / twice
    return Planes(y.astype(np.float64), x.astype(np.float64), top, along, down)


def _paint(out: UInt8[np.ndarray, "h w c"], planes: Planes, window: Window, wide: Window) -> None:
    """Write the planes, whose places are those in `wide`, to all pixels of the window.

    A triangle owns what lies on its left and upper edges, so that every pixel has one owner.
    """
    y0, y1 = window.y0 - wide.y0, window.y1 - wide.y0
    x0, x1 = window.x0 - wide.x0, window.x1 - wide.x0
    pixels, width = out.reshape(-1, out.shape[2]), out.shape[1]
    first = np.maximum(planes.y[0], y0)
    rows = np.maximum(np.minimum(planes.y[2], y1) - first, 0).astype(np.int64)
    for chunk in _chunks(rows):
        t, y = _each(rows[chunk])
        t += chunk.start
        y = y + first[t]
        ends = np.clip([_crossing(planes, t, y, long) for long in (True, False)], x0, x1)
        left = np.minimum(*ends)
        length = (np.maximum(*ends) - left).astype(np.int64)
        start = planes.level[:, t] + planes.along[:, t] * (left - planes.x[0, t])
        start += planes.down[:, t] * (y - planes.y[0, t]) + ROUNDING
        along = planes.along[:, t]
        place = ((y + wide.y0) * width + left + wide.x0).astype(np.int64)
        for spans in _chunks(length):
            s, offset = _each(length[spans])
            s += spans.start
            for channel in range(len(start)):
                levels = start[channel, s] + along[channel, s] * offset
                pixels[place[s] + offset, channel] = np.clip(levels, 0, 255)


def _crossing(
    planes: Planes, t: Int64[np.ndarray, " n"], y: Float64[np.ndarray, " n"], long: bool
) -> Float64[np.ndarray, " n"]:
    """Return the first whole x that is not left of the triangle's long edge, or of its other side, in row y.

    Exact: a quotient of whole numbers below 2^20 that is not whole is further from one than it is rounded.
    """
    upper = np.zeros_like(t) if long else (y >= planes.y[1, t]).astype(np.int64)
    lower = upper + 2 if long else upper + 1
    ya, xa = planes.y[upper, t], planes.x[upper, t]
    crossing: Float64[np.ndarray, " n"]
    crossing = np.ceil(xa + (planes.x[lower, t] - xa) * (y - ya) / (planes.y[lower, t] - ya))
    return crossing


def _chunks(lengths: Int64[np.ndarray, " n"]) -> Iterator[slice]:
    """Yield runs of entries whose lengths sum to about `CHUNK`, or a single longer one."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        if ends[stop - 1] > done:
            yield slice(start, stop)
        start = stop


def _each(lengths: Int64[np.ndarray, " n"]) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Return for every unit of every length the number of its entry, and its place within it."""
    entry = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    return entry, np.arange(len(entry)) - np.repeat(starts, lengths)

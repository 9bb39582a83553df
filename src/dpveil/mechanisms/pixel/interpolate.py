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
MARGIN: Final = 8
CHUNK: Final = 1 << 16
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
    if count[-1] <= MOST_POINTS:
        yield window
        return
    cut = min(max(1, int(np.searchsorted(count, count[-1] // 2))), len(count) - 1)
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
    height, width = shown.shape
    dy, dx = ((b - a) // MARGIN for a, b in ((window.y0, window.y1), (window.x0, window.x1)))
    wide = Window(
        max(0, window.y0 - dy),
        max(0, window.x0 - dx),
        min(height, window.y1 + dy),
        min(width, window.x1 + dx),
    )
    points = np.argwhere(shown[wide.pixels])
    levels = kept[wide.pixels][shown[wide.pixels]].astype(np.float64)
    if len(points) == 0 or (levels == levels[0]).all():
        out[window.pixels] = levels[0] if len(points) else EMPTY
        return
    size = (wide.y1 - wide.y0, wide.x1 - wide.x0)
    corners, nearest = _corners(points, size)
    vertices = np.concatenate([points, corners])
    planes = _planes(vertices, np.concatenate([levels, levels[nearest]]), _triangles(vertices))
    inner = Window(window.y0 - wide.y0, window.x0 - wide.x0, window.y1 - wide.y0, window.x1 - wide.x0)
    _paint(out[wide.pixels], planes, inner)


def _corners(
    points: Int64[np.ndarray, "n 2"], size: tuple[int, int]
) -> tuple[Int64[np.ndarray, "4 2"], list[int]]:
    """Return the corners of a square around the picture, and which point is nearest to the picture's own."""
    far = max(size)
    own = np.array([(0, 0), (0, size[1]), (size[0], 0), size])
    nearest = [int(((points - corner) ** 2).sum(axis=1).argmin()) for corner in own]
    return np.where(own > 0, own + far, -far), nearest


def _triangles(vertices: Int64[np.ndarray, "n 2"]) -> Int64[np.ndarray, "t 3"]:
    """Return Delaunay's triangles as numbers of vertices; the last four vertices are the corners."""
    low, high = vertices[-4], vertices[-1]
    span = high - low + 1
    net = cv2.Subdiv2D((int(low[1]), int(low[0]), int(span[1]), int(span[0])))
    net.insert(np.ascontiguousarray(vertices[:, ::-1], np.float32))
    places = net.getTriangleList().reshape(-1, 3, 2).astype(np.int64)
    keys = (vertices[:, 0] - low[0]) * span[1] + vertices[:, 1] - low[1]
    order = np.argsort(keys)
    wanted = (places[:, :, 1] - low[0]) * span[1] + places[:, :, 0] - low[1]
    found: Int64[np.ndarray, "t 3"] = order[np.searchsorted(keys[order], wanted)]
    return found


@dataclass(frozen=True)
class Planes:
    """Triangles with corners y, x, from the upper to the lower, and the plane of each channel over them."""

    y: Int64[np.ndarray, "3 t"]
    x: Int64[np.ndarray, "3 t"]
    level: Float64[np.ndarray, "c t"]
    along: Float64[np.ndarray, "c t"]
    down: Float64[np.ndarray, "c t"]


def _planes(
    vertices: Int64[np.ndarray, "n 2"],
    levels: Float64[np.ndarray, "n c"],
    triangles: Int64[np.ndarray, "t 3"],
) -> Planes:
    """Return the plane through the levels of every triangle: at its upper corner, a step along and down."""
    order = np.argsort(vertices[triangles, 0], axis=1, kind="stable")
    sorted_ = np.take_along_axis(triangles, order, axis=1).T
    y, x = vertices[sorted_, 0], vertices[sorted_, 1]
    top, middle, bottom = (levels[corner].T for corner in sorted_)
    (y1, y2), (x1, x2) = y[1:] - y[0], x[1:] - x[0]
    twice = (x1 * y2 - x2 * y1).astype(np.float64)
    along = ((middle - top) * y2 - (bottom - top) * y1) / twice
    down = ((bottom - top) * x1 - (middle - top) * x2) / twice
    return Planes(y, x, top, along, down)


def _paint(out: UInt8[np.ndarray, "h w c"], planes: Planes, window: Window) -> None:
    """Write the planes to all pixels of the window, each by the one triangle that it belongs to.

    A triangle owns what lies on its left and upper edges, so that every pixel has one owner. All in whole
    numbers, but for the levels.
    """
    first = np.maximum(planes.y[0], window.y0)
    rows = np.maximum(np.minimum(planes.y[2], window.y1) - first, 0)
    for triangles in _chunks(rows):
        t, step = _each(rows[triangles])
        t += triangles.start
        y = first[t] + step
        long = _crossing(planes, t, y, np.zeros_like(t), np.full_like(t, 2))
        lower = (y >= planes.y[1, t]).astype(np.int64)
        short = _crossing(planes, t, y, lower, lower + 1)
        left = np.maximum(np.minimum(long, short), window.x0)
        length = np.maximum(np.minimum(np.maximum(long, short), window.x1) - left, 0)
        start = planes.level[:, t] + planes.along[:, t] * (left - planes.x[0, t])
        start += planes.down[:, t] * (y - planes.y[0, t]) + ROUNDING
        for spans in _chunks(length):
            s, offset = _each(length[spans])
            s += spans.start
            place = (y[s], left[s] + offset)
            for channel, level in enumerate(start):
                along = planes.along[channel, t]
                out[(*place, channel)] = np.clip(level[s] + along[s] * offset, 0, 255).astype(np.uint8)


def _crossing(
    planes: Planes,
    t: Int64[np.ndarray, " n"],
    y: Int64[np.ndarray, " n"],
    upper: Int64[np.ndarray, " n"],
    lower: Int64[np.ndarray, " n"],
) -> Int64[np.ndarray, " n"]:
    """Return the first whole x that is not left of the edge between two corners, in row y."""
    ya, xa = planes.y[upper, t], planes.x[upper, t]
    height = planes.y[lower, t] - ya
    crossing: Int64[np.ndarray, " n"] = xa - ((xa - planes.x[lower, t]) * (y - ya)) // height
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
    return entry, np.arange(len(entry)) - starts[entry]

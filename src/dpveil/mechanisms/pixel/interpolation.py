"""Linear interpolation between scattered pixels: post-processing that reads only shown pixels.

Parts of the picture are triangulated (Delaunay) and painted separately, which bounds memory to a few times
that of the picture. The corners of a square around a part, three times its size, take the level of the shown
pixel nearest to the part's corner on that side. So triangles cover the part whatever is shown: one pixel, a
row of them, or none near the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Int64, UInt8
from dpveil.mechanisms.pixel import triangles as triangle_loops
from dpveil.noise import backend
from dpveil.opencv import cv2

PLAIN_LEVEL: Final = 25
"""Table look-ups that take as long as painting one channel of one pixel by plain Python."""
Painter = Callable[
    [UInt8[np.ndarray, "h w c"], Float32[np.ndarray, "t 6"], Int64[np.ndarray, "4 2"], list[int]], None
]


def painter(levels: int) -> Painter:
    """Return what paints triangles to the part of a picture between two rows and two columns, compiled if
    that is worth it for so many levels.

    `triangles` are x and y of three corners each, integers. A corner outside of `pixels` takes the level at
    the `nearest` position, y and x, on its side: upper left, upper right, lower left and lower right.
    """
    code = backend.loops((triangle_loops,), PLAIN_LEVEL * levels)
    return lambda pixels, triangles, nearest, part: code.paint(
        pixels, triangles, nearest, *part, np.empty((2, 3), np.int64), np.empty((3, pixels.shape[2]))
    )


EMPTY: Final = 127  # the level of a picture without any shown pixel
MOST_POINTS: Final = 1 << 13  # most points triangulated at once
BYTES_PER_POINT: Final = 256
"""Bytes of the picture per point of a part, about what a point takes until it is painted."""
FEWEST_POINTS: Final = 1 << 9  # points up to which a part is never divided
LONGEST: Final = 1 << 16
"""Longest side of a part: triangulation is in single precision, which is exact for such coordinates."""
MARGIN: Final = 12  # a part is triangulated with a margin of its side divided by this
STRIP: Final = 16  # height of the strips in which points are inserted
THREADS: Final = 2
NEAR: Final = 5  # distance within which a redundant pixel has others on all four sides
AROUND: Final = 7  # at least √2·`NEAR`, rounded down
LINE: Final = np.ones((1, NEAR), np.uint8)
BOX: Final = np.ones((2 * AROUND + 1, 2 * AROUND + 1), np.uint8)
ROWS: Final = 64  # rows or columns processed at once, which bounds memory
SPARSE: Final = 64
"""Redundant pixels are searched for if at least one pixel in so many is shown; else hardly any exist."""


@dataclass(frozen=True)
class Window:
    """The pixels from (y0, x0) to (y1, x1), exclusive."""

    y0: int
    x0: int
    y1: int
    x1: int

    @property
    def pixels(self) -> tuple[slice, slice]:
        """The window as slices of an array."""
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.y1 - self.y0, self.x1 - self.x0

    def wider(self, height: int, width: int) -> Window:
        """Return the window with its margin on every side, within a picture of this size."""
        dy, dx = (side // MARGIN for side in self.size)
        top, left = max(0, self.y0 - dy), max(0, self.x0 - dx)
        return Window(top, left, min(height, self.y1 + dy), min(width, self.x1 + dx))


def interpolate(
    image: UInt8[np.ndarray, "h w c"], shown: Bool[np.ndarray, "h w"]
) -> UInt8[np.ndarray, "h w c"]:
    """Return a picture with the pixels of `image` where `shown`, and linear interpolation between them.

    Hidden pixels are erased before anything is computed. Parts of the picture with at most 8192 `needed`
    pixels, fewer in a small picture, are interpolated separately, each with a margin.

    >>> row = np.array([[[10], [99], [99], [40]]], np.uint8)
    >>> interpolate(row, np.array([[True, False, False, True]])).ravel().tolist()
    [10, 20, 30, 40]
    """
    out = np.where(shown[:, :, None], image, np.uint8(EMPTY))
    kept = needed_pixels(out, shown)
    most = min(MOST_POINTS, max(FEWEST_POINTS, out.nbytes // BYTES_PER_POINT))
    windows = list(_windows(kept, Window(0, 0, *kept.shape), most))
    paint = painter(out.size)
    with ThreadPoolExecutor(THREADS) as pool:
        # a shown pixel is painted with its own level, so the order does not matter
        list(pool.map(lambda window: _fill(out, shown, kept, window, paint), windows))
    return out


def _windows(kept: Bool[np.ndarray, "h w"], window: Window, most: int) -> Iterator[Window]:
    """Yield parts of the window with at most `most` kept pixels, halved by their number."""
    part = kept[window.pixels]
    tall = part.shape[0] >= part.shape[1]
    count = np.cumsum(cv2.reduce(part.view(np.uint8), int(tall), cv2.REDUCE_SUM, dtype=cv2.CV_32S))
    if count[-1] <= most and len(count) <= LONGEST:
        yield window
        return
    middle = len(count) // 2 if len(count) > LONGEST else int(np.searchsorted(count, count[-1] // 2))
    cut = min(max(1, middle), len(count) - 1)
    y, x = (window.y0 + cut, window.x1) if tall else (window.y1, window.x0 + cut)
    yield from _windows(kept, Window(window.y0, window.x0, y, x), most)
    y, x = (y, window.x0) if tall else (window.y0, x)
    yield from _windows(kept, Window(y, x, window.y1, window.x1), most)


def _fill(
    out: UInt8[np.ndarray, "h w c"],
    shown: Bool[np.ndarray, "h w"],
    kept: Bool[np.ndarray, "h w"],
    window: Window,
    paint: Painter,
) -> None:
    """Write the window of `out`, reading shown pixels only."""
    wide = window.wider(*shown.shape)
    pixels, seen = out[wide.pixels], shown[wide.pixels]
    mask = seen.view(np.uint8)
    ends = [cv2.minMaxLoc(pixels[:, :, channel], mask)[:2] for channel in range(pixels.shape[2])]
    if all(least == most for least, most in ends):
        out[window.pixels] = [least for least, _ in ends] if seen.any() else EMPTY
        return
    corners = with_outermost(kept[wide.pixels], seen)
    points = np.stack(np.divmod(np.flatnonzero(corners), wide.size[1]), axis=1)
    part = [window.y0 - wide.y0, window.y1 - wide.y0, window.x0 - wide.x0, window.x1 - wide.x0]
    paint(pixels, _triangles(points, wide.size), _nearest(points, wide.size), part)


def needed_pixels(
    image: UInt8[np.ndarray, "h w c"], shown: Bool[np.ndarray, "h w"]
) -> Bool[np.ndarray, "h w"]:
    """Return the shown pixels without redundant ones, whose removal changes nothing up to ties.

    If a shown pixel has others above, below, left and right within `NEAR`, its Voronoi cell lies in a square
    of that side, and every corner with which it shares a triangle is at most √2·`NEAR` away. If all shown
    pixels there have its level, its triangles are flat, and so are those that replace them without it. The
    pixel nearest to a corner of the picture is always kept. Ties are four points or more on one circle:
    without the removed pixels, their triangulation may differ.
    """
    kept = shown.copy()
    if np.count_nonzero(shown) * SPARSE >= shown.size:
        for top in range(0, len(shown), ROWS):
            first, end = max(0, top - AROUND), top + ROWS
            amid = _is_surrounded(image[first : end + AROUND], shown[first : end + AROUND])
            kept[top:end] &= ~amid[top - first : end - first]
    return kept


def _is_surrounded(
    image: UInt8[np.ndarray, "h w c"], shown: Bool[np.ndarray, "h w"]
) -> Bool[np.ndarray, "h w"]:
    """Return which pixels have shown ones near on all sides, all of one level; never near the edge."""
    seen, inner = shown.view(np.uint8), slice(1, -1)
    hidden = seen - np.uint8(1)  # 255, and 0 where shown
    found = np.zeros(shown.shape, bool)
    amid = found[inner, inner]
    amid |= _near_shown(seen, LINE, (0, 0))[inner, 2:]
    amid &= _near_shown(seen, LINE, (NEAR - 1, 0))[inner, :-2]
    amid &= _near_shown(seen, LINE.T, (0, 0))[2:, inner]
    amid &= _near_shown(seen, LINE.T, (0, NEAR - 1))[:-2, inner]
    for channel in range(image.shape[2]):
        level = image[:, :, channel]
        least, most = cv2.erode(level | hidden, BOX), cv2.dilate(level & ~hidden, BOX)
        amid &= np.equal(least, most)[inner, inner]
    return found


def _near_shown(
    seen: UInt8[np.ndarray, "h w"], line: UInt8[np.ndarray, "_ _"], anchor: tuple[int, int]
) -> Bool[np.ndarray, "h w"]:
    """Return where the line, with its `anchor` at the pixel, covers a shown pixel."""
    return np.asarray(cv2.dilate(seen, line, anchor=anchor), np.uint8).view(bool)


def with_outermost(kept: Bool[np.ndarray, "h w"], shown: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
    """Return the kept pixels with the first and last shown pixel of each row and column of a part.

    The pixels that make these redundant may lie in other parts.
    """
    corners = kept.copy()
    for lines, marks in ((shown, corners), (shown.T, corners.T)):
        for top in range(0, len(lines), ROWS):
            some, rows = lines[top : top + ROWS], np.arange(len(lines))[top : top + ROWS]
            for ends in (some.argmax(axis=1), lines.shape[1] - 1 - some[:, ::-1].argmax(axis=1)):
                marks[rows, ends] = lines[rows, ends]
    return corners


def _nearest(points: Int64[np.ndarray, "n 2"], size: tuple[int, int]) -> Int64[np.ndarray, "4 2"]:
    """Return the points nearest to the part's corners: upper left and right, lower left and right."""
    corners = (0, 0), (0, size[1]), (size[0], 0), size
    y, x = points.T.astype(np.float64)
    return np.array([points[((y - far_y) ** 2 + (x - far_x) ** 2).argmin()] for far_y, far_x in corners])


def _triangles(points: Int64[np.ndarray, "n 2"], size: tuple[int, int]) -> Float32[np.ndarray, "t 6"]:
    """Return integer x and y of the corners of the Delaunay triangles of points and a square around the part.

    Points are inserted in rounds, first every 512th and last the remaining ones, so that few triangles change
    later, and within each round in strips in alternating directions, so that each point is near the last one
    (biased order, Amenta, Choi & Rote 2003). This takes half the time of strips alone.
    """
    far, (height, width) = max(size), size
    strip, place = points[:, 0] // STRIP, np.arange(len(points))
    key = (place % 8 != 0).astype(np.int64) + (place % 64 != 0) + (place % 512 != 0)
    key = (key * LONGEST + strip) * LONGEST + np.where(strip % 2, LONGEST - 1 - points[:, 1], points[:, 1])
    order = key.argsort()
    corners = [(-far, -far), (width + far, -far), (-far, height + far), (width + far, height + far)]
    net = cv2.Subdiv2D((-far, -far, width + 2 * far + 1, height + 2 * far + 1))
    net.insert(np.concatenate([corners, points[order, ::-1]], dtype=np.float32))  # type: ignore[call-overload]
    return np.asarray(net.getTriangleList())

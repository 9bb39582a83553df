"""Triangle rasterisation in loops, which run plain or compiled (`noise.backend.loops`) and round alike."""

from __future__ import annotations

from math import ceil
from typing import Final

ROUNDING: Final = 0.5 + 1e-9  # added before truncation to round half up; the 1e-9 covers floating-point error


def paint(pixels, triangles, nearest, y0, y1, x0, x1, corners, plane):
    """Paint the planes through the corners of triangles to rows y0 to y1 and columns x0 to x1 of `pixels`.

    Work arrays: `corners`, two rows of three integers, and `plane`, three rows of one double per channel.
    """
    y, x = corners
    channels = pixels.shape[2]
    for t in range(len(triangles)):
        corners_down(triangles[t], y, x)
        if min(y[2], y1) <= max(y[0], y0) or max(x[0], x[1], x[2]) < x0 or min(x[0], x[1], x[2]) >= x1:
            continue
        find_plane(pixels, nearest, y, x, plane)
        for row in range(max(y[0], y0), min(y[2], y1)):
            upper = 1 if row >= y[1] else 0
            long = min(max(crossing(y[0], x[0], y[2], x[2], row), x0), x1)
            other = min(max(crossing(y[upper], x[upper], y[upper + 1], x[upper + 1], row), x0), x1)
            left, right = min(long, other), max(long, other)
            for c in range(channels):
                along = plane[1, c]
                start = plane[0, c] + along * float(left - x[0])
                start += plane[2, c] * float(row - y[0])
                start += ROUNDING
                for offset in range(right - left):
                    pixels[row, left + offset, c] = int(min(max(start + along * float(offset), 0.0), 255.0))


def corners_down(triangle, y, x):
    """Fill y and x with the corners of a triangle, sorted from top to bottom."""
    for i in range(3):
        x[i], y[i] = int(triangle[2 * i]), int(triangle[2 * i + 1])
    for one, other in ((0, 1), (1, 2), (0, 1)):
        if y[one] > y[other]:
            y[one], y[other] = y[other], y[one]
            x[one], x[other] = x[other], x[one]


def find_plane(pixels, nearest, y, x, plane):
    """Fill for each channel the level at the first corner, and its change per step in x and in y."""
    y1, y2, x1, x2 = y[1] - y[0], y[2] - y[0], x[1] - x[0], x[2] - x[0]
    twice = float(x1 * y2 - x2 * y1)
    for c in range(pixels.shape[2]):
        top = level_at(pixels, nearest, y[0], x[0], c)
        middle = level_at(pixels, nearest, y[1], x[1], c) - top
        bottom = level_at(pixels, nearest, y[2], x[2], c) - top
        plane[0, c] = top
        plane[1, c] = (middle * y2 - bottom * y1) / twice
        plane[2, c] = (bottom * x1 - middle * x2) / twice


def level_at(pixels, nearest, y, x, c):
    """Return the level at a corner, or outside the picture that of the nearest position on its side."""
    if y < 0 or y >= pixels.shape[0] or x < 0 or x >= pixels.shape[1]:
        corner = (2 if y > 0 else 0) + (1 if x > 0 else 0)
        return float(pixels[nearest[corner, 0], nearest[corner, 1], c])
    return float(pixels[y, x, c])


def crossing(ya, xa, yb, xb, row):
    """Return the first integer x that is not left of an edge in a row."""
    return ceil(float(xa) + float((xb - xa) * (row - ya)) / float(yb - ya))

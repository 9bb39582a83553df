"""The pixels of a public shape in a frame, in a fraction of the time that photos take for it."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head import bounds
from dpveil.faces.geometry.head_frame import MIDDLE, Shape

CORNERS: Final = 180
"""Corners of the polygon around an ellipse."""
MORE: Final = 1.0
"""Pixels by which the polygon is larger than needed, for all rounding."""
BITS: Final = 6
"""Bits of a pixel's fractions in which corners are given to OpenCV."""


def around(
    shape: Shape, head: Similarity, width: int, height: int, *, box: Box | None = None, masked: bool = True
) -> Region | None:
    """Return a region that holds every pixel of a shape, and of `box`, in a picture of this size, or None.

    `head` maps the picture to a frame with a side of 1. It holds a few more at the edge. Without
    `masked`, it is the whole bounding box.

    *Why nothing is missing.* The polygon lies around the ellipse, as its corners lie outside by more than the
    sagitta of its sides; OpenCV fills every pixel whose centre is inside. ∎
    """
    import cv2

    least = min(shape.half[0] * min(shape.left, shape.right), shape.half[1] * min(1.0, shape.below))
    factor = 1 / np.cos(np.pi / CORNERS) + MORE * head.scale / least
    parts = [head.back(part - 0.5) for part in _corners(shape, factor, MORE * head.scale)]
    if box is not None:
        ends = [
            [box.x, box.y],
            [box.x + box.w - 1, box.y],
            [box.x + box.w - 1, box.y + box.h - 1],
            [box.x, box.y + box.h - 1],
        ]
        parts.append(np.array(ends, np.float64))
    found = bounds(np.concatenate(parts), width, height)
    if found is None or not masked:
        return None if found is None else Region(found)
    mask = np.zeros((found.h, found.w), np.uint8)
    for part in parts:
        corners = np.rint((part - (found.x, found.y)) * 2**BITS).astype(np.int32)
        cv2.fillPoly(mask, [corners], (1,), cv2.LINE_8, BITS)
    return Region(found, mask.view(np.bool_)) if mask.any() else None


def _corners(shape: Shape, factor: float, more: float) -> list[Float64[np.ndarray, "n 2"]]:
    """Return the corners of polygons around an ellipse that is larger by a factor, and around its neck, which
    is larger by `more` of the frame's side.
    """
    angle = np.arange(CORNERS) * (2 * np.pi / CORNERS)
    x, y = shape.half[0] * factor * np.cos(angle), shape.half[1] * factor * np.sin(angle)
    x *= np.where(x < 0, shape.left, shape.right)
    y *= np.where(y > 0, shape.below, 1.0)
    parts = [np.stack([x, y], axis=1) + MIDDLE]
    if shape.neck is not None:
        half, top, bottom = shape.neck
        left, right = -half * shape.left - more, half * shape.right + more
        top, bottom = top - more, bottom + more
        parts.append(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) + MIDDLE)
    return parts

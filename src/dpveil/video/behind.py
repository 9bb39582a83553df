"""What is behind a head in a clip: a smooth continuation of the pixels around, the same for the same pixels.

Pixels are averaged at low resolution and continued (push and pull, as in `faces.geometry.background`), which
takes a millisecond or two and does not flicker, as every pixel of it is a mean of many.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Bool, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.background import continued_from

AROUND: Final = 0.2
"""Width of the surroundings that are read, relative to the longer side of what is filled."""
SIDE: Final = 96
"""Longer side of the small picture that is continued, in pixels."""


def around(boxes: list[Box], width: int, height: int, wider: float = AROUND) -> Box:
    """Return the bounding box of boxes and their surroundings, clipped to the picture."""
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.w for box in boxes), max(box.y + box.h for box in boxes)
    more = math.ceil(wider * max(right - left, bottom - top))
    left, top = max(0, left - more), max(0, top - more)
    return Box(left, top, min(width, right + more) - left, min(height, bottom + more) - top)


def behind(
    outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"], part: Box
) -> UInt8[np.ndarray, "h w 3"]:
    """Return `part` of a picture with the pixels under `hidden` filled; none of them is read.

    `outside` has 0 under `hidden`. Pixels outside come back smoothed, and grey where nothing is known.
    """
    import cv2

    height, width = hidden.shape
    view = around([part], width, height)
    known = np.where(hidden[view.slices], np.uint8(0), np.uint8(255))
    if not known.any():
        return np.full((part.h, part.w, 3), 128, np.uint8)
    ratio = min(1.0, SIDE / max(view.w, view.h))
    size = max(1, round(view.w * ratio)), max(1, round(view.h * ratio))
    sums = cv2.resize(outside[view.slices], size, interpolation=cv2.INTER_AREA).astype(np.float32)
    weight = cv2.resize(known, size, interpolation=cv2.INTER_AREA).astype(np.float32) / np.float32(255)
    mean = sums.reshape(size[1], size[0], 3) / np.maximum(weight, np.float32(1e-2))[..., None]
    small = continued_from(mean, (weight > SURE) * weight)
    across, down = size[0] / view.w, size[1] / view.h
    x, y = part.x - view.x, part.y - view.y
    matrix = np.array([[across, 0, (x + 0.5) * across - 0.5], [0, down, (y + 0.5) * down - 0.5]])
    mode = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    rounded = np.clip(np.rint(small), 0, 255).astype(np.uint8)
    return np.asarray(
        cv2.warpAffine(rounded, matrix, (part.w, part.h), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    )


SURE: Final = 0.1
"""Share of a small pixel that must be known for it to count."""

"""What of a photo is shown on a sheet of `dpveil compare`, and how large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.photo import Photo
from dpveil.core.region import Box

WIDE: Final = 340
"""Width in pixels of a square picture on the sheet; others have about the same area."""
CONTEXT: Final = 0.4
"""Margin shown around the regions, relative to their extent."""


def all_of(photo: Photo) -> Box:
    """Return the whole photo."""
    return Box(0, 0, photo.width, photo.height)


def around(boxes: Sequence[Box], photo: Photo) -> Box:
    """Return the part of the photo to show: the bounding box of all regions with a margin."""
    left, top = min(b.x for b in boxes), min(b.y for b in boxes)
    right, bottom = max(b.x + b.w for b in boxes), max(b.y + b.h for b in boxes)
    more = round(CONTEXT * max(right - left, bottom - top))
    x, y = max(0, left - more), max(0, top - more)
    return Box(x, y, min(photo.width, right + more) - x, min(photo.height, bottom + more) - y)


def cell_of(view: Box) -> tuple[int, int]:
    """Return the width and height of a picture on the sheet: wide enough for captions, and not too tall."""
    stretch = math.sqrt(view.w / view.h)
    width = min(round(WIDE * stretch), 640)
    return max(WIDE, width), min(max(1, round(width * view.h / view.w)), 520)


def fitted(image: UInt8[np.ndarray, "h w c"], width: int, height: int | None = None) -> tuple[int, int]:
    """Return the largest (width, height) with the aspect ratio of `image` within width × height."""
    ratio = min(width / image.shape[1], (height or width) / image.shape[0])
    return max(1, round(image.shape[1] * ratio)), max(1, round(image.shape[0] * ratio))

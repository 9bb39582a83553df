"""A frame without what is replaced, at fractions of its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity

MOST: Final = 4
"""Halvings at most: 16 pixels become one."""

Image = UInt8[np.ndarray, "h w 3"]


class Surroundings:
    """A frame with 0 under what is replaced, and which pixels these are: all that heads are lit by."""

    def __init__(self, image: Image, regions: Sequence[Region]) -> None:
        self.levels = image.copy()
        self.hidden: Bool[np.ndarray, "h w"] = np.zeros(image.shape[:2], np.bool_)
        for region in regions:
            put(self.levels, region, np.zeros((region.box.h, region.box.w, 3), np.uint8))
            view = self.hidden[region.box.slices]
            view |= True if region.mask is None else region.mask
        known = np.where(self.hidden, np.uint8(0), np.uint8(255))
        self._smaller: list[tuple[Image, UInt8[np.ndarray, "h w"]]] = [(self.levels, known)]

    def smaller(self, halvings: int) -> tuple[Image, UInt8[np.ndarray, "_ _"]]:
        """Return the frame halved so often, still times the share that is known, and that share, 0 to 255."""
        import cv2

        while len(self._smaller) <= halvings:
            levels, known = self._smaller[-1]
            height, width = (max(1, length // 2) for length in known.shape)
            cut = slice(0, 2 * height), slice(0, 2 * width)
            self._smaller.append(
                tuple(  # type: ignore[arg-type]
                    np.asarray(cv2.resize(one[cut], (width, height), interpolation=cv2.INTER_AREA))
                    for one in (levels, known)
                )
            )
        return self._smaller[halvings]

    def mean(self, halvings: int, part: Box) -> tuple[Float32[np.ndarray, "h w 3"], UInt8[np.ndarray, "h w"]]:
        """Return the mean of what is known in a part of the smaller frame, and the share that is."""
        levels, known = (one[part.slices] for one in self.smaller(halvings))
        share = np.maximum(known.astype(np.float32), np.float32(1)) / np.float32(255)
        return np.asarray(levels / share[..., None], np.float32), known


def put(image: Image, region: Region, levels: Image) -> None:
    """Write levels of a region's box over its pixels of an image, as `Region.paste`, in less time."""
    import cv2

    view = image[region.box.slices]
    if region.mask is None:
        view[...] = levels
    else:
        cv2.copyTo(levels, region.mask.view(np.uint8), view)


def halvings_to(length: float, wanted: float) -> int:
    """Return how often a length has to be halved to come near to another one, at most `MOST` times."""
    return max(0, min(MOST, round(math.log2(max(1.0, length / wanted)))))


def within(box: Box, halvings: int, more: int, shape: tuple[int, int]) -> Box:
    """Return a box of a frame in pixels of the smaller one, with `more` around it, clipped to its shape."""
    times, (height, width) = 2**halvings, shape
    left, top = max(0, box.x // times - more), max(0, box.y // times - more)
    right = min(width, -(-(box.x + box.w) // times) + more)
    bottom = min(height, -(-(box.y + box.h) // times) + more)
    left, top = min(left, width - 1), min(top, height - 1)
    return Box(left, top, max(1, right - left), max(1, bottom - top))


def in_smaller(pose: Similarity, halvings: int) -> Similarity:
    """Return a map from a frame as one from the smaller frame."""
    times = 2**halvings
    zero = pose.to(np.full((1, 2), (times - 1) / 2))[0]
    return Similarity(pose.scale * times, pose.angle, float(zero[0]), float(zero[1]))


def enlarged(small: np.ndarray, part: Box, halvings: int, box: Box) -> np.ndarray:
    """Return a picture of a part of the smaller frame, resampled to a box of the frame."""
    import cv2

    times, zero = 2**halvings, 0.5 - 2**halvings / 2
    x, y = ((at + zero) / times - start for at, start in ((box.x, part.x), (box.y, part.y)))
    matrix = np.array([[1 / times, 0, x], [0, 1 / times, y]])
    mode = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(small, matrix, (box.w, box.h), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    )

"""Boxes that the user gives, `x,y,w,h` in pixels of the oriented photo, and those of detections."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool
from dpveil.core.photo import Photo, check_unmasked
from dpveil.core.region import Box, Region, check_inside
from dpveil.core.region_origin import BOX, MASK, OBJECT, Origin
from dpveil.errors import InvalidParameter, NoRegion, RegionError
from dpveil.io.reading import read_mask
from dpveil.regions.finder import Finder
from dpveil.regions.growth import grown_box


@dataclass(frozen=True, eq=False)
class GivenMask(Finder):
    """One mask of the photo's size, true where protected."""

    mask: Bool[np.ndarray, "h w"]

    kind = MASK
    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        """Return "mask sha256:…", the `digest` of the mask."""
        return f"mask sha256:{digest(self.mask)}"

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the mask in its bounding box; raises `RegionError` for a photo of another size."""
        height, width = self.mask.shape
        if (height, width) != (photo.height, photo.width):
            raise RegionError(
                f"the mask is {width} × {height} pixels and the photo is {photo.width} × {photo.height}",
                hint="draw the mask on the photo as a viewer shows it, at full size",
            )
        rows, columns = np.flatnonzero(self.mask.any(axis=1)), np.flatnonzero(self.mask.any(axis=0))
        top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
        box = Box(int(left), int(top), int(right - left), int(bottom - top))
        return [Region(box, self.mask[box.slices].copy(), Origin(MASK))]


@dataclass(frozen=True, eq=False)
class GivenRegion(Finder):
    """A ready-made region, the same in every photo."""

    region: Region

    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        mask = self.region.mask
        return str(self.region.box) + ("" if mask is None else f" mask sha256:{digest(mask)}")

    def __call__(self, photo: Photo) -> list[Region]:
        check_inside(self.region.box, photo.width, photo.height)
        return [self.region]


def mask_of_file(path: str | Path) -> GivenMask:
    """Return the mask in an image file; raises as `dpveil.io.read_mask`, and `NoRegion` for an empty mask."""
    return _check_mask(read_mask(path))


def mask_of_array(array: np.ndarray) -> GivenMask:
    """Return the mask of an h × w array of booleans, or of uint8 levels of which 128 to 255 are protected.

    Raises `InvalidParameter` for any other array and `NoRegion` for an empty mask.
    """
    check_unmasked(array, "mask")
    if array.ndim != 2 or array.dtype not in (np.bool_, np.uint8) or not array.size:
        shape = "×".join(map(str, array.shape))
        raise InvalidParameter(
            "mask", f"{array.dtype} array of {shape}", "is not a mask", hint="give h×w booleans or uint8"
        )
    return _check_mask(array.copy() if array.dtype == np.bool_ else array >= 128)


def _check_mask(mask: Bool[np.ndarray, "h w"]) -> GivenMask:
    if not mask.any():
        raise NoRegion(
            "the mask has no pixel set", hint="paint what is to be protected white (levels 128 to 255)"
        )
    mask.flags.writeable = False
    return GivenMask(mask)


def digest(mask: Bool[np.ndarray, "h w"]) -> str:
    """Return SHA-256, in hexadecimal, of "width×height:" and the mask's bits, row by row, eight a byte."""
    height, width = mask.shape
    return hashlib.sha256(f"{width}×{height}:".encode() + np.packbits(mask).tobytes()).hexdigest()


HINT: Final = "write x,y,w,h in whole pixels, such as 40,52,112,112"
NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
OBJECTS: Final = f"{OBJECT}:"  # the beginning of a box around an object, such as object:40,52,112,112
PARTS: Final = 8
"""Least number of steps of the public grid along the longer side of a box that is rounded to it."""


@dataclass(frozen=True)
class GivenBox(Finder):
    """One box, the same in every photo: of a face for methods that replace faces, or around an `object`."""

    box: Box
    object: bool = False

    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        return f"{OBJECTS if self.object else ''}{self.box}"

    def __call__(self, photo: Photo) -> list[Region]:
        check_inside(self.box, photo.width, photo.height)
        return [Region(self.box, origin=Origin(OBJECT if self.object else BOX))]


def box_of_text(text: str) -> Box:
    """Return the box written as "x,y,w,h", such as "40,52,112,112"; raises `InvalidParameter`."""
    parts = text.split(",")
    if len(parts) != 4 or not all(NUMBER.fullmatch(part) for part in parts):
        raise InvalidParameter("box", text, "is not a box", hint=HINT)
    return Box(*map(int, parts))


def asked_box(text: str) -> GivenBox:
    """Return the box that a user wrote, "x,y,w,h" or "object:x,y,w,h"; raises `InvalidParameter`.

    >>> asked_box("object:40,52,112,112").object
    True
    """
    return GivenBox(box_of_text(text.removeprefix(OBJECTS)), text.startswith(OBJECTS))


def box_of_numbers(numbers: Sequence[object]) -> Box:
    """Return the box of four integers (x, y, w, h), Python's or NumPy's; raises `InvalidParameter`."""
    if len(numbers) != 4:
        raise InvalidParameter("box", str(tuple(numbers)), "is not a box", hint=HINT)
    whole = [int(number) for number in numbers if isinstance(number, Integral)]
    if len(whole) != 4 or any(isinstance(number, bool) for number in numbers):
        raise InvalidParameter("box", str(tuple(numbers)), "is not a box of whole numbers", hint=HINT)
    return Box(*whole)


def box_around(face: Sequence[float] | np.ndarray, photo: Photo, margin: Fraction) -> Box:
    """Return a detected box with its margin, in whole pixels, clipped to the photo; never empty."""
    x, y, w, h = map(float, face[:4])
    aside, above = w * float(margin), h * float(margin)
    left = min(max(0, math.floor(x - aside)), photo.width - 1)
    top = min(max(0, math.floor(y - above)), photo.height - 1)
    right = max(left + 1, min(photo.width, math.ceil(x + w + aside)))
    bottom = max(top + 1, min(photo.height, math.ceil(y + h + above)))
    return Box(left, top, right - left, bottom - top)


def rounded_box(box: Box, photo: Photo) -> Box:
    """Return a box rounded outward to a public grid, clipped to the photo.

    Its steps are the largest power of two of pixels that is at most an eighth of the longer side.

    >>> str(rounded_box(Box(37, 41, 90, 110), Photo(np.zeros((200, 200), np.uint8))))
    '32,40,96,112'
    """
    step = 1 << (max(1, max(box.w, box.h) // PARTS).bit_length() - 1)
    left, top = box.x // step * step, box.y // step * step
    right = min(photo.width, -(-(box.x + box.w) // step) * step)
    bottom = min(photo.height, -(-(box.y + box.h) // step) * step)
    return Box(left, top, right - left, bottom - top)


def oval_in(box: Box) -> Bool[np.ndarray, "h w"]:
    """Return which pixels of a box lie in the ellipse inscribed in it."""
    y, x = np.ogrid[: box.h, : box.w]
    inside = ((x + 0.5) / box.w - 0.5) ** 2 + ((y + 0.5) / box.h - 0.5) ** 2 <= 0.25
    return np.asarray(inside, np.bool_)


def box_within(shown: Box, margin: Fraction, photo: Photo) -> Box:
    """Return the least box that holds every detected box of which `shown` may be the box with this margin.

    It depends on nothing but what a release shows: `shown` as it grows to the blocks of the photo's format.

    >>> str(box_within(Box(20, 20, 160, 160), Fraction(3, 10), Photo(np.zeros((200, 200), np.uint8))))
    '49,49,102,102'
    """
    grid, unknown = photo.grid, (0, 0)
    if grid is not None:
        shown = grown_box(shown, grid, photo.width, photo.height)
        unknown = 2 * (grid.width - 1 + grid.margin), 2 * (grid.height - 1 + grid.margin)
    left, right = _least_span(shown.x, shown.x + shown.w, photo.width, margin, unknown[0])
    top, bottom = _least_span(shown.y, shown.y + shown.h, photo.height, margin, unknown[1])
    return Box(left, top, right - left, bottom - top)


def _least_span(start: int, stop: int, end: int, margin: Fraction, unknown: int) -> tuple[int, int]:
    # Where along an axis a detected box starts and stops at the most: its size is more than that of the box
    # with margins less two pixels, which rounding adds, and less what is unknown. A box that ends at the
    # photo's edge may have been clipped there.
    least = max(0, stop - start - 2 - unknown) * margin // (1 + 2 * margin)
    return start + least * (start > 0), stop - least * (stop < end)

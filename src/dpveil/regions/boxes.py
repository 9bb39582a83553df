"""Boxes that the user gives, `x,y,w,h` in pixels of the oriented photo, and those of detections."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Final

import numpy as np

from dpveil.core.origin import BOX, Origin
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region, check_inside
from dpveil.errors import InvalidParameter
from dpveil.regions.finder import Finder

HINT: Final = "write x,y,w,h in whole pixels, such as 40,52,112,112"
NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


@dataclass(frozen=True)
class GivenBox(Finder):
    """One box, the same in every photo."""

    box: Box

    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        """Return "x,y,w,h"."""
        return str(self.box)

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the box as a region, or raise `RegionError` if it is not wholly inside the photo."""
        check_inside(self.box, photo.width, photo.height)
        return [Region(self.box, origin=Origin(BOX))]


def box_of_text(text: str) -> Box:
    """Return the box written as "x,y,w,h", such as "40,52,112,112"; raises `InvalidParameter`."""
    parts = text.split(",")
    if len(parts) != 4 or not all(NUMBER.fullmatch(part) for part in parts):
        raise InvalidParameter("box", text, "is not a box", hint=HINT)
    return Box(*map(int, parts))


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

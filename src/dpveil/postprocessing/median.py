"""Median filter (Reilly & Fan 2021 §3.4 follows Snow with a 3 × 3 median)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import Value, check_count
from dpveil.errors import InvalidParameter
from dpveil.postprocessing.base import Step


class OddSide(Value[int | str, int]):
    """The side of a square window in pixels: odd, from 3 to 15."""

    def check(self, value: int | str) -> int:
        """Return `value` as an odd integer; raises `InvalidParameter`."""
        digits = isinstance(value, str) and value.isdecimal() and len(value) < 10
        side = check_count(int(value) if digits else value, self.name)
        if side % 2 == 0 or not 3 <= side <= 15:
            raise InvalidParameter(self.name, value, "is not an odd number from 3 to 15", hint="such as 3")
        return side


@dataclass(frozen=True)
class Median(Step):
    """Median filter of each channel over `side` × `side` pixels; `side` is odd, 3 to 15.

    Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.4.

    >>> Median(3)(np.array([[[9], [200], [9]]], np.uint8)).ravel().tolist()
    [9, 9, 9]
    """

    name: ClassVar[str] = "median"
    usual: ClassVar[str] = "median:3"
    summary: ClassVar[str] = "median filter; side of the window in pixels, odd"

    side: OddSide = OddSide()

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the filtered levels, channel by channel; the edge is replicated."""
        return np.asarray(cv2.medianBlur(np.ascontiguousarray(image), self.side), np.uint8).reshape(
            image.shape
        )

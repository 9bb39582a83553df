"""A head that was painted once: its picture, which frames show in another place and another light."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from jaxtyping import UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.video.light import Light

SIDES: Final = (64, 512)
"""Least and largest side of the head's frame in a layer, in pixels."""
BESIDE: Final = 0.5
"""How far a layer reaches beyond the frame to the left, to the right and below, in sides."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A head's `picture`, RGB and alpha, and the `light` in which it was painted.

    `side` is that of the head's frame in pixels; the picture reaches beyond it by `left` pixels.
    """

    picture: UInt8[np.ndarray, "h w 4"]
    side: int
    left: int
    light: Light

    @cached_property
    def _halves(self) -> list[UInt8[np.ndarray, "_ _ 4"]]:
        """The picture, and copies at 1/2, 1/4 and so on of its size."""
        import cv2

        found = [self.picture]
        while min(found[-1].shape[:2]) >= 32:
            height, width = (length // 2 * 2 for length in found[-1].shape[:2])
            cut = found[-1][:height, :width]
            found.append(np.asarray(cv2.resize(cut, (width // 2, height // 2), interpolation=cv2.INTER_AREA)))
        return found

    def on(self, head: Similarity, box: Box) -> UInt8[np.ndarray, "h w 4"]:
        """Return the head in a box of a picture that `head` maps to a frame with a side of 1."""
        import cv2

        length = 1 / head.scale
        level = max(0, min(len(self._halves) - 1, math.floor(math.log2(max(1.0, self.side / length)) + 0.4)))
        picture, times = self._halves[level], self.side / 2**level
        matrix = head.inverse.matrix
        matrix[:, :2] /= times
        # the centre of the picture's first pixel, in the head's frame
        zero = np.array([0.5 - self.left / 2**level, 0.5]) / times - 0.5
        matrix[:, 2] = head.back(zero[None])[0] - (box.x, box.y)
        shown = cv2.warpAffine(
            picture, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        )
        return np.asarray(shown)

    def facts(self) -> dict[str, Any]:
        """Return all but the picture as JSON."""
        return {"side": self.side, "left": self.left, "light": self.light.facts()}

    @classmethod
    def of(cls, picture: UInt8[np.ndarray, "h w 4"], facts: Mapping[str, Any]) -> Self:
        """Return a layer that was stored; raises a built-in error for what none can be."""
        side, left = int(facts["side"]), int(facts["left"])
        if picture.shape[2] != 4 or not SIDES[0] <= side <= SIDES[1] or not 0 <= left <= SIDES[1]:
            raise ValueError("layer")
        return cls(picture, side, left, Light.of(facts["light"]))

"""Pixels that a method painted over with one level, as Snow does, are filled from those that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.attacks.base import Background, View
from dpveil.attacks.wrapped import Undo, Wrapped

SPREAD: Final = 1.5
"""Standard deviation of the window over which shown pixels are averaged, in pixels."""
SHARE: Final = 0.1
"""Share of a picture that one level takes at least, so that it is taken for paint."""
LEAST: Final = 1e-3
"""Least weight of shown pixels around one that is filled."""
Image = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True)
class Filled(Wrapped):
    """Takes the most frequent level of a release for paint, and fills it by the means of pixels around.

    A pixel that has this level by itself is filled, too. Where no level takes a tenth of the picture, the
    release stays as it is. Source: Reilly & Fan 2021, algorithm 4, whose level tells which pixels it shows.
    """

    name: ClassVar[str] = "filled"
    summary: ClassVar[str] = "painted pixels filled from those around, then another attack"

    def undo(self, background: Background) -> Undo:
        """Return what fills releases; nothing is learnt."""
        return _filled


def _filled(views: Sequence[View]) -> tuple[View, ...]:
    return tuple(replace(view, image=filled(view.image)) for view in views)


def filled(image: Image) -> Image:
    """Return a picture with its most frequent level, in each channel, filled from the pixels around."""
    return np.stack([_plane(np.ascontiguousarray(one)) for one in np.moveaxis(image, 2, 0)], axis=2)


def _plane(levels: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    counts = np.bincount(levels.ravel(), minlength=256)
    paint = int(counts.argmax())
    if not SHARE <= counts[paint] / levels.size < 1:
        return levels
    shown = (levels != paint).astype(np.float32)
    sums = cv2.GaussianBlur(levels * shown, (0, 0), SPREAD)
    weight = cv2.GaussianBlur(shown, (0, 0), SPREAD)
    found = np.where(weight > LEAST, sums / np.maximum(weight, LEAST), paint)
    return np.where(shown > 0, levels, np.rint(found)).astype(np.uint8)

"""Attacks that never look at what was replaced: the place of the regions, and what lies outside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import cv2
import numpy as np

from dpveil.attacks.base import CONTEXT, PLACEMENT, View
from dpveil.attacks.patches import largest_box
from dpveil.attacks.vectors import VectorAttack, Vectors

SIDE: Final = 16
"""Side of the thumbnail of the outside, in pixels."""
BINS: Final = 6
"""Bins of lightness and of both colours."""
COLOURS: Final = [(0.0, 255.0), (96.0, 160.0), (96.0, 160.0)]
"""Their ranges, in OpenCV's L*a*b* of 8 bits."""
HELD: Final = 0.05
"""Least share of a thumbnail's pixel that is seen, by which its mean is divided."""
CELL: Final = 5
"""Numbers of a head's cell in a certificate."""
FACTS: Final = 5 + CELL
"""Numbers of a placement: the logarithm of its area, its middle, its height and width, and the cell."""


@dataclass(frozen=True)
class Placement(VectorAttack):
    """Knows where and how large people are in their photos, from the box of the largest region."""

    name: ClassVar[str] = "placement"
    summary: ClassVar[str] = "place and size of the largest region, as the certificate states them"
    sees: ClassVar[tuple[str, ...]] = (PLACEMENT,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return place and size relative to the photo; NaN without a region."""
        return np.array([_placed(view) for view in views], np.float64).reshape(len(views), FACTS)


@dataclass(frozen=True)
class Context(VectorAttack):
    """Knows the surroundings of people: a thumbnail, colours and gradients of what was not replaced.

    Nothing under the regions is read.
    """

    name: ClassVar[str] = "context"
    summary: ClassVar[str] = "thumbnail, colours and gradients of what lies outside the regions"
    sees: ClassVar[tuple[str, ...]] = (CONTEXT,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the outside as numbers, 0 where nothing of a photo is outside."""
        return np.stack([_outside(view) for view in views])


def _placed(view: View) -> list[float]:
    box, cell = largest_box(view), _cell(view)
    if box is None:
        return [float("nan")] * FACTS
    height, width = view.hidden.shape
    middle = ((box.x + box.w / 2) / width, (box.y + box.h / 2) / height)
    area = float(np.log(box.w * box.h / (width * height)))
    return [area, *middle, box.h / height, box.w / width, *cell]


def _cell(view: View) -> list[float]:
    """Return the cell of the head's placement as the certificate states it: place, size, roll and turn."""
    regions: Any = (view.certificate or {}).get("regions") or ()
    cells = [one.get("origin", {}).get("cell") for one in regions]
    known = [cell for cell in cells if isinstance(cell, list | tuple) and len(cell) == CELL]
    return [float(part) for part in known[0]] if known else [0.0] * CELL


def _outside(view: View) -> np.ndarray:
    open_, image = ~view.hidden, _coloured(view.image)
    seen = np.where(open_[..., None], image, 0).astype(np.float32)
    weight = cv2.resize(open_.astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small = cv2.resize(seen, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small = np.where(weight[..., None] > HELD, small / np.maximum(weight, HELD)[..., None], 0) / 255
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)[open_]
    counts, _ = np.histogramdd(lab, BINS, COLOURS)
    colours = np.sqrt(counts.ravel() / max(1.0, counts.sum()))
    return np.concatenate([small.ravel(), colours, _gradients(image, view.hidden)]).astype(np.float64)


def _gradients(image: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return histograms of oriented gradients of the photo with its regions filled from around them."""
    if hidden.all():
        return np.zeros(_hog().getDescriptorSize())
    known = np.where(hidden[..., None], np.uint8(0), image)
    filled = cv2.inpaint(known, hidden.astype(np.uint8), 3, cv2.INPAINT_TELEA)
    small = cv2.resize(filled, (64, 64), interpolation=cv2.INTER_AREA)
    return np.asarray(_hog().compute(small)).ravel()


def _hog() -> Any:
    return cv2.HOGDescriptor((64, 64), (16, 16), (8, 8), (8, 8), 8)


def _coloured(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))

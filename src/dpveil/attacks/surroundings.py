"""Attacks that never look at what was replaced: the place of the regions, and what lies outside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dpveil.attacks.base import CONTEXT, PLACEMENT, Background, View
from dpveil.attacks.patches import largest_box
from dpveil.attacks.preprocessing import Undo, Wrapped
from dpveil.attacks.vectors import VectorAttack, Vectors
from dpveil.core.array_types import Bool, Float64, UInt8
from dpveil.errors import InvalidParameter
from dpveil.opencv import cv2

PAINT: Final = 128  # the level of painted pixels


@dataclass(frozen=True)
class GreyedRegions(Wrapped):
    """Sees releases, and the clean photos, with their regions in one grey: outline and surroundings are left.

    `outside(network)` is a small network that learns people from their surroundings.
    """

    name: ClassVar[str] = "outside"
    summary: ClassVar[str] = "regions painted grey, then another attack on what lies outside"
    sees: ClassVar[tuple[str, ...]] = (PLACEMENT, CONTEXT)
    photos: ClassVar[bool] = True

    @property
    def reads(self) -> tuple[str, ...]:
        """The context, and the outline of what was painted."""
        return self.sees

    def undo(self, background: Background) -> Undo:
        return blank_views


def blank_views(views: Sequence[View]) -> tuple[View, ...]:
    """Return views of all of the photo, whose hidden pixels have one level."""

    def blank(view: View) -> View:
        image = np.where(view.hidden[..., None], np.uint8(PAINT), view.image)
        return replace(view, image=image, hidden=np.zeros_like(view.hidden), more=blank_views(view.more))

    return tuple(map(blank, views))


SIDE: Final = 16  # side of the thumbnail of the outside, in pixels
BINS: Final = 6  # bins of lightness and of both colours
COLOURS: Final = [(0.0, 255.0), (96.0, 160.0), (96.0, 160.0)]  # their ranges, in OpenCV's L*a*b* of 8 bits
HELD: Final = 0.05  # least share of a thumbnail's pixel that is seen, by which its mean is divided
WEIGHTS: Final = {"thumbnail": 1.0, "colours": 6.0, "gradients": 1.0}
"""By how much the parts are multiplied, so that their variances are of one size."""
CELL: Final = 5  # numbers of a head's cell in a certificate
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
        return np.array([_location_features(view) for view in views], np.float64).reshape(len(views), FACTS)


@dataclass(frozen=True)
class Context(VectorAttack):
    """Knows the surroundings of people: a thumbnail, colours and gradients of what was not replaced.

    `part` is "all" of them, or one. Nothing under the regions is read. Raises `InvalidParameter`.
    """

    name: ClassVar[str] = "context"
    summary: ClassVar[str] = "thumbnail, colours and gradients of what lies outside the regions"
    sees: ClassVar[tuple[str, ...]] = (CONTEXT,)

    part: str = "all"

    def __post_init__(self) -> None:
        if self.part not in ("all", *WEIGHTS):
            raise InvalidParameter("part", self.part, "is no part of the context", hint=", ".join(WEIGHTS))

    @classmethod
    def of(cls, text: str) -> Context:
        """Return the attack by this part."""
        return cls(text)

    @property
    def label(self) -> str:
        return self.name if self.part == "all" else f"{self.name}:{self.part}"

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the outside as numbers, 0 where nothing of a photo is outside."""
        kinds = tuple(WEIGHTS) if self.part == "all" else (self.part,)
        found = [background_features(view.image, view.hidden) for view in views]
        return np.stack([np.concatenate([WEIGHTS[name] * one[name] for name in kinds]) for one in found])


def _location_features(view: View) -> list[float]:
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


def background_features(
    image: UInt8[np.ndarray, "h w c"], hidden: Bool[np.ndarray, "h w"]
) -> dict[str, Float64[np.ndarray, " d"]]:
    """Return what tells of a photo without its hidden pixels: its `thumbnail`, `colours` and `gradients`.

    The thumbnail is 0 to 1, and 0 where all is hidden; colours are square roots of shares.
    """
    open_, image = ~hidden, np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))
    seen = np.where(open_[..., None], image, 0).astype(np.float32)
    weight = cv2.resize(open_.astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small = cv2.resize(seen, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small = np.where(weight[..., None] > HELD, small / np.maximum(weight, HELD)[..., None], 0) / 255
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)[open_]
    counts, _ = np.histogramdd(lab, BINS, COLOURS)
    colours = np.sqrt(counts.ravel() / max(1.0, counts.sum()))
    parts = {"thumbnail": small.ravel(), "colours": colours, "gradients": _gradients(image, hidden)}
    return {name: part.astype(np.float64) for name, part in parts.items()}


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

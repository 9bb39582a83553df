"""A released face and its place, from which a head is made."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.geometry.head_frame import HEAD, AnyFrame, HeadFrame, between, pixel_grid
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.spectacles import Dressed, Step
from dpveil.faces.geometry.turn import Turn, background, turn_of

Shown = tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w 3"]]


class Figure(ABC):
    """A released head that is no picture yet: it depends on nothing private but what a draw released."""

    @abstractmethod
    def after(self, step: Step) -> Figure:
        """Return the same, followed by a step wherever it is drawn."""

    @abstractmethod
    def on(
        self,
        pose: Similarity,
        frame: AnyFrame,
        box: Box,
        outside: UInt8[np.ndarray, "H W c"],
        hidden: Bool[np.ndarray, "H W"],
    ) -> Shown:
        """Return how much of the head shows in a box of the photo (0 to 1), and the head there, in sRGB.

        `pose` takes the photo to `frame`. `outside` is the photo with 0 under `hidden`, which is all that may
        be seen of it.
        """

    @abstractmethod
    def alone(self, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
        """Return a portrait of this size, in sRGB."""

    @abstractmethod
    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the head in a canonical crop, in sRGB."""


NEAR: Final = (1.0, 1.12)
"""Enlargements of a head's ellipse between which it passes into the heads around it."""
COARSE: Final = 192
"""Side of the frame in which that passage is computed, in pixels."""
Released = UInt8[np.ndarray, "_ _ _"] | Figure | Dressed


@dataclass(frozen=True, eq=False)
class Part:
    """A released crop or figure and its place; independent of the photo's pixels.

    `yaw` is that to which a crop is turned, in degrees; None leaves it as it is. `style` is that of
    spectacles, if it wears any. `number` chooses hair, clothes and wall.
    """

    region: Region
    pose: Similarity
    frame: Frame
    crop: UInt8[np.ndarray, "s s 3"] | Figure
    number: int
    toned: bool = False
    protect: str = "head"
    yaw: int | None = None
    style: str | None = None

    @cached_property
    def turn(self) -> Turn | None:
        """How the crop is turned; None if it stays as it is."""
        if isinstance(self.crop, Figure) or self.yaw is None:
            return None
        return turn_of(self.crop, self.frame, self.yaw)

    def near(self, box: Box) -> Float32[np.ndarray, "h w"]:
        """Return 1 on the head in a box of the photo, and 0 beyond its surroundings."""
        import cv2

        small = HeadFrame(COARSE)
        share = np.clip((NEAR[1] - HEAD.far(pixel_grid(COARSE))) / (NEAR[1] - NEAR[0]), 0, 1)
        matrix = between(self.pose, self.frame, small).inverse.matrix
        matrix[:, 2] -= box.x, box.y
        return np.asarray(cv2.warpAffine(share.astype(np.float32), matrix, (box.w, box.h)))

    @property
    def row(self) -> float:
        """The row of the head's middle, in pixels of the photo; it may lie beyond the edge."""
        return float(self.pose.back(np.array([[self.frame.size / 2] * 2]))[0, 1])

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of the photo."""
        return self.frame.unit / self.pose.scale

    def behind(
        self, outside: UInt8[np.ndarray, "H W c"], hidden: Bool[np.ndarray, "H W"]
    ) -> UInt8[np.ndarray, "s s 3"] | None:
        """Return a guess at the background behind the head, in its frame; None if nothing of it is seen."""
        return background(outside, hidden, self.pose, self.frame)


def number_of(released: Released) -> int:
    """Return a number of a released crop or figure, so that each face has hair and clothes of its own."""
    crop = released.face if isinstance(released, Dressed) else released
    return zlib.crc32(repr(crop).encode() if isinstance(crop, Figure) else crop.tobytes())


def part_of(place: Placed, released: Released, *, toned: bool, turned: bool, yaw: int | None = None) -> Part:
    """Return a released head and its place, turned to `yaw` or else to its cell's.

    Raises `InvalidParameter` for a crop that does not fit.
    """
    crop, style = (released.face, released.style) if isinstance(released, Dressed) else (released, None)
    side, cell = place.frame.size, place.cell
    if yaw is None and turned and cell is not None and cell.yaw is not None:
        yaw = YAW * cell.yaw
    if not isinstance(crop, Figure) and (crop.dtype != np.uint8 or crop.shape != (side, side, 3)):
        shape = f"is not uint8 {side} × {side} × 3"
        raise InvalidParameter("crop", f"{crop.dtype} {crop.shape}", shape, hint="as released")
    return Part(
        place.region, place.pose, place.frame, crop, number_of(crop), toned, place.protect, yaw, style
    )

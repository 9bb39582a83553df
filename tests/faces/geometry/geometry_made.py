"""Places and pictures that the geometry's tests make, without any detector."""

from __future__ import annotations

import math

import numpy as np

from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.faces.drawn_face import CropFace, HeadFace, Released
from dpveil.faces.geometry.align import Frame, Similarity, of_points
from dpveil.faces.geometry.cell import PITCHES, RATIO, ROLLS, Cell
from dpveil.faces.geometry.place import Placed
from dpveil_audit.faces.made_heads import made_heads

EYES_OF_ASTRONAUT = np.array([[204.0, 102.5], [246.0, 104.5]])
FACE_OF_ASTRONAUT = Box(177, 65, 88, 108)
HEADS = made_heads()


def textured(height: int, width: int, seed: int = 0, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


def scale_of(length: float) -> int:
    """The scale whose head frame has a side of nearly so many pixels."""
    return round(math.log(length) / math.log(RATIO[0] / RATIO[1]))


def cell_near(length: float, degrees: float, across: float, down: float, yaw: int | None = None) -> Cell:
    """A cell with a frame of so many pixels, turned by so many degrees, by widths of the head."""
    at = round(across * PITCHES), round(down * PITCHES)
    return Cell(scale_of(length), round(degrees * ROLLS / 360), *at, yaw)


def released(place: Placed, seed: int = 9, level: int | None = None) -> Released:
    """A head of the gallery, or a crop, of one level if given, where an inner face is replaced."""
    if place.protect == "face":
        side = place.frame.size
        crop = textured(side, side, seed) if level is None else np.full((side, side, 3), level, np.uint8)
        return CropFace(crop, place.frame)
    head = HeadFace(HEADS, np.arange(len(HEADS)), seed)
    return head if level is None else head.after(lambda levels: np.full_like(levels, level))


def placed(
    box: Box,
    *,
    frame: Frame | None = None,
    centre: tuple[float, float] | None = None,
    unit: float | None = None,
    angle: float = 0.0,
    mask: np.ndarray | None = None,
    protect: str = "head",
) -> Placed:
    """A face whose UTKFace crop has a side of `unit` pixels and its middle at `centre`, turned by `angle`."""
    frame = Frame() if frame is None else frame
    unit = 0.5 * box.w if unit is None else unit
    x, y = centre or (box.x + box.w / 2, box.y + 0.55 * box.h)
    parts = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    c, s = np.cos(angle), np.sin(angle)
    in_photo = (parts - 0.5) * unit @ np.array([[c, s], [-s, c]]) + (x, y)
    pose: Similarity = of_points(in_photo, frame.pixels(parts))
    return Placed(Region(box, mask, Origin("face", number=1, found=True)), pose, frame, protect=protect)

"""Places and pictures that the geometry's tests make, without any detector."""

from __future__ import annotations

import numpy as np

from dpveil.core.origin import Origin
from dpveil.core.region import Box, Region
from dpveil.faces.geometry import Frame, Placed, Similarity
from dpveil.faces.geometry.align import of_points

EYES_OF_ASTRONAUT = np.array([[204.0, 102.5], [246.0, 104.5]])
FACE_OF_ASTRONAUT = Box(177, 65, 88, 108)


def textured(height: int, width: int, seed: int = 0, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


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

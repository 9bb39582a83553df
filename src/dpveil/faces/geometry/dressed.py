"""Spectacles on a head in its place: over the face, and over what a network painted beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import BLUR, FIVE, Frame, Similarity, of_points
from dpveil.faces.geometry.figure import Step
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.spectacles import layer, with_glasses
from dpveil.faces.geometry.turn import MIDDLE, Turn, landmarks_at

AHEAD: Final = -0.07
"""How far the plane of the lenses is in front of the eyes' inner corners, in units of UTKFace's crop."""
HINGE: Final = 0.87
"""Column beyond which a temple is hidden on the far side of a turned head; mirrored on the left."""
FINE: Final = 256
"""Side in which spectacles are drawn, in pixels, for a frame without margin."""


@dataclass(frozen=True, eq=False)
class Dressed:
    """A released face in canonical position without spectacles, and the style of those that it wears."""

    face: UInt8[np.ndarray, "s s 3"]
    style: str

    @property
    def crop(self) -> UInt8[np.ndarray, "s s 3"]:
        """The face with its spectacles."""
        return with_glasses(self.face, self.style)

    def after(self, step: Step) -> Dressed:
        """Return the same, with a step applied to the face."""
        return replace(self, face=step(self.face))


def put_on(
    shown: UInt8[np.ndarray, "h w c"], style: str, pose: Similarity, frame: Frame, box: Box, turn: Turn | None
) -> UInt8[np.ndarray, "h w c"]:
    """Return a head in a box of the photo with spectacles, turned as the head is.

    `pose` maps the photo to the `frame` of the face. Depends on the place and on what is shown alone.
    """
    import cv2

    fine = Frame(FINE)
    kept, added = layer(style, FINE)
    planes, there = [1 - kept, added], between(pose, frame, fine)
    if there.scale > 1:
        planes = [cv2.GaussianBlur(plane, (0, 0), BLUR * math.sqrt(there.scale**2 - 1)) for plane in planes]
    matrix = there.inverse.matrix
    if turn is not None:
        planes = [_near(plane, turn.wanted) for plane in planes]
        matrix = matrix @ _square(_turned(math.radians(turn.wanted), fine))
    matrix[:, 2] -= box.x, box.y
    lost, own = (cv2.warpAffine(plane, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR) for plane in planes)
    if shown.shape[2] == 1:
        own = cv2.cvtColor(own, cv2.COLOR_RGB2GRAY)[..., None]
    levels = np.rint(shown * (1 - lost[..., None]) + own)
    worn: UInt8[np.ndarray, "h w c"] = np.clip(levels, 0, 255).astype(np.uint8)
    return worn


def _near(plane: np.ndarray, yaw: int) -> np.ndarray:
    """Return a plane without the temple on the far side of a head that is turned by `yaw`."""
    across = (np.arange(len(plane)) + 0.5) / len(plane) - MIDDLE
    seen = across * np.sign(yaw) < HINGE - MIDDLE
    near: np.ndarray = plane * seen.reshape(1, -1, *(1,) * (plane.ndim - 2)).astype(np.float32)
    return near


def _turned(yaw: float, frame: Frame) -> Float64[np.ndarray, "2 3"]:
    """Return what a turn by `yaw` does to positions in the plane of spectacles, in pixels of a frame."""
    flat = np.eye(2, 3)
    flat[0] = math.cos(yaw), 0, MIDDLE * (1 - math.cos(yaw)) + AHEAD * math.sin(yaw)
    parts = of_points(landmarks_at(yaw), np.array(FIVE)).matrix @ _square(flat)
    ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    zero, right, down = frame.pixels(ends @ parts[:, :2].T + parts[:, 2])
    base = frame.pixels(ends)
    linear = np.stack([right - zero, down - zero], axis=1) / (base[1, 0] - base[0, 0])
    return np.column_stack([linear, zero - linear @ base[0]])


def _square(matrix: Float64[np.ndarray, "2 3"]) -> Float64[np.ndarray, "3 3"]:
    return np.vstack([matrix, [0.0, 0.0, 1.0]])

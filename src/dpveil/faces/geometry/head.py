"""Ellipses around a head, in units of UTKFace's crop."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Frame, Points, Similarity

Ellipse = tuple[float, float, float, float]
"""Centre (x, y) and half axes."""


def inside(ellipse: Ellipse, parts: Float64[np.ndarray, "... 2"]) -> Bool[np.ndarray, ...]:
    """Return whether each position (x, y) lies within an ellipse, in any unit that both share."""
    x, y, a, b = ellipse
    return np.asarray(((parts[..., 0] - x) / a) ** 2 + ((parts[..., 1] - y) / b) ** 2 <= 1)


def grid(frame: Frame) -> Float64[np.ndarray, "s s 2"]:
    """Return the position (x, y) of every pixel of a frame, in units of UTKFace's crop."""
    along = (np.arange(frame.size) + 0.5) / frame.size * (1 + 2 * frame.margin) - frame.margin
    return np.stack(np.meshgrid(along, along), axis=-1)


def outline(ellipse: Ellipse, steps: int = 72) -> Points:
    """Return `steps` points on an ellipse."""
    x, y, a, b = ellipse
    angle = np.arange(steps) * (2 * math.pi / steps)
    return np.stack([x + a * np.cos(angle), y + b * np.sin(angle)], axis=1)


def bounds(points: Points, width: int, height: int) -> Box | None:
    """Return the bounding box of points, in whole pixels, clipped to the photo; None if it is empty."""
    left, top = np.floor(points.min(axis=0) + 0.5 - 1e-6).astype(int).tolist()
    right, bottom = np.ceil(points.max(axis=0) + 0.5 + 1e-6).astype(int).tolist()
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, width), min(bottom, height)
    return Box(left, top, right - left, bottom - top) if left < right and top < bottom else None


@runtime_checkable
class AnyFrame(Protocol):
    """A frame for faces whose pixels have positions in units of UTKFace's crop."""

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of this frame."""

    def pixels(self, parts: Points) -> Points:
        """Return positions in pixels of this frame, from positions in units of UTKFace's crop."""


def between(pose: Similarity, frame: AnyFrame, other: AnyFrame) -> Similarity:
    """Return the similarity to the frame `other` that corresponds to `pose`, which is one to `frame`."""
    ratio = other.unit / frame.unit
    zero = np.zeros((1, 2))
    move = other.pixels(zero)[0] - ratio * frame.pixels(zero)[0]
    return Similarity(pose.scale * ratio, pose.angle, ratio * pose.x + move[0], ratio * pose.y + move[1])

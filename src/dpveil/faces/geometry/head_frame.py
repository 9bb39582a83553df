"""The frame in which heads are completed, and the public shapes of replaced heads in it.

Positions are (x, y) in units of the frame's side. The eyes are at (0.42, 0.446) and (0.58, 0.446).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

import numpy as np

from dpveil.core.array_types import Bool, Float64
from dpveil.core.region import Box
from dpveil.faces.geometry.align import Frame, Points, Similarity

FRAME_SIDE: Final = 2.378125  # the frame's side, in units of UTKFace's crop
LEFT: Final = -0.6963125
TOP: Final = -0.75594375  # the frame's left and top, in units of UTKFace's crop
MIDDLE: Final = (0.50, 0.47)  # centre of the head and of its shapes
OVAL: Final = (0.50, 0.522, 0.132, 0.176)
"""Ellipse of the released face, from brows to mouth: centre and half axes."""
EDGE: Final = 1e-6  # how far beyond its edge a shape holds pixels, so that rounding errors move none
STRIP: Final = 64  # rows of a mask that are computed at once, so that it takes no more memory than the photo
Parts = Float64[np.ndarray, "... 2"]


@dataclass(frozen=True)
class HeadFrame:
    """The frame with a side of `size` pixels; an `AnyFrame`, as `Frame` is."""

    size: int

    @property
    def unit(self) -> float:
        return self.size / FRAME_SIDE

    def pixels(self, parts: Parts) -> Parts:
        """Return positions in pixels of this frame, from positions in units of UTKFace's crop."""
        at: Parts = frame_parts(parts) * self.size - 0.5
        return at


def frame_parts(parts: Parts) -> Parts:
    """Return positions in units of the frame's side, from positions in units of UTKFace's crop."""
    moved: Parts = (parts - (LEFT, TOP)) / FRAME_SIDE
    return moved


def pixel_grid(size: int) -> Float64[np.ndarray, "s s 2"]:
    """Return the position (x, y) of every pixel of a frame of `size` × `size` pixels."""
    along = (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(along, along), axis=-1)


@dataclass(frozen=True)
class Shape:
    """A public shape around `MIDDLE`: an ellipse, and a neck below it.

    `half` are the half axes; `neck` is half its width, its upper and its lower end, from `MIDDLE`. `left` and
    `right` stretch the two halves of the shape sideways, `below` stretches the lower half of its ellipse
    downwards.
    """

    half: tuple[float, float]
    neck: tuple[float, float, float] | None = None
    left: float = 1.0
    right: float = 1.0
    below: float = 1.0

    def holds(self, at: Parts) -> Bool[np.ndarray, ...]:
        x, y = self._unstretched(at)
        inside = np.asarray((x / self.half[0]) ** 2 + (self._raised(y) / self.half[1]) ** 2 <= 1 + EDGE)
        if self.neck is not None:
            half, top, bottom = self.neck
            inside |= (np.abs(x) <= half + EDGE) & (y >= top) & (y <= bottom + EDGE)
        return inside

    def far(self, at: Parts) -> Float64[np.ndarray, ...]:
        """Return by how much the ellipse would have to be enlarged to reach each position."""
        x, y = self._unstretched(at)
        return np.asarray(np.hypot(x / self.half[0], self._raised(y) / self.half[1]))

    def larger(self, factor: float) -> Shape:
        neck = self.neck and (self.neck[0] * factor, self.neck[1] * factor, self.neck[2] * factor)
        return replace(self, half=(self.half[0] * factor, self.half[1] * factor), neck=neck)

    def region(
        self, head: Similarity, width: int, height: int, *, box: Box | None = None, masked: bool = True
    ) -> tuple[Box, Bool[np.ndarray, "h w"] | None] | None:
        """Return the pixels of the shape and of `box` in a photo of this size: a bounding box, and a mask.

        `head` maps the photo to a frame with a side of 1. Without `masked`, the whole
        bounding box is meant. None if nothing of it lies in the photo.
        """
        ends = head.back(self._ends(head.angle) - 0.5)
        if box is not None:
            corners = np.array([[box.x, box.y], [box.x + box.w - 1, box.y + box.h - 1]], np.float64)
            ends = np.concatenate([ends, corners])
        found = bounds(ends, width, height)
        if found is None:
            return None
        if not masked:
            return found, None
        across, down = found.x + np.arange(found.w), found.y + np.arange(found.h)
        mask = np.empty((found.h, found.w), np.bool_)
        for top in range(0, found.h, STRIP):
            rows = slice(top, top + STRIP)
            at = [m[0] * across + (m[1] * down[rows] + m[2] + 0.5)[:, None] for m in head.matrix]
            mask[rows] = self.holds(np.stack(at, axis=-1))
        if box is not None:
            mask[box.y - found.y :, box.x - found.x :][: box.h, : box.w] = True
        return (found, mask) if mask.any() else None

    def _unstretched(self, at: Parts) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y from `MIDDLE`, as if no half were stretched."""
        x, y = at[..., 0] - MIDDLE[0], at[..., 1] - MIDDLE[1]
        if (self.left, self.right) != (1, 1):
            x = x / np.where(x < 0, self.left, self.right)
        return x, y

    def _raised(self, y: np.ndarray) -> np.ndarray:
        """Return positions down from `MIDDLE`, as if the lower half were not stretched."""
        return y if self.below == 1 else y / np.where(y > 0, self.below, 1)

    def _ends(self, angle: float) -> Points:
        """Return the outermost points of the shape in a photo that is turned by `angle` into its frame."""
        half, _, low = self.neck or (0.0, 0.0, 0.0)
        ends = [(-half * self.left, low), (half * self.right, low)]
        for way in range(4):
            x, y = math.cos(angle + way * math.pi / 2), math.sin(angle + way * math.pi / 2)
            a = self.half[0] * (self.left if x < 0 else self.right)
            b = self.half[1] * (self.below if y > 0 else 1)
            far = math.hypot(a * x, b * y)
            ends.append((a * a * x / far, b * b * y / far))
        points: Points = np.array(ends) + MIDDLE
        return points


HEAD: Final = Shape((0.248, 0.328), below=0.88)  # a head with its hair, and a short neck: collars stay
AROUND: Final = Shape((0.416, 0.464))  # all around any head, with hair, ears and neck
INNER: Final = Shape((0.150, 0.160), below=1.25)
"""The inner face, from above the brows to below the lower lip."""


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

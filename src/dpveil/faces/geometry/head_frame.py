"""The frame in which heads are completed, and the public shape of what is hidden in it.

Positions are (x, y) in parts of the frame's side. Eyes lie at (0.40, 0.44) and (0.60, 0.44).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head import AnyFrame, between, bounds, outline

SIDE: Final = 1.9025
"""The frame's side, in parts of UTKFace's crop."""
LEFT: Final = -0.4585
TOP: Final = -0.5324
"""Where the frame begins, in parts of UTKFace's crop."""
HEAD: Final = (0.50, 0.47, 0.31, 0.41)
"""The head with its hair: centre and half axes of an ellipse."""
NECK: Final = (0.185, 0.70, 0.95)
"""Half the width of the neck, and where it begins and ends."""
AROUND: Final = 1.06
"""How much larger what is replaced is than the head."""
ROUNDING: Final = 1.02
"""The same beside a face's box, so that no row of pixels is lost."""
OVAL: Final = (0.50, 0.535, 0.165, 0.22)
"""Where a released face goes: brows, eyes, nose and mouth."""

Parts = Float64[np.ndarray, "... 2"]


@dataclass(frozen=True)
class HeadFrame:
    """The frame with `size` pixels along a side; it gives positions as `Frame` does."""

    size: int

    @property
    def unit(self) -> float:
        """Pixels along a side of UTKFace's crop."""
        return self.size / SIDE

    def pixels(self, parts: Parts) -> Parts:
        """Return positions in the frame, in pixels, of positions in parts of UTKFace's crop."""
        at: Parts = frame_parts(parts) * self.size - 0.5
        return at


def frame_parts(parts: Parts) -> Parts:
    """Return positions in the frame, of positions in parts of UTKFace's crop."""
    moved: Parts = (parts - (LEFT, TOP)) / SIDE
    return moved


def crop_parts(at: Parts) -> Parts:
    """Return positions in parts of UTKFace's crop, of positions in the frame."""
    moved: Parts = at * SIDE + (LEFT, TOP)
    return moved


def pixel_grid(size: int) -> Float64[np.ndarray, "s s 2"]:
    """Return the position of the centre of every pixel of a frame of this size."""
    along = (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(along, along), axis=-1)


def in_ellipse(ellipse: tuple[float, float, float, float], at: Parts) -> Bool[np.ndarray, ...]:
    """Return which positions lie within an ellipse."""
    x, y, a, b = ellipse
    return np.asarray(((at[..., 0] - x) / a) ** 2 + ((at[..., 1] - y) / b) ** 2 <= 1)


def in_head(at: Parts) -> Bool[np.ndarray, ...]:
    """Return which positions lie in the head or its neck: what a release replaces."""
    half, top, bottom = NECK
    neck = (np.abs(at[..., 0] - HEAD[0]) <= half) & (at[..., 1] >= top) & (at[..., 1] <= bottom)
    return np.asarray(in_ellipse(HEAD, at) | neck)


def head_shape(
    pose: Similarity, frame: AnyFrame, box: Box, width: int, height: int, *, whole: bool = False
) -> tuple[Box, Bool[np.ndarray, "h w"]] | None:
    """Return the box and mask of the head with its neck that `pose` takes to `frame`, clipped to a photo.

    The shape is public, and the same for everybody. It follows from the pose, and is larger where that does
    not hold the ellipse in `box`, a face's; with `whole` the corners of the box are added. None where nothing
    of it lies in the photo.
    """
    head = between(pose, frame, HeadFrame(1))
    x, y, a, b = HEAD
    middle, half = (box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5), (box.w / 2, box.h / 2)
    far = np.hypot(*((head.to(outline((*middle, *half))) + 0.5 - (x, y)) / (a, b)).T)
    larger = max(AROUND, ROUNDING * float(far.max()))
    reach = np.array([[-a, -b], [a, -b], [a, NECK[2] - y], [-a, NECK[2] - y]]) * larger + (x, y) - 0.5
    corners = np.array([[box.x, box.y], [box.x + box.w - 1, box.y + box.h - 1]], np.float64)[: 2 * whole]
    found = bounds(np.concatenate([head.back(reach), corners]), width, height)
    if found is None:
        return None
    across, down = found.x + np.arange(found.w), found.y + np.arange(found.h)
    at = [m[0] * across + (m[1] * down + m[2] + 0.5)[:, None] for m in head.matrix]
    mask = in_head(np.stack([(one - c) / larger + c for one, c in zip(at, (x, y), strict=True)], axis=-1))
    if whole:
        mask[box.y - found.y :, box.x - found.x :][: box.h, : box.w] = True
    return (found, mask) if mask.any() else None

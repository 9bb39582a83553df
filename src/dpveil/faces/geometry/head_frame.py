"""The frame in which heads are completed, and the public shape of the replaced head in it.

Positions are (x, y) in units of the frame's side. The eyes are at (0.40, 0.44) and (0.60, 0.44).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head import AnyFrame, between, bounds, inside, outline

SIDE: Final = 1.9025
"""The frame's side, in units of UTKFace's crop."""
LEFT: Final = -0.4585
TOP: Final = -0.5324
"""The frame's left and top, in units of UTKFace's crop."""
HEAD: Final = (0.50, 0.47, 0.31, 0.41)
"""Ellipse of the head with its hair: centre and half axes."""
NECK: Final = (0.185, 0.70, 0.95)
"""Half the width of the neck, and its upper and lower end."""
AROUND: Final = 1.06
"""Least factor by which the replaced shape is larger than HEAD."""
ROUNDING: Final = 1.02
"""Factor by which it is larger than needed to hold a face's box, so that rounding loses no row of pixels."""
OVAL: Final = (0.50, 0.535, 0.165, 0.22)
"""Ellipse of the released face, from brows to mouth: centre and half axes."""

Parts = Float64[np.ndarray, "... 2"]


@dataclass(frozen=True)
class HeadFrame:
    """The frame with a side of `size` pixels; an `AnyFrame`, as `Frame` is."""

    size: int

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of this frame."""
        return self.size / SIDE

    def pixels(self, parts: Parts) -> Parts:
        """Return positions in pixels of this frame, from positions in units of UTKFace's crop."""
        at: Parts = frame_parts(parts) * self.size - 0.5
        return at


def frame_parts(parts: Parts) -> Parts:
    """Return positions in units of the frame's side, from positions in units of UTKFace's crop."""
    moved: Parts = (parts - (LEFT, TOP)) / SIDE
    return moved


def pixel_grid(size: int) -> Float64[np.ndarray, "s s 2"]:
    """Return the position (x, y) of every pixel of a frame of `size` × `size` pixels."""
    along = (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(along, along), axis=-1)


def in_head(at: Parts) -> Bool[np.ndarray, ...]:
    """Return whether each position lies in the head or its neck, which a release replaces."""
    half, top, bottom = NECK
    neck = (np.abs(at[..., 0] - HEAD[0]) <= half) & (at[..., 1] >= top) & (at[..., 1] <= bottom)
    return np.asarray(inside(HEAD, at) | neck)


def head_shape(
    pose: Similarity, frame: AnyFrame, box: Box, width: int, height: int, *, whole: bool = False
) -> tuple[Box, Bool[np.ndarray, "h w"]] | None:
    """Return the bounding box and mask of a head with its neck, clipped to a photo of this size in pixels.

    `pose` maps the photo to `frame`. The shape is public and the same for everybody; it is enlarged until it
    holds the ellipse inscribed in `box`, the face's. With `whole`, all pixels of the box are added. None if
    nothing of it lies in the photo.
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

"""Recombination: released faces take the place of the protected pixels (Croft thesis, figure 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.geometry.align import BLUR, Frame, Similarity
from dpveil.geometry.fill import fill
from dpveil.geometry.head import grid
from dpveil.geometry.place import Placed

AROUND: Final = 0.25
"""How much around regions the filling sees, in parts of their longer side."""
SEAM: Final = 0.08
"""Width of the seam within a region's edge, in parts of UTKFace's crop."""
NEEDED: Final = 0.45
"""Margin that a crop has to have to hold a head; a smaller one is carried on from its own pixels."""
SHOWN: Final = ((0.493, 0.37, 0.50, 0.70), (0.493, 0.75, 0.40, 0.52))
"""What shows of a crop, head and neck: centres and half axes, in parts of UTKFace's crop."""
SOFT: Final = 0.09
"""Width of the edge of what shows, in parts of the half axes."""

@dataclass(frozen=True, eq=False)
class Part:
    """A released crop and where it goes: nothing here reads a photo."""

    region: Region
    pose: Similarity
    frame: Frame
    crop: UInt8[np.ndarray, "s s 3"]

    @property
    def unit(self) -> float:
        """Pixels of the photo along a side of UTKFace's crop."""
        return self.frame.size / (1 + 2 * self.frame.margin) / self.pose.scale


def recombine(
    image: UInt8[np.ndarray, "H W c"], places: Sequence[Placed], crops: Sequence[UInt8[np.ndarray, "s s 3"]]
) -> UInt8[np.ndarray, "H W c"]:
    """Return the photo with every region replaced by its released crop, and what is left of it filled in.

    `image` is uint8, h × w × (1 or 3); `crops` are released, uint8 of each place's own frame. No pixel under
    any region is read: all are set to 0 first. Pixels outside the regions stay as they are, bit for bit. Of
    faces that overlap the larger lies on top. Raises `InvalidParameter` where crops do not fit.

    *Why it costs nothing.* The output is a function of the pixels outside, of the regions and poses (in the
    clear, in words, by `Placed.in_the_clear`), and of the crops, which were released: post-processing. ∎
    """
    if len(places) != len(crops):
        raise InvalidParameter("crops", len(crops), f"are not {len(places)}", hint="one for every face")
    for place, crop in zip(places, crops, strict=True):
        side = place.frame.size
        if crop.dtype != np.uint8 or crop.shape != (side, side, 3):
            raise InvalidParameter(
                "crop", f"{crop.dtype} {crop.shape}", f"is not uint8 {side} × {side} × 3", hint="as released"
            )
    parts = [Part(p.region, p.pose, p.frame, crop) for p, crop in zip(places, crops, strict=True)]
    hidden = np.zeros(image.shape[:2], np.bool_)
    for part in parts:
        view = hidden[part.region.box.slices]
        view |= True if part.region.mask is None else part.region.mask
    out = np.where(hidden[..., None], np.uint8(0), image)
    outside = out.copy()
    for group in _groups(parts, image.shape[1], image.shape[0]):
        _put(out, outside, hidden, group)
    return out


def _groups(parts: Sequence[Part], width: int, height: int) -> list[list[Part]]:
    """Return the parts in groups whose boxes overlap, each from the smallest face to the largest."""
    groups: list[list[Part]] = []
    for part in parts:
        near = [g for g in groups if any(part.region.box.overlaps(other.region.box) for other in g)]
        joined = [part, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda part: part.unit) for group in groups]


def _put(
    out: UInt8[np.ndarray, "H W c"],
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    group: Sequence[Part],
) -> None:
    """Write one group of faces that overlap into `out`, within their regions."""
    view = _around([part.region.box for part in group], *hidden.shape)
    known, hole = outside[view.slices], hidden[view.slices]
    filled = fill(known, hole)
    drawn = [_drawn(part, view, known.shape[2]) for part in group]
    mine = np.zeros(hole.shape, np.bool_)
    for region, alpha, face in drawn:
        filled += alpha[..., None] * (face - filled)
        mine |= region
    levels = np.clip(np.rint(filled), 0, 255).astype(np.uint8)
    np.copyto(out[view.slices], levels, where=mine[..., None])


def _around(boxes: Sequence[Box], height: int, width: int) -> Box:
    """Return the box around boxes, wider by `AROUND`, within the photo."""
    left, top = min(b.x for b in boxes), min(b.y for b in boxes)
    right, bottom = max(b.x + b.w for b in boxes), max(b.y + b.h for b in boxes)
    more = math.ceil(AROUND * max(right - left, bottom - top)) + 4
    left, top, right, bottom = max(0, left - more), max(0, top - more), min(width, right + more), min(height, bottom + more)
    return Box(left, top, right - left, bottom - top)


def _drawn(
    part: Part, view: Box, channels: int
) -> tuple[Bool[np.ndarray, "h w"], Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w c"]]:
    """Return a region, how much of the crop shows in it (0 to 1), and the crop where it goes, in `view`."""
    import cv2

    size = (view.w, view.h)
    region = np.zeros((view.h, view.w), np.bool_)
    box = part.region.box
    inner = region[box.y - view.y : box.y - view.y + box.h, box.x - view.x : box.x - view.x + box.w]
    inner[...] = True if part.region.mask is None else part.region.mask
    levels, frame, pose = _whole(part)
    levels = levels if channels == 3 else cv2.cvtColor(levels, cv2.COLOR_RGB2GRAY)[..., None]
    if pose.scale > 1:
        levels = cv2.GaussianBlur(levels, (0, 0), BLUR * math.sqrt(pose.scale**2 - 1))
    matrix = pose.inverse.matrix
    matrix[:, 2] -= view.x, view.y
    mode = cv2.INTER_LINEAR if pose.scale > 1 else cv2.INTER_CUBIC
    face = cv2.warpAffine(levels, matrix, size, flags=mode, borderMode=cv2.BORDER_REPLICATE)
    shown = cv2.warpAffine(_shown(frame), matrix, size, flags=cv2.INTER_LINEAR)
    deep = cv2.distanceTransform(region.astype(np.uint8), cv2.DIST_L2, 3)
    seam = np.clip(deep / max(1.0, SEAM * part.unit), 0, 1)
    return region, np.minimum(shown, seam).astype(np.float32), face.reshape(view.h, view.w, channels)


def _whole(part: Part) -> tuple[Float32[np.ndarray, "t t 3"], Frame, Similarity]:
    """Return the crop, carried on from its own pixels as far as a head reaches, with its frame and pose."""
    frame = part.frame
    one = frame.size / (1 + 2 * frame.margin)
    more = max(0, math.ceil((NEEDED - frame.margin) * one))
    if not more:
        return part.crop.astype(np.float32), frame, part.pose
    size = frame.size + 2 * more
    known, hole = np.zeros((size, size, 3), np.uint8), np.ones((size, size), np.bool_)
    inner = slice(more, more + frame.size)
    known[inner, inner], hole[inner, inner] = part.crop, False
    levels = fill(known, hole)
    levels[inner, inner] = part.crop
    pose = Similarity(part.pose.scale, part.pose.angle, part.pose.x + more, part.pose.y + more)
    return levels, Frame(size, (size / one - 1) / 2), pose


def _shown(frame: Frame) -> Float32[np.ndarray, "s s"]:
    """Return how much of a crop shows at each of its pixels: all of a head, nothing beyond."""
    parts = grid(frame)
    far = np.minimum(*(np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b) for x, y, a, b in SHOWN))
    soft = np.clip((1 - far) / SOFT, 0, 1)
    edge = np.clip(np.minimum(np.arange(frame.size), np.arange(frame.size)[::-1]) / (0.06 * frame.size), 0, 1)
    return np.asarray(soft * soft * (3 - 2 * soft) * np.minimum(edge[:, None], edge), np.float32)

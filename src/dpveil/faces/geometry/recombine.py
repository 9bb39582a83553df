"""Recombination: released faces replace the protected pixels (Croft thesis, figure 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region, check_inside
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.colour_match import ColourMatch, match_of, skin_below
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.figure import Figure
from dpveil.faces.geometry.fill import Filling, Telea, fill
from dpveil.faces.geometry.hair_and_neck import with_hair_and_neck
from dpveil.faces.geometry.head import grid
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.tone import toned as brought_to

SEAM: Final = 0.08
"""Width of the blend inside a region's edge, in units of UTKFace's crop."""
FINE_SEAM: Final = 0.03
"""The same if a network completed the head."""
NEEDED: Final = 0.45
"""Least `Frame.margin` of a crop that holds a head; a crop with less is extended from its own pixels."""
SHOWN: Final = ((0.493, 0.38, 0.51, 0.63), (0.493, 0.80, 0.30, 0.46))
"""Ellipses of the visible part of a crop, head and neck: centres and half axes, in units of UTKFace's
crop."""
SOFT: Final = 0.09
"""Width of their soft edge, relative to the half axes."""


@dataclass(frozen=True, eq=False)
class Part:
    """A released crop or figure and its place; independent of the photo's pixels."""

    region: Region
    pose: Similarity
    frame: Frame
    crop: UInt8[np.ndarray, "s s 3"] | Figure
    toned: bool = False

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of the photo."""
        return self.frame.unit / self.pose.scale


def recombine(
    image: UInt8[np.ndarray, "H W c"],
    places: Sequence[Placed],
    crops: Sequence[UInt8[np.ndarray, "_ _ _"] | Figure],
    *,
    filling: Filling | None = None,
    toned: bool = False,
) -> UInt8[np.ndarray, "H W c"]:
    """Return the photo with every region replaced by its released face and a filled background.

    `image` is uint8, h × w × (1 or 3); `crops` are released, uint8 in each place's frame, or figures, which
    are drawn in place. No pixel under any region is read: all are set to 0 first. Pixels outside the regions
    do not change. Of overlapping faces, the larger is on top, or the lower. `filling` is `Telea` by default.
    With `toned`, faces stay as light as they are; else they are brought to the tone of skin that is seen
    below them, if any is. Raises `InvalidParameter` if crops do not fit, `RegionError` if a region extends
    beyond the photo, and the errors of the filling.

    *Why it costs nothing.* The output is a function of the pixels outside, of the regions and poses (in the
    clear, as `Placed.in_the_clear` states), and of the crops, which were released: post-processing. ∎
    """
    if len(places) != len(crops):
        raise InvalidParameter("crops", len(crops), f"are not {len(places)}", hint="one for every face")
    for place, crop in zip(places, crops, strict=True):
        side = place.frame.size
        if not isinstance(crop, Figure) and (crop.dtype != np.uint8 or crop.shape != (side, side, 3)):
            shape = f"is not uint8 {side} × {side} × 3"
            raise InvalidParameter("crop", f"{crop.dtype} {crop.shape}", shape, hint="as released")
        check_inside(place.region.box, image.shape[1], image.shape[0])
    parts = [Part(p.region, p.pose, p.frame, crop, toned) for p, crop in zip(places, crops, strict=True)]
    hidden = np.zeros(image.shape[:2], np.bool_)
    for part in parts:
        view = hidden[part.region.box.slices]
        view |= True if part.region.mask is None else part.region.mask
    out = image.copy()
    for part in parts:
        view, own = out[part.region.box.slices], hidden[part.region.box.slices]
        np.multiply(view, ~own[..., None], out=view)
    outside, match = out.copy(), match_of(out, hidden)
    for group in _groups(parts, image.shape[1], image.shape[0]):
        _put(out, outside, hidden, group, match, filling or Telea())
    return out


def _groups(parts: Sequence[Part], width: int, height: int) -> list[list[Part]]:
    """Return the parts grouped by overlap of their boxes; each group from the smallest face to the
    largest, and from the highest to the lowest of the same size.
    """
    groups: list[list[Part]] = []
    for part in parts:
        near = [g for g in groups if any(part.region.box.overlaps(other.region.box) for other in g)]
        joined = [part, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda part: (part.unit, part.region.box.y)) for group in groups]


def _put(
    out: UInt8[np.ndarray, "H W c"],
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    group: Sequence[Part],
    match: ColourMatch,
    filling: Filling,
) -> None:
    """Write one group of overlapping faces into `out`, within their regions.

    If nothing around them is known, the background is the mean colour of the largest face.
    """
    import cv2

    view = _around([part.region.box for part in group], filling.around, *hidden.shape)
    inner = _around([part.region.box for part in group], 0.0, *hidden.shape)
    known, hole = outside[view.slices], hidden[view.slices]
    drawn = [(part.region, *_head(part, outside, hidden, match, filling)) for part in group]
    if hole.all():
        own = drawn[-1][2].reshape(-1, known.shape[2]).mean(axis=0)
        filled = np.broadcast_to(np.rint(own).astype(np.uint8), (inner.h, inner.w, known.shape[2])).copy()
    else:
        filled = filling(known, hole, Box(inner.x - view.x, inner.y - view.y, inner.w, inner.h))
    for region, alpha, face in drawn:
        box = region.box
        own = filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w]
        own[...] = cv2.blendLinear(face, own, alpha, 1 - alpha).reshape(own.shape)
    for region, _, _ in drawn:
        box = region.box
        region.paste(out, filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w])


def _around(boxes: Sequence[Box], wider: float, height: int, width: int) -> Box:
    """Return the bounding box of boxes, extended by `wider` times its longer side, clipped to the photo."""
    left, top = min(b.x for b in boxes), min(b.y for b in boxes)
    right, bottom = max(b.x + b.w for b in boxes), max(b.y + b.h for b in boxes)
    more = math.ceil(wider * max(right - left, bottom - top))
    left, top = max(0, left - more), max(0, top - more)
    return Box(left, top, min(width, right + more) - left, min(height, bottom + more) - top)


def _head(
    part: Part,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    match: ColourMatch,
    filling: Filling,
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return alpha (0 to 1) and levels of a head in the region's box: completed by a network, or drawn."""
    import cv2

    channels, mask, box = outside.shape[2], part.region.mask, part.region.box
    painted, seam, crop, toned = None, SEAM, part.crop, part.toned
    if isinstance(crop, Figure):
        return _figure(crop, part, outside, hidden, match)
    if not toned and (seen := skin_below(outside, hidden, part.pose, part.frame)) is not None:
        crop, toned = np.rint(brought_to(crop, part.frame, seen)).astype(np.uint8), True
    if isinstance(filling, Completion):
        painted = filling.complete(outside, hidden, part.pose, crop, part.frame, toned=toned)
    if painted is None:
        shown, face = _drawn(part, crop, channels, match)
    else:
        seam, (shown, face) = FINE_SEAM, painted.on(box, channels)
    hole = np.ones((box.h, box.w), np.uint8) if mask is None else mask.astype(np.uint8)
    deep = cv2.distanceTransform(np.pad(hole, 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    alpha = np.minimum(shown, deep / np.float32(max(1.0, seam * part.unit)))
    return np.asarray(alpha, np.float32), face


def _figure(
    figure: Figure,
    part: Part,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    match: ColourMatch,
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return alpha (0 to 1) and levels of a figure in the region's box, in the photo's light."""
    import cv2

    shown, face = figure.on(part.pose, part.frame, part.region.box, outside, hidden)
    if outside.shape[2] == 1:
        face = cv2.cvtColor(face, cv2.COLOR_RGB2GRAY)[..., None]
    if match.colour < 1 or match.bright < 255:
        face = np.rint(match(face.astype(np.float32))).astype(np.uint8)
    return shown, face


def _drawn(
    part: Part, crop: UInt8[np.ndarray, "s s 3"], channels: int, match: ColourMatch
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return alpha (0 to 1) and levels of the crop, resampled to the region's box."""
    import cv2

    box = part.region.box
    levels, frame, pose = _whole(part, crop)
    levels = levels if channels == 3 else cv2.cvtColor(levels, cv2.COLOR_RGB2GRAY)[..., None]
    levels = match(levels)
    if pose.scale > 1:
        levels = cv2.GaussianBlur(levels, (0, 0), BLUR * math.sqrt(pose.scale**2 - 1))
    matrix = pose.inverse.matrix
    matrix[:, 2] -= box.x, box.y
    rounded = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    mode = cv2.INTER_LINEAR if pose.scale > 1 else cv2.INTER_CUBIC
    face = cv2.warpAffine(rounded, matrix, (box.w, box.h), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    shown = cv2.warpAffine(_shown(frame), matrix, (box.w, box.h), flags=cv2.INTER_LINEAR)
    return np.asarray(shown, np.float32), np.asarray(face, np.uint8).reshape(box.h, box.w, channels)


def _whole(
    part: Part, crop: UInt8[np.ndarray, "s s 3"]
) -> tuple[Float32[np.ndarray, "t t 3"], Frame, Similarity]:
    """Return the crop, extended from its own pixels to hold a whole head, with its new frame and pose."""
    frame = part.frame
    one = frame.unit
    more = max(0, math.ceil((NEEDED - frame.margin) * one))
    if not more:
        return crop.astype(np.float32), frame, part.pose
    size = frame.size + 2 * more
    known, hole = np.zeros((size, size, 3), np.uint8), np.ones((size, size), np.bool_)
    inner = slice(more, more + frame.size)
    known[inner, inner], hole[inner, inner] = crop, False
    levels = fill(known, hole).astype(np.float32)
    levels[inner, inner] = crop
    pose = Similarity(part.pose.scale, part.pose.angle, part.pose.x + more, part.pose.y + more)
    wide = Frame(size, (size / one - 1) / 2)
    return with_hair_and_neck(levels, wide, crop, frame), wide, pose


def _shown(frame: Frame) -> Float32[np.ndarray, "s s"]:
    """Return the alpha of each pixel of a crop: 1 in the head, 0 outside it."""
    parts = grid(frame)
    far = np.minimum(*(np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b) for x, y, a, b in SHOWN))
    soft = np.clip((1 - far) / SOFT, 0, 1)
    edge = np.clip(np.minimum(np.arange(frame.size), np.arange(frame.size)[::-1]) / (0.06 * frame.size), 0, 1)
    return np.asarray(soft * soft * (3 - 2 * soft) * np.minimum(edge[:, None], edge), np.float32)

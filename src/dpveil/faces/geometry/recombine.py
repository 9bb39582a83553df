"""Recombination: released faces replace the protected pixels (Croft thesis, figure 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region, check_inside
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.colour_match import AS_IT_IS, ColourMatch, match_of, skin_below
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.drawn_crop import drawn_head
from dpveil.faces.geometry.dressed import Dressed, put_on
from dpveil.faces.geometry.figure import Figure
from dpveil.faces.geometry.fill import Filling, Telea
from dpveil.faces.geometry.grain import grained
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import HEAD, HeadFrame, pixel_grid
from dpveil.faces.geometry.inner_face import Inner, drawn_face, light_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import FACE
from dpveil.faces.geometry.seam import FINE_SEAM, SEAM, faded, met
from dpveil.faces.geometry.threads import each
from dpveil.faces.geometry.tone import toned as brought_to
from dpveil.faces.geometry.turn import Turn, background, turn_of

NEAR: Final = (1.0, 1.12)
"""Enlargements of a head's ellipse between which it passes into the heads around it."""
COARSE: Final = 192
"""Side of the frame in which that passage is computed, in pixels."""
GROWN: Final = 1.25
"""Pixels of a region around an inner face, in squares of the side of UTKFace's crop, from which on a network
paints what lies between face and edge: a fifth more than the shape has, as of small faces in a JPEG."""

Released = UInt8[np.ndarray, "_ _ _"] | Figure | Dressed


@dataclass(frozen=True, eq=False)
class Part:
    """A released crop or figure and its place; independent of the photo's pixels.

    `yaw` is the class of the cell to which a crop is turned; None leaves it as it is. `style` is that of
    spectacles, if it wears any.
    """

    region: Region
    pose: Similarity
    frame: Frame
    crop: UInt8[np.ndarray, "s s 3"] | Figure
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

    @property
    def near(self) -> Float32[np.ndarray, "h w"]:
        """1 on the head in the region's box, and 0 beyond its surroundings."""
        import cv2

        box, small = self.region.box, HeadFrame(COARSE)
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


def recombine(
    image: UInt8[np.ndarray, "H W c"],
    places: Sequence[Placed],
    crops: Sequence[Released],
    *,
    filling: Filling | None = None,
    toned: bool = False,
    turned: bool = False,
) -> UInt8[np.ndarray, "H W c"]:
    """Return the photo with every region replaced by its released face and a filled background.

    `image` is uint8, h × w × (1 or 3); `crops` are released, uint8 in each place's frame, alone or with
    spectacles, or figures, which are drawn in place. No pixel under any region is read: all are set to 0
    first. Pixels outside the regions do not change. Of overlapping faces, the larger is on top, or the lower.
    `filling` is `Telea` by default. With `toned`, faces stay as light as they are; else they are brought to
    the tone of skin that is seen below them, if any is. With `turned`, crops are turned to the yaw of their
    cell. Raises `InvalidParameter` if crops do not fit, `RegionError` if a region extends beyond the photo,
    and the errors of the filling.

    *Why it costs nothing.* The output is a function of the pixels outside, of the regions and poses (in the
    clear, as `Placed.in_the_clear` states), and of the crops, which were released: post-processing. ∎
    """
    if len(places) != len(crops):
        raise InvalidParameter("crops", len(crops), f"are not {len(places)}", hint="one for every face")
    for place in places:
        check_inside(place.region.box, image.shape[1], image.shape[0])
    parts = [_part(*each, toned=toned, turned=turned) for each in zip(places, crops, strict=True)]
    hidden = np.zeros(image.shape[:2], np.bool_)
    for part in parts:
        view = hidden[part.region.box.slices]
        view |= True if part.region.mask is None else part.region.mask
    out = image.copy()
    for part in parts:
        view, own = out[part.region.box.slices], hidden[part.region.box.slices]
        np.multiply(view, ~own[..., None], out=view)
    outside, match = out.copy(), match_of(out, hidden)
    groups, around = _groups(parts, image.shape[1], image.shape[0]), filling or Telea()
    each(lambda group: _put(out, outside, hidden, group, match, around), groups)
    return out


def _part(place: Placed, released: Released, *, toned: bool, turned: bool) -> Part:
    """Return a released head and its place; raises `InvalidParameter` for a crop that does not fit."""
    crop, style = (released.face, released.style) if isinstance(released, Dressed) else (released, None)
    side, yaw = place.frame.size, place.cell.yaw if turned and place.cell else None
    if not isinstance(crop, Figure) and (crop.dtype != np.uint8 or crop.shape != (side, side, 3)):
        shape = f"is not uint8 {side} × {side} × 3"
        raise InvalidParameter("crop", f"{crop.dtype} {crop.shape}", shape, hint="as released")
    return Part(place.region, place.pose, place.frame, crop, toned, place.protect, yaw, style)


def _groups(parts: Sequence[Part], width: int, height: int) -> list[list[Part]]:
    """Return the parts grouped by overlap of their boxes; each group from the smallest face to the
    largest, and from the highest to the lowest of the same size.
    """
    groups: list[list[Part]] = []
    for part in parts:
        near = [g for g in groups if any(part.region.box.overlaps(other.region.box) for other in g)]
        joined = [part, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda part: (part.unit, part.row)) for group in groups]


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
    drawn = [(part.region, *_worn(part, *_head(part, outside, hidden, match, filling))) for part in group]
    if hole.all():
        own = drawn[-1][2].reshape(-1, known.shape[2]).mean(axis=0)
        filled = np.broadcast_to(np.rint(own).astype(np.uint8), (inner.h, inner.w, known.shape[2])).copy()
    else:
        filled = filling(known, hole, Box(inner.x - view.x, inner.y - view.y, inner.w, inner.h))
    shown = [(region.box, alpha, face) for region, alpha, face in drawn]
    pairs = list(zip(group, shown, strict=True))
    if len(group) > 1 and isinstance(filling, Completion):  # heads over what was painted around each of them
        shown += [(box, alpha * part.near, face) for part, (box, alpha, face) in pairs]
    for box, alpha, face in shown:
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
    channels, box, crop, toned = outside.shape[2], part.region.box, part.crop, part.toned
    if isinstance(crop, Figure):
        return _figure(crop, part, outside, hidden, match)
    if part.protect == FACE:
        return _inner(part, crop, outside, hidden, match, filling)
    if not toned and (seen := skin_below(outside, hidden, part.pose, part.frame)) is not None:
        crop, toned = np.rint(brought_to(crop, part.frame, seen)).astype(np.uint8), True
    painted = None

    def turned(face: UInt8[np.ndarray, "s s 3"]) -> UInt8[np.ndarray, "s s 3"]:
        behind = part.behind(outside, hidden)
        return face if part.turn is None else part.turn.before(face, part.frame, behind)

    if isinstance(filling, Completion):
        turn = None if part.turn is None else turned
        painted = filling.complete(outside, hidden, part.pose, crop, part.frame, toned=toned, turn=turn)
    if painted is None:
        shown, face = drawn_head(crop, part.frame, part.pose, part.turn).on(box, channels, match)
        return faded(shown, part.region, SEAM * part.unit, hidden.shape), face
    shown, face = painted.on(box, channels)
    if painted.alone:
        return faded(shown, part.region, SEAM * part.unit, hidden.shape), face
    return _finished(shown, face, part, outside, hidden)


def _worn(
    part: Part, alpha: Float32[np.ndarray, "h w"], face: UInt8[np.ndarray, "h w c"]
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return a head with its spectacles, if it wears any."""
    if part.style is None:
        return alpha, face
    return alpha, put_on(face, part.style, part.pose, part.frame, part.region.box, part.turn)


def _inner(
    part: Part,
    crop: UInt8[np.ndarray, "s s 3"],
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
    match: ColourMatch,
    filling: Filling,
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return the same of a face whose head stays: in the light of the skin around it."""
    box, frame, pose = part.region.box, part.frame, part.pose
    crop = np.clip(np.rint(match(crop.astype(np.float32))), 0, 255).astype(np.uint8)
    own = Inner.of(crop, frame, part.turn)
    light, painted = light_of(own, pose, part.region, outside, hidden), None
    if isinstance(filling, Completion) and part.region.pixels > GROWN * part.unit**2:
        lit = own.before(None if part.turn is None else part.behind(outside, hidden), light)
        painted = filling.complete(outside, hidden, pose, lit, frame, around=False)
    channels = outside.shape[2]
    if painted is None:
        head = drawn_head(crop, frame, pose, part.turn)
        shown, face = drawn_face(own, head, pose, light).on(box, channels, AS_IT_IS)
    else:
        shown, face = painted.on(box, channels)
    return _finished(shown, face, part, outside, hidden)


def _finished(
    shown: Float32[np.ndarray, "h w"],
    face: UInt8[np.ndarray, "h w c"],
    part: Part,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
    """Return alpha and levels of a head in the photo's colours at the edge, with its grain."""
    alpha = faded(shown, part.region, FINE_SEAM * part.unit, hidden.shape)
    box = part.region.box
    near = met(face, box, outside, hidden, part.unit, skin=part.protect == FACE)
    return alpha, grained(near, alpha, box, outside, hidden)


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

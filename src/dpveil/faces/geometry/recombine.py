"""Recombination: released faces replace the protected pixels (Croft thesis, figure 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Shaped, UInt8

from dpveil.core.region import Box, Region, check_inside
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.colour_match import AS_IT_IS, ColourMatch, match_of, skin_below
from dpveil.faces.geometry.completion import Completion, wall
from dpveil.faces.geometry.drawn_crop import drawn_head
from dpveil.faces.geometry.fill import Filling, Telea
from dpveil.faces.geometry.inner_face import Inner, drawn_face, light_of
from dpveil.faces.geometry.part import Figure, Part, Released, part_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import FACE
from dpveil.faces.geometry.seam import FINE_SEAM, SEAM, faded, met
from dpveil.faces.geometry.spectacles import put_on
from dpveil.faces.geometry.threads import each
from dpveil.faces.geometry.tone import toned as brought_to
from dpveil.noise.bits import SeededBits

TILE: Final = 128
"""Side of the pattern of grain, in pixels, which repeats."""
FINE: Final = 0.6
"""Standard deviation of the blur of that pattern, in pixels: cameras and JPEG correlate neighbours."""
DETAIL: Final = 1.0
"""Standard deviation of the blur, in pixels, beyond whose resolution detail counts as grain."""
QUIET: Final = 0.15
"""Quantile of that detail, which edges and hair hardly change."""
AROUND: Final = 0.3
"""Width of the surroundings in which grain is measured, relative to the longer side of the region's box."""
ENOUGH: Final = 64
"""Least number of pixels in which grain is measured."""
MOST: Final = 4.0
"""Largest standard deviation of added grain, in levels."""
SHARE: Final = 0.7
"""Factor for the grain that is added: cameras have finer grain than the pattern, with more detail at the same
strength."""


def grained(
    face: UInt8[np.ndarray, "h w c"],
    shown: Float32[np.ndarray, "h w"],
    box: Box,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
) -> UInt8[np.ndarray, "h w c"]:
    """Return the levels of a face in a region's box with the grain that the photo has around it.

    `shown` is the alpha of the face. No pixel under `hidden` is read; the pattern is the same in every
    release.
    """
    import cv2

    more = round(AROUND * max(box.w, box.h))
    rows = slice(max(0, box.y - more), box.y + box.h + more)
    columns = slice(max(0, box.x - more), box.x + box.w + more)
    window = np.ones((9, 9), np.uint8)
    apart = cv2.dilate(hidden[rows, columns].astype(np.uint8), window) == 0
    wanted, own = _grain(outside[rows, columns], apart), _grain(face, shown > 0.9)
    if wanted is None or own is None or wanted <= own:
        return face
    tile = _pattern()
    missing = SHARE * float(np.sqrt(wanted**2 - own**2))
    needed = min(MOST, missing / (_grain(tile[..., None], tile < np.inf) or 1.0))
    down, across = ((start + np.arange(length)) % TILE for start, length in ((box.y, box.h), (box.x, box.w)))
    noise = np.float32(needed) * tile[np.ix_(down, across)]
    return np.clip(np.rint(face + noise[..., None]), 0, 255).astype(np.uint8)


def _grain(levels: Shaped[np.ndarray, "h w c"], where: Bool[np.ndarray, "h w"]) -> float | None:
    """Return the `QUIET` detail of some pixels, in levels; None if they are few."""
    import cv2

    if np.count_nonzero(where) < ENOUGH:
        return None
    count = levels.shape[2]
    light = cv2.transform(levels.astype(np.float32), np.full((1, count), 1 / count, np.float32))
    detail = np.abs(light - cv2.GaussianBlur(light, (0, 0), DETAIL))
    return float(np.quantile(detail[where], QUIET))


@lru_cache(maxsize=1)
def _pattern() -> Float32[np.ndarray, "128 128"]:
    """Return public noise of standard deviation 1."""
    import cv2

    draws = SeededBits(1, "grain").words(TILE * TILE).view(np.uint8).reshape(8, TILE, TILE)
    noise = draws.astype(np.float32).mean(axis=0) - np.float32(127.5)
    noise = cv2.GaussianBlur(np.tile(noise, (3, 3)), (0, 0), FINE)[TILE : 2 * TILE, TILE : 2 * TILE]
    return np.asarray(noise / noise.std(), np.float32)


GROWN: Final = 1.25
"""Pixels of a region around an inner face, in squares of the side of UTKFace's crop, from which on a network
paints what lies between face and edge: a fifth more than the shape has, as of small faces in a JPEG."""
Head = tuple[Box, Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]


def recombine(
    image: UInt8[np.ndarray, "H W c"],
    places: Sequence[Placed],
    crops: Sequence[Released],
    *,
    filling: Filling | None = None,
    toned: bool = False,
    turned: bool = False,
    yaw: int | None = None,
    numbers: Sequence[int] | None = None,
) -> UInt8[np.ndarray, "H W c"]:
    """Return the photo with every region replaced by its released face and a filled background.

    `image` is uint8, h × w × (1 or 3); `crops` are released, uint8 in each place's frame, alone or with
    spectacles, or figures, which are drawn in place. No pixel under any region is read: all are set to 0
    first. Pixels outside the regions do not change. Of overlapping faces, the larger is on top, or the lower.
    `filling` is `Telea` by default. With `toned`, faces stay as light as they are; else they are brought to
    the tone of skin that is seen below them, if any is. With `turned`, crops are turned to the yaw of their
    cell, or to `yaw`, in degrees. `numbers` choose hair, clothes and wall of each, as `Part.number` does
    without. Raises `InvalidParameter` if crops do not fit, `RegionError` if a region extends beyond the
    photo, and the errors of the filling.

    *Why it costs nothing.* The output is a function of the pixels outside, of the regions and poses (in the
    clear, as `Placed.in_the_clear` states), and of the crops, which were released: post-processing. ∎
    """
    if len(places) != len(crops):
        raise InvalidParameter("crops", len(crops), f"are not {len(places)}", hint="one for every face")
    for place in places:
        check_inside(place.region.box, image.shape[1], image.shape[0])
    parts = [part_of(*each, toned=toned, turned=turned, yaw=yaw) for each in zip(places, crops, strict=True)]
    if numbers is not None:
        parts = [replace(part, number=number) for part, number in zip(parts, numbers, strict=True)]
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

    If nothing around them is known, they are in front of a wall.
    """
    import cv2

    view = _around([part.region.box for part in group], filling.around, *hidden.shape)
    inner = _around([part.region.box for part in group], 0.0, *hidden.shape)
    known, hole = outside[view.slices], hidden[view.slices]
    room = inner if hole.all() else None
    heads = [_head(part, outside, hidden, match, filling, room) for part in group]
    shown = [_worn(part, *head) for part, head in zip(group, heads, strict=True)]
    if hole.all():
        filled = wall(group[-1].number, inner.h, inner.w)
        if known.shape[2] == 1:
            filled = cv2.cvtColor(filled, cv2.COLOR_RGB2GRAY)[..., None]
    else:
        filled = filling(known, hole, Box(inner.x - view.x, inner.y - view.y, inner.w, inner.h))
    if len(group) > 1 and isinstance(filling, Completion):  # heads over what was painted around each of them
        pairs = zip(group, tuple(shown), strict=True)
        shown += [(box, alpha * part.near(box), face) for part, (box, alpha, face) in pairs]
    for box, alpha, face in shown:
        own = filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w]
        own[...] = cv2.blendLinear(face, own, alpha, 1 - alpha).reshape(own.shape)
    for part in group:
        box = part.region.box
        part.region.paste(out, filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w])


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
    room: Box | None,
) -> Head:
    """Return a head, completed by a network or drawn: where it is shown, alpha (0 to 1) and levels.

    That is the box of its region; of one that was painted alone in front of a wall, all the `room` before it.
    """
    channels, box, crop, toned = outside.shape[2], part.region.box, part.crop, part.toned
    if isinstance(crop, Figure):
        return box, *_figure(crop, part, outside, hidden, match)
    if part.protect == FACE:
        return box, *_inner(part, crop, outside, hidden, match, filling)
    if not toned and (seen := skin_below(outside, hidden, part.pose, part.frame)) is not None:
        crop, toned = np.rint(brought_to(crop, part.frame, seen)).astype(np.uint8), True
    painted = None
    if isinstance(filling, Completion):
        turn = None if part.turn is None else partial(part.turn.of, frame=part.frame)
        painted = filling.complete(
            outside,
            hidden,
            part.pose,
            crop,
            part.frame,
            toned=toned,
            turn=turn,
            yaw=float(part.yaw or 0),
            number=part.number,
        )
    if painted is None:
        shown, face = drawn_head(crop, part.frame, part.pose, part.turn).on(box, channels, match)
        return box, faded(shown, part.region, SEAM * part.unit, hidden.shape), face
    if painted.alone:
        region = part.region if room is None else Region(room, hidden[room.slices])
        shown, face = painted.on(region.box, channels)
        return region.box, faded(shown, region, SEAM * part.unit, hidden.shape), face
    shown, face = painted.on(box, channels)
    return box, *_finished(shown, face, part, outside, hidden)


def _worn(part: Part, box: Box, alpha: Float32[np.ndarray, "h w"], face: UInt8[np.ndarray, "h w c"]) -> Head:
    """Return a head with its spectacles, if it wears any."""
    if part.style is not None:
        face = put_on(face, part.style, part.pose, part.frame, box, part.turn)
    return box, alpha, face


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

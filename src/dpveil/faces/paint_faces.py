"""Recombination: released faces replace the protected pixels (Croft thesis, figure 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Float64, UInt8
from dpveil.core.region import Box, Region, check_inside, hidden_pixels
from dpveil.errors import InvalidParameter
from dpveil.faces.drawn_face import Released, backdrop
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import drawn_yaw
from dpveil.faces.geometry.colour_match import ColourMatch, match_of
from dpveil.faces.geometry.fill import background_in_hole
from dpveil.faces.geometry.grain import add_grain, match_sharpness
from dpveil.faces.geometry.head_frame import INNER, MIDDLE, HeadFrame, between
from dpveil.faces.geometry.head_picture import View, step
from dpveil.faces.geometry.landmarks import BOX_TO_FACE
from dpveil.faces.geometry.light import light_of
from dpveil.faces.geometry.membrane import DARK, TINT, levels_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import PROTECT_FACE, TURNED
from dpveil.faces.geometry.seam import SEAM, continued_from_edge, fade_to_edge, shift_to_photo_levels
from dpveil.faces.geometry.surroundings_seen import Around
from dpveil.faces.geometry.tone import brought_to, patch_of
from dpveil.faces.surroundings_network import SurroundingsNetwork
from dpveil.opencv import cv2, map_in_threads

SIZE: Final = 1.15
"""Enlargement of a new face in its cell's frame: by eye, and by the distance of eyes in 46 photos."""
SMALL: Final = 0.75  # size of a face, relative to the largest of the photo, below which it may be at the side
AWAY: Final = 0.6  # the same of one that is seen whole, but looks away
FOCUS: Final = 0.05
"""Blur of such a face that looks away or is cut off, as if out of focus: standard deviation in units of
UTKFace's crop."""
AROUND: Final = 0.6
"""Width of the surroundings from which a background is continued, relative to the regions' longer side."""
ROOM: Final = 0.35
"""How far an inner face may reach into the regions of others behind it, in units of UTKFace's crop."""
BEFORE: Final = 0.05  # standard deviation of the blur of the edge between such regions, in the same units
RIM: Final = 2.0
"""How far from what is seen a network says what is beside such a face, in that standard deviation."""
ONE: Final = HeadFrame(1)
NECK: Final = (0.715, 0.105, 0.02, 0.10)
"""Row of the chin, half the width of a neck and the width of its soft edges, in sides of a head's frame."""
OVAL: Final = (1.17, 1.3)
"""Enlargement of the inner face's oval up to which a new face is shown in full, and from which it is not."""
OVAL_ENDS: Final = (1.35, 1.6)
"""The same where there is skin at the region's edge: the box of a user has corners."""
HALO: Final = (1.6, 2.0)
"""The same up to which what a network shows beside a face moves with it in a clip: hair, ears and jaws do."""
OUTLINE: Final = (0.3, 0.6)
"""Share of skin at the region's edge from which on a face begins there, and from which on it is whole."""
OPAQUE: Final = 0.999  # alpha from which on less than half a level of the background is seen
FINE: Final = HeadFrame(96)  # the frame in which the tone of a head is read
Levels8 = UInt8[np.ndarray, "H W c"]
Hidden = Bool[np.ndarray, "H W"]
Levels = Float32[np.ndarray, "h w c"]
Share = Float32[np.ndarray, "h w"]
Head = tuple[Box, Share, UInt8[np.ndarray, "h w c"]]


@dataclass(frozen=True, eq=False)
class Part:
    """A released face as it is seen, and its place; independent of the photo's hidden pixels.

    `around` is what is seen of the photo around it. With `toned`, skin stays as light as it is.
    `network` says how an inner face is lit, if there is one.
    `own` is its region if `region` is larger, by what others hide beside it.
    """

    region: Region
    around: Around
    view: View
    number: int
    toned: bool = False
    person: int | None = None
    network: SurroundingsNetwork | None = None
    own: Region | None = None

    @property
    def place(self) -> Similarity:
        """Maps the photo to a head's frame with a side of 1."""
        return self.around.place

    @property
    def inner(self) -> bool:
        """Whether a face within a head is replaced, rather than the head."""
        return self.around.protect == PROTECT_FACE

    def room(self, height: int, width: int) -> Box:
        """Return the box in which an inner face may be seen where others are hidden, too."""
        return self.region.box.wider(round(ROOM * self.unit) if self.inner else 0, width, height)

    @property
    def row(self) -> float:
        """The row of the head's middle, in pixels of the photo; it may lie beyond the edge."""
        return float(self.place.back(np.zeros((1, 2)))[0, 1])

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of the photo."""
        return ONE.unit / self.place.scale


def part_of(
    placed: Placed,
    released: Released,
    outside: Levels8,
    hidden: Hidden,
    match: ColourMatch,
    *,
    toned: bool = False,
    turned: bool = False,
    shown: frozenset[int] = frozenset(),
    place: Similarity | None = None,
) -> Part:
    """Return a released face as it is shown in a place: if `turned`, to the yaw of its cell.

    `place` maps the photo to a head's frame with a side of 1, by default as `shown_place` does.
    `outside` is the photo with 0 under `hidden`: no pixel under `hidden` has influence. `shown` are persons
    of a gallery who are shown already: another is shown, if there is one. Raises `InvalidParameter` for a
    face alone where a whole head is replaced.
    """
    yaw = None if placed.cell is None or placed.cell.yaw is None else drawn_yaw(placed.cell.yaw)
    in_cell = place is None and placed.cell is not None
    place = shown_place(placed) if place is None else place
    around = Around(place, outside, hidden, placed.protect, match, shown)
    person = released.person(around)
    view = released.view(yaw if turned else None, person)
    if not view.whole and placed.protect != PROTECT_FACE:
        hint = f"protect {PROTECT_FACE}, or choose a gallery of heads"
        raise InvalidParameter("protect", placed.protect, "is not for faces alone", hint=hint)
    if in_cell:
        view = view.enlarged(SIZE)
    network = None if toned else released.model
    return Part(placed.region, around, view, released.number, toned, person, network)


def shown_place(placed: Placed) -> Similarity:
    """Return the map from the photo to a head's frame with a side of 1, in which a new face is shown.

    Cells are larger than faces, as they hold a detected box, too.
    """
    place = between(placed.pose, placed.frame, ONE)
    if placed.landmarks is not None or placed.cell is None:
        return place
    x, y = (middle - 0.5 for middle in MIDDLE)
    return Similarity(
        place.scale / BOX_TO_FACE,
        place.angle,
        x + (place.x - x) / BOX_TO_FACE,
        y + (place.y - y) / BOX_TO_FACE,
    )


def paint_faces(
    image: Levels8,
    places: Sequence[Placed],
    faces: Sequence[Released],
    *,
    toned: bool = False,
    turned: bool = False,
) -> Levels8:
    """Return the photo with every region replaced by its released face and a continued background.

    `image` is uint8, h × w × (1 or 3). No pixel under any region is read: all are set to 0 first. Pixels
    outside the regions do not change. Of overlapping faces, the larger is on top, or the lower. `toned`,
    `turned` as in `part_of`. Raises `InvalidParameter` if faces do not fit, and `RegionError` if a
    region extends beyond the photo.

    *Why it costs nothing.* The output is a function of the pixels outside, of the regions and poses (in the
    clear, as `Placed.in_the_clear` states), and of the faces, which were released: post-processing. ∎
    """
    if len(places) != len(faces):
        raise InvalidParameter("faces", len(faces), f"are not {len(places)}", hint="one for every place")
    for place in places:
        check_inside(place.region.box, image.shape[1], image.shape[0])
    hidden = hidden_pixels([place.region for place in places], *image.shape[:2])
    outside = cv2.copyTo(image, (~hidden).astype(np.uint8)).reshape(image.shape)
    parts, match = list[Part](), match_of(outside, hidden)
    for place, face in zip(places, faces, strict=True):
        shown = frozenset(part.person for part in parts if part.person is not None)
        parts.append(part_of(place, face, outside, hidden, match, toned=toned, turned=turned, shown=shown))
    out = outside.copy()
    map_in_threads(lambda group: _put(out, outside, hidden, group), _groups(parts, hidden.shape))
    largest = max((part.unit for part in parts), default=0.0)
    yaws = (0 if place.cell is None else place.cell.yaw for place in places)
    aside = [is_aside(part, yaw, largest) for part, yaw in zip(parts, yaws, strict=True)]
    sharp = hidden_pixels(
        [part.region for part, soft in zip(parts, aside, strict=True) if not soft], *hidden.shape
    )
    for part in (part for part, soft in zip(parts, aside, strict=True) if soft):
        _unfocus(out, part, ~sharp)
    return out


def is_aside(part: Part, yaw: int | None, largest: float) -> bool:
    """Whether a small inner face looks away, shows no skin or is cut off: a sharp one would stare there.

    `yaw` is the class of its cell, None if not known; `largest` is the largest `unit` of the photo.
    """
    box, (height, width) = part.region.box, part.around.hidden.shape
    cut = min(box.x, box.y, width - box.x - box.w, height - box.y - box.h) == 0
    size = part.unit / largest
    away = yaw is None or (abs(yaw) >= TURNED and size < AWAY)
    return part.inner and size < SMALL and (part.around.bare or away or cut)


def _unfocus(out: Levels8, part: Part, where: Hidden) -> None:
    """Blur a face in its region where it is not before others: as if it were out of focus."""
    deviation, (height, width) = FOCUS * part.unit, out.shape[:2]
    view = part.region.box.wider(math.ceil(3 * deviation), width, height)
    mask = np.zeros_like(where)
    part.region.paste(mask, where[part.region.box.slices])
    soft = cv2.GaussianBlur(out[view.slices], (0, 0), deviation).reshape(view.h, view.w, -1)
    out[view.slices] = np.where(mask[view.slices][..., None], soft, out[view.slices])


def _groups(parts: Sequence[Part], size: tuple[int, int]) -> list[list[Part]]:
    """Return the parts grouped by overlap of their boxes; each group from the smallest face to the
    largest, and from the highest to the lowest of the same size.
    """
    groups: list[list[Part]] = []
    for part in parts:
        near = [g for g in groups if any(part.room(*size).overlaps(other.room(*size)) for other in g)]
        joined = [part, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda part: (part.unit, part.row)) for group in groups]


def _put(out: Levels8, outside: Levels8, hidden: Hidden, group: Sequence[Part]) -> None:
    """Write one group of overlapping faces into `out`, within their regions.

    If nothing around them is known, they are before a backdrop.
    """
    boxes = [part.region.box if len(group) == 1 else part.room(*hidden.shape) for part in group]
    view, inner = _around(boxes, AROUND, *hidden.shape), _around(boxes, 0.0, *hidden.shape)
    known, hole = outside[view.slices], hidden[view.slices]
    parts = [part if len(group) == 1 or not part.inner else _before_others(part, hidden) for part in group]
    shown = [_shown(part, outside, hidden) for part in parts]
    if len(shown) == 1 and shown[0][1].min() > OPAQUE:  # no background is seen
        filled = shown[0][2]
    elif hole.all():
        filled = backdrop(group[-1].number, inner.h, inner.w)
        if known.shape[2] == 1:
            filled = cv2.cvtColor(filled, cv2.COLOR_RGB2GRAY)[..., None]
    else:
        plain = all(part.inner for part in group)
        filled = background_in_hole(
            known, hole, Box(inner.x - view.x, inner.y - view.y, inner.w, inner.h), plain=plain
        )
    for box, alpha, face in shown:
        own = filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w]
        both = cv2.blendLinear(face, np.ascontiguousarray(own), alpha, 1 - alpha).reshape(own.shape)
        own[...] = both
    filled = continued_from_edge(filled, inner, outside, hidden, group[-1].unit)
    for part in group:
        box = part.region.box
        part.region.paste(out, filled[box.y - inner.y :, box.x - inner.x :][: box.h, : box.w])


def _before_others(part: Part, hidden: Hidden) -> Part:
    """Return an inner face that goes on in the regions of others beside its own."""
    room = part.room(*hidden.shape)
    return replace(part, region=Region(room, hidden[room.slices]), own=part.region)


def _around(boxes: Sequence[Box], wider: float, height: int, width: int) -> Box:
    """Return the bounding box of boxes, extended by `wider` times its longer side, clipped to the photo."""
    left, top = min(b.x for b in boxes), min(b.y for b in boxes)
    right, bottom = max(b.x + b.w for b in boxes), max(b.y + b.h for b in boxes)
    more = math.ceil(wider * max(right - left, bottom - top))
    left, top = max(0, left - more), max(0, top - more)
    return Box(left, top, min(width, right + more) - left, min(height, bottom + more) - top)


def _shown(part: Part, outside: Levels8, hidden: Hidden) -> Head:
    """Return where a face is shown, alpha (0 to 1) and levels: the box of its region.

    Its colours meet the photo's at the edge of the region, and it has the photo's sharpness and grain.
    """
    box = part.region.box
    alpha, levels, skin = paint_face(part, part.place, box)
    if outside.shape[2] == 1:
        levels = cv2.cvtColor(levels, cv2.COLOR_RGB2GRAY)[..., None]
    face = np.clip(np.rint(match_sharpness(levels, alpha, box, outside, hidden)), 0, 255).astype(np.uint8)
    soft = fade_to_edge(alpha, part.region, SEAM * part.unit, hidden.shape)
    alpha = soft + skin * (alpha - soft)  # skin meets skin without a seam
    face = shift_to_photo_levels(face, box, outside, hidden, part.unit, alike=part.inner)
    return box, alpha, add_grain(face, alpha, box, outside, hidden)


def paint_face(part: Part, at: Similarity, box: Box, *, cut: bool = False) -> tuple[Share, Levels, Share]:
    """Return alpha, sRGB levels and the share of skin at the region's edge of a face, in a box of a picture.

    `at` maps the picture to a head's frame with a side of 1.

    Light and tone are those that are seen in the photo around its place. An inner face is shown in the light
    of the skin around it, and its skin goes on where there is skin at the region's edge. A whole head has the
    colour of skin that is seen below it, and ends in a neck: collars are the photo's own. With `cut`, alpha
    ends beside an inner face: in a clip it moves before what is farther around.
    """
    view, match = part.view, part.around.match
    if part.inner:
        light = light_of(view, part.region, part.around, part.network).on(at, box)
        levels, planes = view.on(at, box, "alpha", skin=True)
        levels = match(light.lit(levels))
        skin = step((light.skin - OUTLINE[0]) / (OUTLINE[1] - OUTLINE[0]))
        far = INNER.far(np.moveaxis(_frame_grid(at, box), 0, -1))
        if light.face is not None and light.beside is not None:
            levels = light.beside + light.face[..., None] * (levels - light.beside)
            if cut:
                return step((HALO[1] - far) / (HALO[1] - HALO[0])), levels, np.zeros_like(skin)
            shape = step((OVAL[1] - far) / (OVAL[1] - OVAL[0]))
            return _in_front(part, np.minimum(light.face, shape), box), levels, np.ones_like(skin)
        larger = max(1.0, _reach(part) / OVAL[0])
        ends = (larger * OVAL[0], larger * OVAL[1]), OVAL_ENDS
        oval, near = (np.clip((end - far) / (end - start), 0, 1) for start, end in ends)
        alpha = np.asarray(np.maximum(oval * planes[..., 0], near * skin), np.float32)
        return alpha, levels, skin * alpha
    levels, planes = view.on(at, box, "alpha", "hair", "garment")
    hair, garment = planes[..., 1:2], planes[..., 2:3]
    wanted = part.around.cheeks
    if wanted is not None and not part.toned:
        patch = view.framed(FINE.size)[0][patch_of(FINE)]
        share, tone = np.clip(1 - hair - garment, 0, 1), float(wanted[0])
        own = brought_to(patch, patch, tone).mean(axis=(0, 1))
        missed = np.log((levels_of(wanted) + DARK) / (own + DARK))
        tint = np.exp(np.clip(missed - missed.mean(), -TINT, TINT)).astype(np.float32)
        levels = levels + share * (brought_to(levels, patch, tone) * tint - levels)
    bottom = part.region.box.y + part.region.box.h
    if bottom >= part.around.hidden.shape[0]:  # no clothes of the photo are seen
        alpha = planes[..., 0]
    else:
        neck = np.maximum(_column(at, box), hair[..., 0])
        alpha = planes[..., 0] * neck * (1 - garment[..., 0])
    return alpha, match(np.clip(levels, 0, 255).astype(np.float32)), np.zeros_like(alpha)


def _in_front(part: Part, face: Share, box: Box) -> Share:
    """Return alpha of an inner face that the network shows: 1, but before others.

    There it is the face's outline, and near what is seen beside its own region what the network shows.
    """
    mask = part.region.mask
    if part.own is None or mask is None:
        return np.ones_like(face)
    hidden = mask.astype(np.uint8)
    own, (x, y) = np.zeros_like(hidden), (part.own.box.x - box.x, part.own.box.y - box.y)
    own[y : y + part.own.box.h, x : x + part.own.box.w] = 1 if part.own.mask is None else part.own.mask
    wide = max(1.0, BEFORE * part.unit)
    beside = cv2.GaussianBlur((own + 1 - hidden).astype(np.float32), (0, 0), wide)  # not others' regions
    deep = cv2.distanceTransform(hidden, cv2.DIST_L2, 3) / wide
    near = np.exp(-((deep / RIM) ** 2)) * np.clip(2 * beside - 1, 0, 1)
    return np.asarray(np.maximum(near, face), np.float32)


def _reach(part: Part) -> float:
    """Return by how much an inner face's oval has to be enlarged to reach a region's edge.

    Regions of clips are larger than those of photos.
    """
    box, mask = part.region.box, part.region.mask
    inside = np.ones((box.h, box.w), np.uint8) if mask is None else mask.astype(np.uint8)
    edge = (inside - cv2.erode(np.pad(inside, 1), np.ones((3, 3), np.uint8))[1:-1, 1:-1]) > 0
    far = INNER.far(np.moveaxis(_frame_grid(part.place, box), 0, -1))[edge]
    return float(far.min()) if len(far) else 0.0


def _column(at: Similarity, box: Box) -> Share:
    """Return 1 above the chin and on the neck below it, and 0 beside that, in a box."""
    right, low = _frame_grid(at, box)
    right = np.abs(right - MIDDLE[0])
    chin, half, soft, end = NECK
    half = half * np.sqrt(np.clip(1 - ((low - chin) / end) ** 2, 0, 1))
    beside = np.clip((half + soft - right) / soft, 0, 1) * (low < chin + end)
    return np.asarray(np.maximum(beside, np.clip((chin - low) / soft, 0, 1)), np.float32)


def _frame_grid(at: Similarity, box: Box) -> Float64[np.ndarray, "2 h w"]:
    """Return where the pixels of a box are, right and down, in the frame to which `at` maps them."""
    across, down = np.meshgrid(np.arange(box.x, box.x + box.w), np.arange(box.y, box.y + box.h))
    return np.stack([m[0] * across + m[1] * down + (m[2] + 0.5) for m in at.matrix])

"""Heads of a clip: painted once for each track and turn, and shown in every frame of it.

In a photo, a network completes a head around each released face. A clip keeps what it completed in the frame
of one key, with an outline, so that a frame only moves it, lights it and passes it into its surroundings:
a head neither trembles nor pumps, and a frame takes milliseconds. Nothing but released pixels and pixels
outside of what is replaced is read here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.colour_match import AS_IT_IS, match_of, skin_below
from dpveil.faces.geometry.completion import ONE, Completion
from dpveil.faces.geometry.drawn_crop import drawn_head
from dpveil.faces.geometry.dressed import put_on
from dpveil.faces.geometry.figure import Figure
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import HeadFrame
from dpveil.faces.geometry.inner_face import Inner, drawn_face, light_of
from dpveil.faces.geometry.layout import BACKGROUND, HAIR
from dpveil.faces.geometry.painted import Painted, seen, sloping
from dpveil.faces.geometry.part import Part, part_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import FACE, TURNED
from dpveil.faces.geometry.tone import toned as brought_to
from dpveil.video.drawing import Drawn
from dpveil.video.layer import BESIDE, SIDES, Layer
from dpveil.video.light import Light
from dpveil.video.places import Scene
from dpveil.video.track import Track

FEW: Final = 50.0
"""Least number of pixels of hair whose colour counts."""
KEPT: Final = (0.04, 0.08)
"""Distances from what was replaced where a head was painted, in sides of its frame, between which it fades
out: regions of other frames reach a little farther, and what is there may be somebody else's."""

Image = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True, eq=False)
class _Sitting:
    """A head and the picture around it in which it is painted: `outside` has 0 under `hidden`."""

    part: Part
    head: Similarity
    outside: Image
    hidden: Bool[np.ndarray, "h w"]
    side: int


def paint(scene: Scene, drawn: Drawn, track: Track, image: Image) -> dict[int | None, Layer]:
    """Return the heads of a track by their classes of yaw, from the frame of `Scene.painted_at`.

    Pixels of `image` that are replaced are set to 0 first. Raises `InvalidParameter` for a draw that is no
    face, and the errors of the network.
    """
    method = scene.method
    if drawn.face is None or not isinstance(method, FaceMethod):
        raise InvalidParameter("drawn", track.number, "is no face", hint="draw the subject of the track")
    key, course = scene.painted_at(track), scene.course(track)
    hidden = scene.hidden(scene.spots(key.frame))
    outside = image * ~hidden[..., None]
    head = course.shown(key.frame)
    side = int(np.clip(2 ** np.ceil(np.log2(course.largest)), *SIDES))
    light = Light.seen(outside, hidden, head)
    region = scene.spot(track, key.frame).region or Region(Box(0, 0, scene.width, scene.height))
    layers: dict[int | None, Layer] = {}
    first: Painted | None = None
    turned = method.turned and not isinstance(drawn.face, Figure)
    for yaw in sorted(course.yaws if turned else {None}, key=lambda one: abs(one or 0)):
        cell = None if yaw is None else Cell(0, 0, 0, 0, max(-TURNED, min(TURNED, yaw)))
        there = Placed(
            region, between(head, HeadFrame(1), method.frame), method.frame, None, cell, None, course.protect
        )
        part = part_of(there, drawn.face, toned=method.toned, turned=method.turned)
        sitting = _Sitting(part, head, outside, hidden, side)
        painted = _completed(method, sitting)
        if painted is None:
            layers[yaw] = _layer(method, sitting, light)
            continue
        first = first or painted
        layers[yaw] = _painted(_alike(painted, first), sitting, light)
    return layers


def _layer(method: FaceMethod, sitting: _Sitting, light: Light) -> Layer:
    """Return one head as a layer, if no network completes it."""
    part, side, crop = sitting.part, sitting.side, sitting.part.crop
    if isinstance(crop, Figure):
        return _figure(crop, sitting, light)
    if part.protect == FACE:
        return _inner(method, sitting, light)
    crop, _ = _in_tone(sitting, crop)
    own, box = between(ONE, HeadFrame(side), part.frame), Box(0, 0, side, side)
    match = match_of(sitting.outside, sitting.hidden)
    shown, levels = drawn_head(crop, part.frame, own, part.turn).on(box, 3, match)
    return _stored(_worn(levels, part, own, box), shown, side, 0, light)


def _figure(figure: Figure, sitting: _Sitting, light: Light) -> Layer:
    """Return a figure, drawn in a frame of its own, before what is seen around the head."""
    side = sitting.side
    around, known = seen(sitting.outside, sitting.hidden, _in(sitting.head, side), side)
    outside = np.rint(around).astype(np.uint8) * known[..., None]
    more = round(BESIDE * side)
    # a figure ends within its frame at all sides but below
    box = Box(0, 0, side, side + more)
    shown, levels = figure.on(between(ONE, HeadFrame(side), HeadFrame(1)), HeadFrame(1), box, outside, ~known)
    match = match_of(sitting.outside, sitting.hidden)
    levels = np.clip(np.rint(match(levels.astype(np.float32))), 0, 255).astype(np.uint8)
    return _stored(levels, shown, side, 0, light)


def _in_tone(sitting: _Sitting, crop: Image) -> tuple[Image, bool]:
    """Return a face in the tone of skin that is seen below it, and whether it has one to keep."""
    part = sitting.part
    if part.toned:
        return crop, True
    below = skin_below(sitting.outside, sitting.hidden, part.pose, part.frame)
    if below is None:
        return crop, False
    return np.rint(brought_to(crop, part.frame, below)).astype(np.uint8), True


def _completed(method: FaceMethod, sitting: _Sitting) -> Painted | None:
    """Return a head that a network completes, with hair that is the same in every turn; None without one."""
    part, filling = sitting.part, method.inpainting.held
    if isinstance(part.crop, Figure) or part.protect == FACE or not isinstance(filling, Completion):
        return None
    crop, toned = _in_tone(sitting, part.crop)
    turn = None if part.turn is None else partial(part.turn.of, frame=part.frame)
    return filling.complete(
        sitting.outside,
        sitting.hidden,
        part.pose,
        crop,
        part.frame,
        toned=toned,
        turn=turn,
        number=part.number,
        same=True,
    )


def _alike(painted: Painted, first: Painted) -> Painted:
    """Return a painted head with hair of the mean colour of the one that was painted first."""
    shares = [one.layout[HAIR] for one in (painted, first)]
    if painted is first or min(float(share.sum()) for share in shares) < FEW:
        return painted
    own, wanted = (
        np.average(one.levels.reshape(-1, 3), axis=0, weights=share.ravel())
        for one, share in zip((painted, first), shares, strict=True)
    )
    moved = painted.levels + shares[0][..., None] * (wanted - own).astype(np.float32)
    return replace(painted, levels=moved)


def _painted(painted: Painted, sitting: _Sitting, light: Light) -> Layer:
    """Return what a network painted, without the background behind it, and with shoulders beside it."""
    import cv2

    part, side = sitting.part, sitting.side
    here = replace(painted, alone=False, pose=between(ONE, HeadFrame(side), HeadFrame(len(painted.levels))))
    box = Box(0, 0, side, side)
    _, levels = here.on(box, 3)
    levels = _worn(levels, part, between(ONE, HeadFrame(side), part.frame), box)
    shown = cv2.resize(1 - painted.layout[BACKGROUND], (side, side), interpolation=cv2.INTER_LINEAR)
    shown = np.clip(shown, 0, 1)
    if not painted.alone:
        around, known = seen(sitting.outside, sitting.hidden, _in(sitting.head, side), side)
        levels = np.where(known[..., None], np.rint(around).astype(np.uint8), levels)
        away = cv2.distanceTransform(known.astype(np.uint8), cv2.DIST_L2, 3) / np.float32(side)
        shown = shown * np.clip((KEPT[1] - away) / (KEPT[1] - KEPT[0]), 0, 1)
    more = round(BESIDE * side)
    wide, alpha = sloping(levels.astype(np.float32), shown, more, more, more)
    return _stored(np.clip(np.rint(wide), 0, 255).astype(np.uint8), alpha, side, more, light)


def _inner(method: FaceMethod, sitting: _Sitting, light: Light) -> Layer:
    """Return a face whose head stays, in the light of the skin around it."""
    part, outside, hidden, side = sitting.part, sitting.outside, sitting.hidden, sitting.side
    frame, pose, crop = part.frame, part.pose, np.asarray(part.crop, np.float32)
    matched = np.clip(np.rint(match_of(outside, hidden)(crop)), 0, 255).astype(np.uint8)
    own = Inner.of(matched, frame, part.turn)
    lit, filling, painted = light_of(own, pose, part.region, outside, hidden), method.inpainting.held, None
    if isinstance(filling, Completion):
        before = own.before(None if part.turn is None else part.behind(outside, hidden), lit)
        painted = filling.complete(outside, hidden, pose, before, frame, around=False)
    here, box = between(ONE, HeadFrame(side), frame), Box(0, 0, side, side)
    if painted is None:
        head = drawn_head(matched, frame, here, part.turn)
        shown, levels = drawn_face(own, head, here, lit).on(box, 3, AS_IT_IS)
    else:
        small = HeadFrame(len(painted.levels))
        shown, levels = replace(painted, pose=between(ONE, HeadFrame(side), small)).on(box, 3)
    return _stored(_worn(levels, part, here, box), shown, side, 0, light)


def _in(head: Similarity, side: int) -> Similarity:
    """Return the map to the head's frame with a side of so many pixels."""
    return between(head, HeadFrame(1), HeadFrame(side))


def _worn(levels: Image, part: Part, pose: Similarity, box: Box) -> Image:
    """Return a head with its spectacles, if it wears any."""
    return levels if part.style is None else put_on(levels, part.style, pose, part.frame, box, part.turn)


def _stored(levels: Image, shown: Float32[np.ndarray, "h w"], side: int, left: int, light: Light) -> Layer:
    """Return a layer of levels and alpha from 0 to 1."""
    alpha = np.clip(np.rint(255 * shown), 0, 255).astype(np.uint8)
    return Layer(np.dstack([levels, alpha]), side, left, light)

"""Heads of a clip: painted once for each track and turn, and shown in every frame of it.

In a photo, a network completes a head around each released face. A clip keeps what it completed in the frame
of one key, with an outline, so that a frame only moves it, lights it and passes it into its surroundings:
a head neither trembles nor pumps, and a frame takes milliseconds. Nothing but released pixels and pixels
outside of what is replaced is read here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from tempfile import TemporaryFile
from typing import Final, Self

import numpy as np
from jaxtyping import Bool, Float32, Float64, UInt8

from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.colour_match import AS_IT_IS, match_of, skin_below
from dpveil.faces.geometry.completion import ONE, Completion
from dpveil.faces.geometry.drawn_crop import drawn_head
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.inner_face import Inner, drawn_face, light_of
from dpveil.faces.geometry.layout import BACKGROUND, HAIR
from dpveil.faces.geometry.painted import Painted, seen, sloping
from dpveil.faces.geometry.part import Figure, Part, part_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import FACE, TURNED
from dpveil.faces.geometry.spectacles import put_on
from dpveil.faces.geometry.tone import toned as brought_to
from dpveil.video.drawing import Drawn
from dpveil.video.facts import Track
from dpveil.video.places import Scene

BELOW: Final = (0.22, 0.9, 1.06)
"""Where what is worn is looked at: half the width, and from where to where, in sides of the head's frame."""
ENOUGH: Final = 0.3
"""Least share of that place that has to be seen."""
EVERY: Final = 12
"""Rows and columns from one pixel of the picture to the next that are looked at."""
DARK: Final = 8.0
"""Levels that are added before logarithms are taken."""
FREE: Final = 0.5
"""By how much a picture may darken, as a logarithm, before a head does."""
STEADY: Final = 0.1
"""Change of what is worn, as a logarithm, that a head does not follow: folds, hands, noise."""
MOST: Final = (-2.5, 0.35)
"""Least and largest logarithm of the factor of a head's levels."""
LEAST: Final = 1e-3
"""Least change that is shown."""
SECONDS: Final = 1.2
"""Over how long light is averaged."""


@dataclass(frozen=True)
class Light:
    """The mean level of what is worn `below` a head, None where too little is seen, and of the `picture`."""

    below: float | None
    picture: float

    @classmethod
    def seen(
        cls, outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"], head: Similarity
    ) -> Self:
        """Return the light in a picture; no pixel that is `hidden` is read."""
        worn = _worn_at()
        at = np.rint(head.back(worn)).astype(int)
        at = at[(at >= 0).all(axis=1) & (at < hidden.shape[::-1]).all(axis=1)]
        at = at[~hidden[at[:, 1], at[:, 0]]]
        enough = len(at) >= ENOUGH * len(worn)
        below = float(outside[at[:, 1], at[:, 0]].mean()) if enough else None
        return cls(below, brightness(outside, hidden))

    def change(self, other: Light) -> float:
        """Return the logarithm of the factor from this light to another one."""
        return _change(self, other)


@lru_cache(maxsize=4096)  # asked for again in every frame of `SECONDS`
def _change(before: Light, after: Light) -> float:
    least, most = MOST
    darker = min(0.0, math.log((after.picture + DARK) / (before.picture + DARK)) + FREE)
    if before.below is None or after.below is None:
        return max(least, darker)
    worn = math.log((after.below + DARK) / (before.below + DARK))
    return min(most, max(least, math.copysign(max(0.0, abs(worn) - STEADY), worn)))


@lru_cache(maxsize=1)
def _worn_at() -> Float64[np.ndarray, "n 2"]:
    """Return where what is worn is looked at, in a head's frame with a side of 1."""
    half, top, bottom = BELOW
    x, y = np.meshgrid(np.linspace(0.5 - half, 0.5 + half, 24), np.linspace(top, bottom, 10))
    return np.stack([x.ravel(), y.ravel()], axis=1) - 0.5


def brightness(outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"]) -> float:
    """Return the mean level of the picture outside; 0 if nothing of it is seen."""
    few = outside[::EVERY, ::EVERY][~hidden[::EVERY, ::EVERY]]
    return float(few.mean()) if len(few) else 0.0


def lit(levels: UInt8[np.ndarray, "h w c"], change: float) -> UInt8[np.ndarray, "h w c"]:
    """Return levels in another light; `change` is the logarithm of the factor."""
    import cv2

    if abs(change) < LEAST:
        return levels
    table = np.clip(np.rint((np.arange(256) + DARK) * math.exp(change) - DARK), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(levels, table)).reshape(levels.shape)


SIDES: Final = (64, 512)
"""Least and largest side of the head's frame in a layer, in pixels."""
BESIDE: Final = 0.5
"""How far a layer reaches beyond the frame to the left, to the right and below, in sides."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A head's `picture`, RGB and alpha, and the `light` in which it was painted.

    `side` is that of the head's frame in pixels; the picture reaches beyond it by `left` pixels.
    """

    picture: UInt8[np.ndarray, "h w 4"]
    side: int
    left: int
    light: Light

    @cached_property
    def _halves(self) -> list[UInt8[np.ndarray, "_ _ 4"]]:
        """The picture, and copies at 1/2, 1/4 and so on of its size."""
        import cv2

        found = [self.picture]
        while min(found[-1].shape[:2]) >= 32:
            height, width = (length // 2 * 2 for length in found[-1].shape[:2])
            cut = found[-1][:height, :width]
            found.append(np.asarray(cv2.resize(cut, (width // 2, height // 2), interpolation=cv2.INTER_AREA)))
        return found

    def on(self, head: Similarity, box: Box) -> UInt8[np.ndarray, "h w 4"]:
        """Return the head in a box of a picture that `head` maps to a frame with a side of 1."""
        import cv2

        length = 1 / head.scale
        level = max(0, min(len(self._halves) - 1, math.floor(math.log2(max(1.0, self.side / length)) + 0.4)))
        picture, times = self._halves[level], self.side / 2**level
        matrix = head.inverse.matrix
        matrix[:, :2] /= times
        # the centre of the picture's first pixel, in the head's frame
        zero = np.array([0.5 - self.left / 2**level, 0.5]) / times - 0.5
        matrix[:, 2] = head.back(zero[None])[0] - (box.x, box.y)
        shown = cv2.warpAffine(
            picture, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        )
        return np.asarray(shown)


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
    with (
        TemporaryFile() as file
    ):  # heads are read when they are shown: memory does not grow with their number
        np.dstack([levels, alpha]).tofile(file)
        file.flush()
        picture = np.memmap(file, np.uint8, "r", shape=(*alpha.shape, 4))
    return Layer(picture, side, left, light)

"""A head of nobody as a picture, and pictures resampled between frames and photos."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Float64, Shaped, UInt8
from dpveil.core.region import Box
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import MIDDLE, HeadFrame, between, grid
from dpveil.faces.geometry.membrane import lab_of, near_skin, skin_centre
from dpveil.faces.geometry.turn import turn_of, yaw_of
from dpveil.opencv import cv2

UNIT_FRAME: Final = Similarity(1.0, 0.0, 0.0, 0.0)  # the identity
SKIN: Final = (0.495, 0.48, 0.365, 0.46)
"""Ellipse of a crop that shows a face and nothing beside it: centre and half axes, in units of UTKFace's
crop."""
WIDER: Final = 1.0
"""By how much it is enlarged so that skin goes on to the face's outline in photos, but at the far side of a
turned head."""
MARGIN: Final = 0.2
"""By how much the picture of a face is wider than its crop on each side, in units of UTKFace's crop."""
OUTLINED: Final = (22, 28)
"""Yaw in degrees from which on the outline of the far cheek begins to show, and from which on it does."""
SOFT: Final = 0.16  # width of its soft edge, relative to the half axes
INWARD: Final = 0.66  # distance from its middle from which on hair, a collar or a shadow may reach into it
OUTWARD: Final = 1.4  # distance beyond which nothing changes what is seen of the face
BROWS: Final = (0.13, 0.52)  # first and last row of brows and eyes, in units of UTKFace's crop
BESIDE: Final = 4
"""Pixels around a part that are read for it: those of interpolation and of the blur before it."""
GROWN: Final = 16  # pixels by which a part with continued skin is larger than asked for
EDGE: Final = 1.5  # standard deviation of the blur of the face's outline, in pixels of the picture
BARE: Final = (0.95, 0.25)
"""Least alpha, and most hair, garment or neck of a pixel that shows the face itself."""
Levels = Float32[np.ndarray, "_ _ _"]
Share = Float32[np.ndarray, "_ _"]
Shown = Levels | Share
Plane = Float64[np.ndarray, "s s"]
Step = Callable[[UInt8[np.ndarray, "h w c"]], UInt8[np.ndarray, "h w c"]]


@dataclass(frozen=True, eq=False)
class View:
    """A released head, seen from one side: uint8 sRGB `levels`, h × w × 3, and shares of each pixel, 0 to 1.

    `alpha` is the share of the head, with its neck and what it wears; `hair`, `garment` and `neck` are shares
    of these. `pose` maps pixels of the picture to a head's frame with a side of 1. A crop shows a face alone:
    `whole` is False.
    """

    levels: UInt8[np.ndarray, "h w 3"]
    alpha: Share
    hair: Share
    garment: Share
    neck: Share
    pose: Similarity
    whole: bool = True

    @classmethod
    def of_crop(
        cls, crop: UInt8[np.ndarray, "s s 3"], frame: Frame, yaw: int | None, own: float | None = None
    ) -> View:
        """Return the face of a released crop, turned to a yaw in degrees unless it is None.

        The picture is wider than the crop, which ends at the forehead: skin goes on there. The crop's `own`
        yaw is measured in it if it is None: only what was released is read.
        """
        turn = None if yaw is None else turn_of(yaw_of(crop, frame) if own is None else own, yaw)
        more = round(MARGIN * frame.unit)
        crop = np.asarray(cv2.copyMakeBorder(crop, more, more, more, more, cv2.BORDER_REPLICATE))
        frame = Frame(frame.size + 2 * more, frame.margin + more / frame.unit)
        shown = np.ones(crop.shape[:2], np.float32)
        if turn is not None:
            crop, shown = turn.of(crop, frame)
        turned = float(np.clip((abs(yaw or 0) - OUTLINED[0]) / (OUTLINED[1] - OUTLINED[0]), 0, 1))
        far, row, alpha = _ellipse(frame, turned * float(np.sign(yaw or 0)))
        alpha = (1 - turned + turned * shown) * alpha
        none = np.zeros_like(alpha)
        view = cls(crop, alpha, none, none, none, between(UNIT_FRAME, frame, HeadFrame(1)), whole=False)
        face = view.__dict__["face"] = np.zeros_like(alpha)
        part = slice(more, -more), slice(more, -more)
        face[part] = (shown * step((1 - far) / SOFT + 0.5) * _bare(crop, far, row))[part]
        return view

    def after(self, steps: tuple[Step, ...]) -> View:
        """Return the same picture after post-processing."""
        levels = self.levels
        for step in steps:
            levels = step(levels)
        return self.showing(levels) if steps else self

    def showing(self, levels: UInt8[np.ndarray, "h w 3"]) -> View:
        """Return the same head with other levels."""
        other = replace(self, levels=levels)
        other.__dict__["face"] = self.face
        return other

    def enlarged(self, factor: float) -> View:
        """Return the same head, enlarged around the middle of its frame."""
        x, y = ((1 - factor) * (middle - 0.5) for middle in MIDDLE)
        other = replace(self, pose=through(self.pose, Similarity(factor, 0.0, x, y)))
        other.__dict__["face"] = self.face
        return other

    @cached_property
    def face(self) -> Share:
        """The share of each pixel that shows the face itself: no hair, garment or neck."""
        least, most = BARE
        bare = (self.alpha > least) & (self.hair + self.garment + self.neck < most)
        return _within_outline(bare)

    def skin(self, part: Box) -> UInt8[np.ndarray, "h w 3"]:
        """Return a part of the levels, with the face's skin continued where the picture shows no face.

        The last part is kept, as a face is seen several times in one place.
        """
        known, levels = self.__dict__.get("skinned", (part, None))
        if levels is None or min(known.beyond(part)) < 0:
            known = self._read(part, GROWN)
            face = cv2.merge([self.face[known.slices]] * 3)
            more = fill(self.levels, self.face == 0, known)
            levels = np.rint(more + face * (self.levels[known.slices].astype(np.float32) - more))
            self.__dict__["skinned"] = known, levels = known, np.asarray(levels, np.uint8)
        there = Box(part.x - known.x, part.y - known.y, part.w, part.h)
        return np.asarray(levels[there.slices])

    def on(
        self, place: Similarity, box: Box, *shares: str, skin: bool = False, near: Box | None = None
    ) -> tuple[Levels, Levels]:
        """Return the picture in a box of the photo that `place` maps to a head's frame with a side of 1.

        The first are sRGB levels, h × w × 3, with the `skin` continued if asked for; the second have a plane
        for each of `shares`: of alpha, hair, garment and face. What is not `near` need not be right.
        """
        to = through(self.pose, place.inverse)
        to = replace(to, x=to.x - box.x, y=to.y - box.y)
        part = self._seen_in(to, Box(0, 0, box.w, box.h) if near is None else near)
        x, y = to.to(np.array([[part.x, part.y]], np.float64))[0].tolist()
        to = replace(to, x=x, y=y)
        if skin:
            levels = _moved(self.skin(part).astype(np.float32), to, box.w, box.h)
        else:  # colours count by how much of the head a pixel shows
            alpha = self.alpha[part.slices]
            colours = (plane * alpha for plane in cv2.split(self.levels[part.slices]))
            both = _moved(cv2.merge([*colours, alpha]), to, box.w, box.h)
            levels = both[..., :3] / cv2.merge([np.maximum(both[..., 3], np.float32(1 / 255))] * 3)
        planes = np.zeros((box.h, box.w, 0), np.float32)
        if shares:
            asked = cv2.merge([getattr(self, name)[part.slices] for name in shares])
            planes = np.clip(_moved(asked, to, box.w, box.h, constant=True), 0, 1)
        return np.clip(levels, 0, 255), planes

    def _seen_in(self, to: Similarity, canvas: Box) -> Box:
        """Return the part of the picture that is read for a part of a canvas, to which `to` maps it."""
        right, bottom = canvas.x + canvas.w, canvas.y + canvas.h
        ends = np.array([[canvas.x, canvas.y], [right, canvas.y], [right, bottom], [canvas.x, bottom]])
        ends = to.back(ends.astype(np.float64))
        (left, top), (right, bottom) = ends.min(axis=0).tolist(), ends.max(axis=0).tolist()
        more = BESIDE + math.ceil(BESIDE / to.scale)
        wide, high = math.ceil(right) - math.floor(left), math.ceil(bottom) - math.floor(top)
        return self._read(Box(math.floor(left), math.floor(top), max(wide, 1), max(high, 1)), more)

    def _read(self, part: Box, more: int) -> Box:
        """Return a part that is wider on each side, within the picture."""
        rows = _within(part.y - more, part.y + part.h + more, self.levels.shape[0])
        columns = _within(part.x - more, part.x + part.w + more, self.levels.shape[1])
        return Box(columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)

    def framed(
        self, size: int, *shares: str, skin: bool = False, near: Box | None = None
    ) -> tuple[Levels, Levels]:
        """Return the same in a `HeadFrame` of `size` × `size` pixels."""
        place = between(UNIT_FRAME, HeadFrame(size), HeadFrame(1))
        return self.on(place, Box(0, 0, size, size), *shares, skin=skin, near=near)


@lru_cache(maxsize=16)
def _ellipse(frame: Frame, turned: float) -> tuple[Plane, Plane, Share]:
    """Return the distance of a crop's pixels from the ellipse's middle, 1 at its edge, their rows, and alpha.

    `turned` says how much of the far side ends at the face's outline, from -1, its left, to 1.
    """
    x, y, a, b = SKIN
    at = grid(frame)
    far = np.hypot((at[..., 0] - x) / a, (at[..., 1] - y) / b)
    far_side = np.clip((at[..., 0] - x) / a / np.maximum(far, 0.1) * turned, 0, 1)
    return far, at[..., 1], step((1 + WIDER * (1 - far_side) - far) / SOFT + 0.5)


def _within_outline(shown: Bool[np.ndarray, "h w"]) -> Share:
    """Return 1 in an outline, which is soft inwards, and 0 beyond it."""
    inner = cv2.erode(shown.astype(np.float32), np.ones((3, 3), np.uint8))
    return np.asarray(np.minimum(shown, cv2.GaussianBlur(inner, (0, 0), EDGE)), np.float32)


def _bare(crop: UInt8[np.ndarray, "s s 3"], far: Plane, row: Plane) -> Share:
    """Return 0 where something else than skin, hair or a collar, reaches into a crop's ellipse, and else 1.

    `far` is the distance from the ellipse's middle, 1 at its edge; eyes and brows, by their `row`, stay.
    """
    soft, other = cv2.GaussianBlur(crop, (0, 0), 1.0).reshape(-1, 3), np.zeros(far.shape, np.bool_)
    middle = np.flatnonzero(far < INWARD)
    beyond = np.flatnonzero((far > INWARD) & (far < OUTWARD) & ((row < BROWS[0]) | (row > BROWS[1])))
    centre, _ = skin_centre(lab_of(soft[middle]), np.ones(len(middle)), grey=False)
    other.ravel()[beyond] = near_skin(lab_of(soft[beyond]), centre) < 0.5
    count, parts = cv2.connectedComponents(other.astype(np.uint8))
    reaching = np.zeros(count, np.bool_)
    reaching[parts[other & (far > 1)]] = True
    return _within_outline(
        cv2.dilate((other & reaching[parts]).astype(np.uint8), np.ones((5, 5), np.uint8)) == 0
    )


def through(first: Similarity, second: Similarity) -> Similarity:
    """Return the map that applies `first`, and then `second`."""
    x, y = second.to(np.array([[first.x, first.y]], np.float64))[0]
    return Similarity(first.scale * second.scale, first.angle + second.angle, float(x), float(y))


def _moved(picture: Shown, to: Similarity, width: int, height: int, *, constant: bool = False) -> Levels:
    """Return a picture mapped by `to`, anti-aliased; beyond its edge it goes on, or is 0 if `constant`."""
    edge = cv2.BORDER_CONSTANT if constant else cv2.BORDER_REPLICATE
    if to.scale < 1:
        blur = BLUR * math.sqrt(1 / to.scale**2 - 1)
        picture = cv2.GaussianBlur(picture, (0, 0), blur, borderType=cv2.BORDER_REPLICATE)
    mode = cv2.INTER_LINEAR if to.scale < 1 else cv2.INTER_CUBIC
    out = cv2.warpAffine(picture, to.matrix, (width, height), flags=mode, borderMode=edge)
    return np.asarray(out, np.float32).reshape(height, width, -1)


def seen(
    outside: UInt8[np.ndarray, "H W k"], hidden: Bool[np.ndarray, "H W"], pose: Similarity, side: int
) -> tuple[Levels, Bool[np.ndarray, "s s"]]:
    """Return the photo outside the regions resampled to a frame, and which pixels of the frame are known.

    The photo is mirrored at its edges.
    """
    corners = pose.back(np.array([[-0.5, -0.5], [side, -0.5], [side, side], [-0.5, side]]))
    more = 4 + math.ceil(4 / pose.scale)
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    height, width = hidden.shape
    rows = _within(math.floor(top) - more, math.ceil(bottom) + more, height)
    columns = _within(math.floor(left) - more, math.ceil(right) + more, width)
    known = np.where(hidden[rows, columns], np.uint8(0), np.uint8(255))
    colours = list(cv2.split(cv2.copyTo(outside[rows, columns], known)))
    both = cv2.merge([*(colours * (3 // len(colours))), known])
    moved = pose.to(np.array([[columns.start, rows.start]], np.float64))[0]
    there = downscaled_to_frame(
        both, Similarity(pose.scale, pose.angle, float(moved[0]), float(moved[1])), side
    )
    return there[..., :3].astype(np.float32), there[..., 3] == 255


def _within(start: int, end: int, size: int) -> slice:
    """Return the part of 0 to `size` between two ends, at least one: frames may lie wholly beyond a photo."""
    first = max(0, min(start, size - 1))
    return slice(first, max(first + 1, min(end, size)))


def downscaled_to_frame(picture: Shaped[np.ndarray, "h w c"], pose: Similarity, side: int) -> np.ndarray:
    """Return a picture resampled to the frame to which `pose` maps it, with anti-aliasing."""
    step = 1 / pose.scale
    whole = max(1, min(math.floor(step), *picture.shape[:2]))
    height, width = (length // whole * whole for length in picture.shape[:2])
    if whole > 1:
        size = (width // whole, height // whole)
        picture = cv2.resize(picture[:height, :width], size, interpolation=cv2.INTER_AREA)
    step /= whole
    if step > 1:
        picture = cv2.GaussianBlur(picture, (0, 0), BLUR * math.sqrt(step * step - 1))
    matrix = pose.matrix * [whole, whole, 1]
    zero = (whole - 1) / 2
    matrix[:, 2] = pose.to(np.array([[zero, zero]], np.float64))[0]
    mode = cv2.INTER_LINEAR
    out = cv2.warpAffine(picture, matrix, (side, side), flags=mode, borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(out)


def step(at: np.ndarray) -> Share:
    """Return a smooth step from 0 at 0 to 1 at 1."""
    t = np.clip(at, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)

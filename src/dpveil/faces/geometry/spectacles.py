"""Spectacles, drawn over a released face in its canonical crop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import BLUR, FIVE, Frame, Similarity, of_points
from dpveil.faces.geometry.head_frame import between
from dpveil.faces.geometry.turn import MIDDLE, Turn, landmarks_at

FINER: Final = 4
"""Factor by which spectacles are drawn larger, and then averaged down."""
LOWER: Final = 0.018
"""By how much the middle of a lens is below the eye's centre."""
APART: Final = 1.04
"""Distance between the middles of the lenses, relative to that between the eyes."""
STEPS: Final = 180
"""Points on the outline of a lens."""
SIXTEENTHS: Final = 4
"""Bits after the point of the coordinates that OpenCV draws."""
SHADOW: Final = (0.016, 0.012, 0.34)
"""Shadow of the rim on the face: how far below it, its blur, and by how much it darkens the skin at most."""
SHEEN: Final = 0.24
"""Share of white in the brightest part of a lens's reflection."""
FADE: Final = 0.7
"""Distance from the crop's middle, relative to half its side, from which on temples fade, up to its edge."""
Colour = tuple[int, int, int]
Plane = Float32[np.ndarray, "t t"]


@dataclass(frozen=True)
class Style:
    """How spectacles look; lengths are in units of UTKFace's crop.

    `half` are the half axes of a lens, `power` the exponent of its superellipse (2 is an ellipse), `top` and
    `rim` the width of the rim above and on average, `tint` the opacity of the glass. Colours are sRGB: that
    of the rim and that of its upper edge, where light falls on it.
    """

    half: tuple[float, float]
    power: float
    rim: float
    top: float
    colour: Colour
    light: Colour
    tint: float = 0.03
    clear: float = 1.0


STYLES: Final = {
    "metal": Style((0.158, 0.104), 2.9, 0.0100, 0.012, (92, 84, 74), (196, 188, 176)),
    "plastic": Style((0.163, 0.112), 3.4, 0.0185, 0.027, (24, 20, 19), (84, 76, 72)),
    "rimless": Style((0.155, 0.100), 3.0, 0.0070, 0.007, (150, 148, 146), (232, 232, 232), 0.05, 0.65),
    "round": Style((0.140, 0.136), 2.05, 0.0125, 0.014, (74, 50, 34), (168, 132, 96)),
}
"""Styles of spectacles, by name."""


def with_glasses(crop: UInt8[np.ndarray, "_ _ _"], style: str) -> UInt8[np.ndarray, "s s 3"]:
    """Return a face in canonical position with spectacles of a style of `STYLES`.

    `crop` is a released face in `Frame(s)`, sRGB. What is drawn is the same for every face: post-processing.
    Raises `InvalidParameter` for an unknown style or another shape.

    >>> with_glasses(np.full((128, 128, 3), 160, np.uint8), "round").shape
    (128, 128, 3)
    """
    if style not in STYLES:
        raise InvalidParameter("style", style, "is unknown", hint=" or ".join(STYLES))
    size = len(crop)
    if crop.dtype != np.uint8 or crop.shape != (size, size, 3):
        shape = f"is not uint8 {size} × {size} × 3"
        raise InvalidParameter("crop", f"{crop.dtype} {crop.shape}", shape, hint="a canonical crop")
    kept, added = layer(style, size)
    worn: UInt8[np.ndarray, "s s 3"] = np.clip(np.rint(crop * kept[..., None] + added), 0, 255).astype(
        np.uint8
    )
    return worn


@lru_cache(maxsize=8)
def layer(style: str, size: int) -> tuple[Plane, Float32[np.ndarray, "s s 3"]]:
    """Return by what spectacles multiply the levels of a face, and what they add to them."""
    import cv2

    look, frame = STYLES[style], Frame(size * FINER)
    glass, rim, temples = _masks(look, frame)
    unit = frame.unit
    kept = 1 - SHADOW[2] * look.clear * _shadow(np.maximum(rim, temples), unit)
    sheen = look.tint + SHEEN * _reflection(frame)
    kept, added = kept * (1 - glass * sheen), (255 * glass * sheen)[..., None]
    for mask in (temples, rim):
        mask = mask * np.float32(look.clear)
        kept, added = kept * (1 - mask), added * (1 - mask)[..., None] + mask[..., None] * _lit(look, rim)
    both = np.dstack([kept, added]).astype(np.float32)
    small = cv2.resize(both, (size, size), interpolation=cv2.INTER_AREA)
    small.setflags(write=False)
    return small[..., 0], small[..., 1:]


def _masks(look: Style, frame: Frame) -> tuple[Plane, Plane, Plane]:
    """Return the glass, the rim with its bridge, and the temples, each from 0 to 1."""
    import cv2

    right, left = _middles()
    thick, (across, up) = max(look.rim, 0.009), look.half
    outer = [_lens(middle, look, look.rim / 2, look.top - look.rim / 2) for middle in (right, left)]
    inner = [_lens(middle, look, -look.rim / 2, -look.rim / 2) for middle in (right, left)]
    arms = [
        _arm(middle + np.array([side * across, -0.42 * up]), side, 0.9 * thick)
        for middle, side in ((right, 1), (left, -1))
    ]
    glass, rim, temples = (_filled(shapes, frame) for shapes in (inner, outer, arms))
    rim = cv2.subtract(rim, glass)
    ends = left + np.array([across, -0.3 * up]), right + np.array([-across, -0.3 * up])
    cv2.polylines(
        rim,
        [_whole(_bridge(*ends), frame)],
        False,
        255,
        max(1, round(1.15 * thick * frame.unit)),
        cv2.LINE_AA,
        SIXTEENTHS,
    )
    away = np.abs((np.arange(frame.size) + 0.5) / frame.size - 0.5) * 2
    faint = np.clip((1 - away) / (1 - FADE), 0, 1).astype(np.float32) / 255
    whole = [np.asarray(mask, np.float32) / 255 for mask in (glass, rim)]
    return whole[0], whole[1], np.asarray(cv2.subtract(temples, glass) * faint, np.float32)


def _filled(shapes: list[np.ndarray], frame: Frame) -> UInt8[np.ndarray, "t t"]:
    import cv2

    mask = np.zeros((frame.size, frame.size), np.uint8)
    for shape in shapes:
        cv2.fillPoly(mask, [_whole(shape, frame)], 255, cv2.LINE_AA, SIXTEENTHS)
    return mask


def _arm(hinge: np.ndarray, side: int, thick: float) -> np.ndarray:
    """Return the outline of a temple, from its hinge to beyond the edge of the crop."""
    end = np.array([0.5 + 0.52 * side, hinge[1] - 0.006])
    wide = thick * np.array([[0, -1], [0, 1], [0, 0.6], [0, -0.6]])
    arm: np.ndarray = np.array([hinge, hinge, end, end]) + wide
    return arm


def _bridge(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the arc between two lenses."""
    along = np.linspace(0, 1, 25)[:, None]
    arc: np.ndarray = start + along * (end - start) - [0, 1] * (0.022 * np.sin(np.pi * along))
    return arc


def _middles() -> tuple[np.ndarray, np.ndarray]:
    """Return the middles of the lenses: on the right of the image, and on the left."""
    points = np.array(FIVE)
    eyes = points[:2].mean(axis=0), points[2:4].mean(axis=0)
    middle, away = (eyes[0] + eyes[1]) / 2 + (0, LOWER), APART * (eyes[0] - eyes[1]) / 2
    return middle + away, middle - away


def _lens(middle: np.ndarray, look: Style, more: float, above: float) -> np.ndarray:
    """Return the outline of a lens, larger by `more`, and by `above` at its top."""
    angle = np.arange(STEPS) * (2 * np.pi / STEPS)
    x, y = np.cos(angle), np.sin(angle)
    half = np.stack(
        [np.full(STEPS, look.half[0] + more), look.half[1] + np.where(y < 0, above, more)], axis=1
    )
    ways = np.stack([x, y], axis=1)
    outline: np.ndarray = middle + half * np.sign(ways) * np.abs(ways) ** (2 / look.power)
    return outline


def _whole(points: np.ndarray, frame: Frame) -> np.ndarray:
    """Return positions in pixels of a frame, in units of 1/16, as OpenCV draws them with `SIXTEENTHS`."""
    whole: np.ndarray = np.rint(frame.pixels(points) * (1 << SIXTEENTHS)).astype(np.int32)
    return whole


def _shadow(rim: Plane, unit: float) -> Plane:
    """Return the soft shadow that the rim casts downwards, from 0 to 1."""
    import cv2

    down, blur, _ = SHADOW
    move = np.array([[1, 0, 0], [0, 1, down * unit]])
    moved = cv2.warpAffine(rim, move, rim.shape[::-1], borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.GaussianBlur(moved, (0, 0), blur * unit), np.float32)


def _reflection(frame: Frame) -> Plane:
    """Return the light that a window throws on the lenses: a soft slanting band on each, from 0 to 1."""
    along = (np.arange(frame.size) + 0.5) / frame.size
    x, y = np.meshgrid(along, along)
    shine = np.zeros_like(x)
    for middle in _middles():
        slant = (x - middle[0]) * 0.75 + (y - middle[1]) + 0.045
        high = np.clip((middle[1] + 0.09 - y) / 0.18, 0, 1)
        shine += np.exp(-((slant / 0.028) ** 2)) * high * (np.abs(x - middle[0]) < 0.19)
    return np.asarray(np.clip(shine, 0, 1), np.float32)


def _lit(look: Style, rim: Plane) -> Float32[np.ndarray, "t t 3"]:
    """Return the rim's colour at each pixel, lighter where light from above falls on an edge."""
    import cv2

    soft = cv2.GaussianBlur(rim, (0, 0), 0.35 * max(look.rim, 0.006) * len(rim))
    edge = np.clip(4 * cv2.Sobel(soft, cv2.CV_32F, 0, 1, ksize=3), 0, 1)[..., None]
    dark, light = (np.array(colour, np.float32) for colour in (look.colour, look.light))
    return np.asarray(dark + edge * (light - dark), np.float32)


AHEAD: Final = -0.07
"""How far the plane of the lenses is in front of the eyes' inner corners, in units of UTKFace's crop."""
HINGE: Final = 0.87
"""Column beyond which a temple is hidden on the far side of a turned head; mirrored on the left."""
FINE: Final = 256
"""Side in which spectacles are drawn, in pixels, for a frame without margin."""


Step = Callable[[UInt8[np.ndarray, "h w c"]], UInt8[np.ndarray, "h w c"]]


@dataclass(frozen=True, eq=False)
class Dressed:
    """A released face in canonical position without spectacles, and the style of those that it wears."""

    face: UInt8[np.ndarray, "s s 3"]
    style: str

    @property
    def crop(self) -> UInt8[np.ndarray, "s s 3"]:
        """The face with its spectacles."""
        return with_glasses(self.face, self.style)

    def after(self, step: Step) -> Dressed:
        """Return the same, with a step applied to the face."""
        return replace(self, face=step(self.face))


def put_on(
    shown: UInt8[np.ndarray, "h w c"], style: str, pose: Similarity, frame: Frame, box: Box, turn: Turn | None
) -> UInt8[np.ndarray, "h w c"]:
    """Return a head in a box of the photo with spectacles, turned as the head is.

    `pose` maps the photo to the `frame` of the face. Depends on the place and on what is shown alone.
    """
    import cv2

    fine = Frame(FINE)
    kept, added = layer(style, FINE)
    planes, there = [1 - kept, added], between(pose, frame, fine)
    if there.scale > 1:
        planes = [cv2.GaussianBlur(plane, (0, 0), BLUR * math.sqrt(there.scale**2 - 1)) for plane in planes]
    matrix = there.inverse.matrix
    if turn is not None:
        planes = [_near(plane, turn.wanted) for plane in planes]
        matrix = matrix @ _square(_turned(math.radians(turn.wanted), fine))
    matrix[:, 2] -= box.x, box.y
    lost, own = (cv2.warpAffine(plane, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR) for plane in planes)
    if shown.shape[2] == 1:
        own = cv2.cvtColor(own, cv2.COLOR_RGB2GRAY)[..., None]
    levels = np.rint(shown * (1 - lost[..., None]) + own)
    worn: UInt8[np.ndarray, "h w c"] = np.clip(levels, 0, 255).astype(np.uint8)
    return worn


def _near(plane: np.ndarray, yaw: int) -> np.ndarray:
    """Return a plane without the temple on the far side of a head that is turned by `yaw`."""
    across = (np.arange(len(plane)) + 0.5) / len(plane) - MIDDLE
    seen = across * np.sign(yaw) < HINGE - MIDDLE
    near: np.ndarray = plane * seen.reshape(1, -1, *(1,) * (plane.ndim - 2)).astype(np.float32)
    return near


def _turned(yaw: float, frame: Frame) -> Float64[np.ndarray, "2 3"]:
    """Return what a turn by `yaw` does to positions in the plane of spectacles, in pixels of a frame."""
    flat = np.eye(2, 3)
    flat[0] = math.cos(yaw), 0, MIDDLE * (1 - math.cos(yaw)) + AHEAD * math.sin(yaw)
    parts = of_points(landmarks_at(yaw), np.array(FIVE)).matrix @ _square(flat)
    ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    zero, right, down = frame.pixels(ends @ parts[:, :2].T + parts[:, 2])
    base = frame.pixels(ends)
    linear = np.stack([right - zero, down - zero], axis=1) / (base[1, 0] - base[0, 0])
    return np.column_stack([linear, zero - linear @ base[0]])


def _square(matrix: Float64[np.ndarray, "2 3"]) -> Float64[np.ndarray, "3 3"]:
    return np.vstack([matrix, [0.0, 0.0, 1.0]])

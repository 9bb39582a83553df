"""Photos of eyes that are drawn, so that experiments on irises run without any data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Float32, Float64

from dpveil.bench.synthetic_photos import DrawnItem, levels, normals, shares
from dpveil.core.photo import Photo
from dpveil.noise.bits import BitSource

EYE_SIZE: Final = (200, 240)  # rows and columns of a photo
IRIS: Final = (58.0, 66.0)  # radii of irises, in pixels
PUPIL: Final = (0.3, 0.5)  # radii of pupils, in radii of the iris: light changes them
GAZE: Final = 14.0  # largest shift of the iris, in pixels, to each side
ROLL: Final = 5.0  # largest turn of the head, in degrees, to each side
BANDS: Final = ((10.0, 3.0, 16.0), (5.0, 1.6, 14.0), (2.5, 1.0, 10.0))
"""Standard deviations along the radius and around, of a texture of 64 × 512 pixels, and the contrast in
levels."""
TEXTURE: Final = (64, 512)
EYE_GRAIN: Final = 3.0

Plane = Float64[np.ndarray, "h w"]


@dataclass(frozen=True)
class Shape:
    """Where pupil and iris are in a photo, in pixels: the truth, which no attacker is told."""

    x: float
    y: float
    pupil: float
    iris: float
    roll: float


@dataclass(frozen=True)
class DrawnEye(DrawnItem):
    """A photo of an eye: the texture of the iris stays, and pupil, gaze, lids, light and focus vary."""

    kind: ClassVar[str] = "drawn-eyes"
    usual: ClassVar[tuple[int, int]] = (30, 5)
    summary: ClassVar[str] = "irises in infrared light; pupil, gaze, lids, reflections and focus vary"

    @property
    def shape(self) -> Shape:
        of_own, of_photo = shares(self.subject_bits, 1), shares(self.moment, 4)
        iris = IRIS[0] + float(of_own[0]) * (IRIS[1] - IRIS[0])
        across, down, wide, turn = (float(one) for one in of_photo)
        return Shape(
            x=EYE_SIZE[1] / 2 + GAZE * (2 * across - 1),
            y=EYE_SIZE[0] / 2 + 0.6 * GAZE * (2 * down - 1),
            pupil=iris * (PUPIL[0] + wide * (PUPIL[1] - PUPIL[0])),
            iris=iris,
            roll=ROLL * (2 * turn - 1),
        )

    def read(self) -> Photo:
        shape, bits = self.shape, self.moment
        bits.words(4)  # those of the shape
        rows, columns = np.mgrid[: EYE_SIZE[0], : EYE_SIZE[1]].astype(np.float64)
        x, y = columns - shape.x, rows - shape.y
        away, angle = np.hypot(x, y), np.degrees(np.arctan2(y, x)) - shape.roll
        image = 182 + 10 * np.cos(x / 90) - 6 * (y / 100) ** 2  # the white
        image = _disc_over(image, self._iris(shape, away, angle), away, shape.iris, soft=2.0)
        image = _disc_over(image, np.full(EYE_SIZE, 22.0), away, shape.pupil, soft=1.0)
        image = _lids(image, shape, bits)
        image = _light_eye(image, shape, bits)
        return levels(image[..., None], bits, EYE_GRAIN)

    def _iris(self, shape: Shape, away: Plane, angle: Plane) -> Plane:
        depth = (away - shape.pupil) / (shape.iris - shape.pupil)
        across = ((angle / 360) % 1 * TEXTURE[1]).astype(np.float32)
        down = (depth.clip(0, 1) * (TEXTURE[0] - 1)).astype(np.float32)
        wide = np.concatenate([texture(self.number), texture(self.number)[:, :1]], axis=1)
        found = cv2.remap(wide, across, down, cv2.INTER_LINEAR)
        return np.asarray(found - 22 * depth.clip(0, 1) ** 6, np.float64)


@lru_cache(maxsize=256)
def texture(number: int) -> Float32[np.ndarray, "64 512"]:
    """Return the texture of an iris, in levels: rows from the pupil outwards, columns around."""
    bits = DrawnEye.of(number, 0).subject_bits
    tone, ring, *_ = shares(bits, 8)
    out = np.full(TEXTURE, 92 + 26 * tone)
    for along, around, contrast in BANDS:
        noise = normals(bits, *TEXTURE).astype(np.float32)
        padded = np.concatenate([noise[:, -64:], noise, noise[:, :64]], axis=1)
        smooth = cv2.GaussianBlur(padded, (0, 0), sigmaX=around, sigmaY=along)[:, 64:-64]
        out += contrast * smooth / smooth.std()
    depth = np.linspace(0, 1, TEXTURE[0])[:, None]
    edge = 0.28 + 0.1 * ring + 0.03 * cv2.GaussianBlur(normals(bits, 1, TEXTURE[1]), (0, 0), 8)
    out += 14 * np.exp(-(((depth - edge) / 0.06) ** 2))  # the collarette
    return np.asarray(out, np.float32)


def _disc_over(below: Plane, above: Plane, away: Plane, radius: float, *, soft: float) -> Plane:
    share = np.clip((radius - away) / soft + 0.5, 0, 1)
    return np.asarray(below + share * (above - below))


def _lids(image: Plane, shape: Shape, bits: BitSource) -> Plane:
    rows, columns = np.mgrid[: EYE_SIZE[0], : EYE_SIZE[1]].astype(np.float64)
    open_up, open_down, bend, tilt = shares(bits, 4)
    x = (columns - shape.x) / shape.iris
    upper = shape.y - shape.iris * (0.66 + 0.45 * open_up) + shape.iris * (0.24 + 0.1 * bend) * x**2
    lower = shape.y + shape.iris * (0.86 + 0.4 * open_down) - shape.iris * 0.2 * (x + 0.1 * tilt) ** 2
    skin = 150 + 14 * np.sin(rows / 13) + 12 * (columns / EYE_SIZE[1] - 0.5)
    closed = np.clip((upper - rows) / 3 + 0.5, 0, 1) + np.clip((rows - lower) / 3 + 0.5, 0, 1)
    image = image + closed.clip(0, 1) * (skin - image)
    shade = np.clip(1 - np.abs(rows - upper - 3) / 9, 0, 1)
    image = image * (1 - 0.35 * shade)
    strokes = np.zeros(EYE_SIZE, np.uint8)
    for root, length, lean in shares(bits, 3 * 26).reshape(26, 3):
        column = int(root * EYE_SIZE[1])
        start = (column, int(upper[0, column]))
        end = (int(column + 14 * (lean - 0.5)), int(start[1] + 8 + 16 * length))
        cv2.line(strokes, start, end, 255, 1, cv2.LINE_AA)
    return np.asarray(image * (1 - 0.6 * strokes / 255), np.float64)


def _light_eye(image: Plane, shape: Shape, bits: BitSource) -> Plane:
    """Return the eye with reflections of the lamp, light from a side, and as sharp as the camera was."""
    bright, side, focus, x, y = shares(bits, 5)
    spots = np.zeros(EYE_SIZE, np.uint8)
    for shift in (-6, 7):
        at = round(shape.x + shift + 8 * (x - 0.5)), round(shape.y - 5 + 8 * (y - 0.5))
        cv2.circle(spots, at, 3, 255, -1, cv2.LINE_AA)
    image = image + spots / 255 * (245 - image)
    image = cv2.GaussianBlur(image, (0, 0), 0.5 + 0.9 * focus)
    across = np.linspace(-1, 1, EYE_SIZE[1])[None]
    return np.asarray(image * (0.85 + 0.3 * bright) * (1 + 0.12 * (2 * side - 1) * across), np.float64)

"""A released face within an oval, in a head that stays: in the light and colour of the skin at the rim.

Everything is a function of the pixels outside all regions, and of released pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Shaped, UInt8

from dpveil.core.region import Region
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.drawn_crop import DrawnCrop
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import AnyFrame, HeadFrame, between, grid
from dpveil.faces.geometry.membrane import skin_weights, stretched
from dpveil.faces.geometry.painted import seen, shrunk
from dpveil.faces.geometry.tone import patch_of
from dpveil.faces.geometry.turn import Turn

FRAME: Final = HeadFrame(96)
"""The frame in which light is corrected."""
RIM: Final = 2
"""Width of the rim of a region, in pixels of that frame."""
DARK: Final = 12.0
"""Levels that are added before logarithms are taken, so that noise in shadows is no difference in light."""
SKIN: Final = (0.495, 0.49, 0.385, 0.50)
"""Ellipse of a crop that shows a face and nothing beside it: centre and half axes, in units of UTKFace's
crop."""
SOFT: Final = 0.16
"""Width of its soft edge, relative to the half axes."""
SEEN: Final = 0.9
"""Share of a pixel of a turned face that has to be face for its colour to count."""
ONE: Final = Similarity(1.0, 0.0, 0.0, 0.0)
Levels = Float32[np.ndarray, "_ _ 3"]
Share = Float32[np.ndarray, "_ _"]
Crop = UInt8[np.ndarray, "s s 3"]


@dataclass(frozen=True, eq=False)
class Light:
    """How a face is corrected: levels + `DARK` times `gain`. `skin` says how much skin the nearest rim shows,
    0 to 1. Both are in `FRAME`.
    """

    gain: Levels
    skin: Share

    def on(self, levels: Shaped[np.ndarray, "s s 3"], frame: AnyFrame) -> Levels:
        """Return levels of a frame in this light, 0 to 255."""
        gain = _moved(self.gain, frame, len(levels))
        return np.asarray(np.clip((levels + np.float32(DARK)) * gain - np.float32(DARK), 0, 255), np.float32)

    def skin_in(self, frame: Frame) -> Share:
        """Return the share of skin in the pixels of a frame."""
        return np.asarray(np.clip(_moved(self.skin, frame, frame.size), 0, 1))


@dataclass(frozen=True, eq=False)
class Inner:
    """A released face in its `frame`, turned as the head is; `shown` is 0 to 1, and 0 beyond its outline."""

    crop: Crop
    shown: Share
    frame: Frame

    @classmethod
    def of(cls, crop: Crop, frame: Frame, turn: Turn | None) -> Inner:
        """Return the face of a released crop after a turn."""
        if turn is None:
            return cls(crop, np.ones(crop.shape[:2], np.float32), frame)
        return cls(*turn.of(crop, frame), frame)

    @property
    def skin(self) -> Crop:
        """The face with its skin continued where the crop shows hair or a background."""
        return fill(self.crop, self.beside(_far(self.frame)))

    def beside(self, far: np.ndarray) -> Bool[np.ndarray, "s s"]:
        """Return which pixels show no face, by how `far` from its middle they are."""
        return np.asarray((far > 1 - SOFT / 2) | (self.shown < SEEN))

    def before(self, behind: Crop | None, light: Light) -> Crop:
        """Return the face in a light, with `behind` beyond its outline."""
        lit = np.rint(light.on(self.crop, self.frame))
        if behind is not None:
            lit = np.rint(behind + self.shown[..., None] * (lit - behind))
        return np.asarray(lit, np.uint8)


def light_of(
    own: Inner,
    pose: Similarity,
    region: Region,
    outside: UInt8[np.ndarray, "H W c"],
    hidden: Bool[np.ndarray, "H W"],
) -> Light:
    """Return the light of a released face in its region.

    `pose` maps the photo to the face's frame. `outside` is the photo with 0 under `hidden`: no pixel under
    `hidden` influences the result.
    """
    import cv2

    frame, side = own.frame, FRAME.size
    place = between(pose, frame, FRAME)
    around, sure = seen(outside, hidden, place, side)
    wide = np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8)
    inside = (cv2.dilate(_mask(region, place), wide) > 0) & ~sure
    rim = (cv2.dilate(inside.astype(np.uint8), wide) > 0) & sure
    if not rim.any():
        return Light(np.ones((side, side, 3), np.float32), np.zeros((side, side), np.float32))
    face = np.asarray(shrunk(own.skin, between(ONE, frame, FRAME), side), np.float32)
    tone = own.crop[patch_of(frame)].reshape(-1, 3).mean(axis=0)
    missed = np.log((around[rim].astype(np.float64) + DARK) / (face[rim] + DARK))
    correction, skin = stretched(inside, rim, skin_weights(around[rim], tone), missed)
    return Light(np.exp(correction), skin)


def drawn_face(own: Inner, head: DrawnCrop, pose: Similarity, light: Light) -> DrawnCrop:
    """Return the `head` around a face in this light; its skin is continued towards skin at the rim, and
    what is beyond the face, such as a neck, fades out where the rim is no skin.

    `pose` maps the photo to the face's frame.
    """
    frame = own.frame
    more = round(head.pose.x - pose.x)
    wide = Frame(frame.size + 2 * more, ((frame.size + 2 * more) / frame.unit - 1) / 2)
    known, hole = np.zeros((wide.size, wide.size, 3), np.uint8), np.ones((wide.size, wide.size), np.bool_)
    inner = slice(more, more + frame.size)
    known[inner, inner], hole[inner, inner] = own.crop, own.beside(_far(frame))
    skin = fill(known, hole).astype(np.float32)
    share = _step((_far(wide) - 1) / SOFT + 1)
    share[inner, inner] = np.maximum(share[inner, inner], 1 - own.shown)
    around = light.skin_in(wide)
    share *= around
    alpha = head.alpha * (1 - _step((_far(wide) - 1) / SOFT) * (1 - around))
    levels = head.levels + share[..., None] * (skin - head.levels)
    return replace(head, levels=light.on(levels, wide), alpha=np.maximum(alpha, share))


def _far(frame: Frame) -> np.ndarray:
    x, y, a, b = SKIN
    parts = grid(frame)
    return np.asarray(np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b))


def _mask(region: Region, place: Similarity) -> UInt8[np.ndarray, "s s"]:
    """Return the region's pixels in `FRAME`, to which `place` maps the photo."""
    import cv2

    box = region.box
    mask = np.ones((box.h, box.w), np.uint8) if region.mask is None else region.mask.astype(np.uint8)
    matrix = place.matrix
    matrix[:, 2] = place.to(np.array([[box.x, box.y]], np.float64))[0]
    return np.asarray(cv2.warpAffine(mask, matrix, (FRAME.size, FRAME.size), flags=cv2.INTER_NEAREST))


def _moved(plane: np.ndarray, frame: AnyFrame, size: int) -> np.ndarray:
    """Return a plane of `FRAME`, resampled to another frame of a face."""
    import cv2

    matrix = between(ONE, FRAME, frame).matrix
    mode, edge = cv2.INTER_LINEAR, cv2.BORDER_REPLICATE
    return np.asarray(cv2.warpAffine(plane, matrix, (size, size), flags=mode, borderMode=edge))


def _step(at: np.ndarray) -> Share:
    """Return a smooth step from 0 at 0 to 1 at 1."""
    t = np.clip(at, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)

"""A released crop that is drawn in place, without a network: a whole head, from the crop's own pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.colour_match import ColourMatch
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import grid, inside
from dpveil.faces.geometry.turn import Turn

TEMPLES: Final = ((0.0, 0.16), (0.84, 1.0))
"""Columns at the upper corners of the crop that usually show hair."""
HIGH: Final = 0.30
"""Lower end of the rows that do."""
DARK: Final = 0.2
"""Quantile of those pixels' luma up to which they are averaged to the hair's colour."""
FOREHEAD: Final = (0.493, 0.44, 0.425, 0.43)
"""Ellipse that hair does not cover: centre and half axes."""
BELOW: Final = 0.38
"""Lower end of the hair at the sides."""
CHEEKS: Final = (0.493, 0.70, 0.20, 0.10)
"""Ellipse from which the skin's colour is taken for the neck: centre and half axes."""
SHADE: Final = 0.74
"""Brightness of the neck relative to the cheeks."""
NECK: Final = 0.24
"""Half the width of the neck."""
UNDER: Final = (0.96, 1.10)
"""Rows between which the crop blends into the neck."""
SOFT_HAIR: Final = 0.07
"""Width of the soft edges of hair and neck."""
LIGHTEST: Final = 0.75
"""Largest luma of hair relative to the skin's: a white wall is not hair."""
WEIGHTS: Final = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in luma (ITU-R BT.601)."""
Levels = Float32[np.ndarray, "t t 3"]
Rows = tuple[slice, Float32[np.ndarray, "r t"]]


def with_hair_and_neck(levels: Levels, frame: Frame, crop: UInt8[np.ndarray, "s s 3"], own: Frame) -> Levels:
    """Return `levels`, an extension of `crop` to a larger frame, with hair and a neck drawn on it.

    `frame` is that of the levels and `own` that of the crop. The result depends on released pixels only.
    """
    cheeks, temples = _looked_at(own)
    skin = crop[cheeks].reshape(-1, 3).mean(axis=0)
    out = levels.astype(np.float32)
    hair, neck = _hair(crop[temples], skin), SHADE * skin
    for colour, (rows, share) in ((neck, _neck(frame)), (hair, _cap(frame))):
        out[rows] += share[..., None] * (colour.astype(np.float32) - out[rows])
    return out


@lru_cache(maxsize=4)
def _looked_at(own: Frame) -> tuple[Bool[np.ndarray, "s s"], Bool[np.ndarray, "s s"]]:
    """Return the pixels of a crop whose colours are taken: the cheeks, and the upper corners."""
    parts = grid(own)
    x, y = parts[..., 0], parts[..., 1]
    sides: Bool[np.ndarray, "s s"] = np.logical_or.reduce([(x >= low) & (x <= high) for low, high in TEMPLES])
    return inside(CHEEKS, parts), sides & (y <= HIGH)


def _hair(temples: UInt8[np.ndarray, "n 3"], skin: Float64[np.ndarray, 3]) -> Float64[np.ndarray, 3]:
    """Return the mean colour of the darkest pixels at the crop's upper corners, darker than the skin."""
    seen = temples.reshape(-1, 3).astype(np.float64)
    light = seen @ WEIGHTS
    dark = seen[light <= np.quantile(light, DARK)].mean(axis=0)
    most = LIGHTEST * float(skin @ WEIGHTS)
    return np.asarray(dark * min(1.0, most / max(float(dark @ WEIGHTS), 1.0)))


@lru_cache(maxsize=4)
def _cap(frame: Frame) -> Rows:
    """Return the rows with hair, and its alpha at each of their pixels, 0 to 1."""
    parts, (x, y, a, b) = grid(frame), FOREHEAD
    far = np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b)
    over = _step((far - 1) / (2 * SOFT_HAIR / b))
    return _rows(over * _step((BELOW - parts[..., 1]) / BELOW))


@lru_cache(maxsize=4)
def _neck(frame: Frame) -> Rows:
    """Return the same of the neck."""
    parts, (low, high) = grid(frame), UNDER
    down = _step((parts[..., 1] - low) / (high - low))
    across = _step((NECK - np.abs(parts[..., 0] - CHEEKS[0])) / SOFT_HAIR + 0.5)
    return _rows(down * across)


def _rows(alpha: Float64[np.ndarray, "t t"]) -> Rows:
    """Return the rows in which an alpha is above 0, and it there."""
    some = np.flatnonzero(alpha.any(axis=1))
    rows = slice(int(some.min(initial=len(alpha))), int(some.max(initial=-1)) + 1)
    return rows, alpha[rows].astype(np.float32)


def _step(at: np.ndarray) -> np.ndarray:
    """Return a smooth step from 0 at 0 to 1 at 1."""
    t = np.clip(at, 0, 1)
    return np.asarray(t * t * (3 - 2 * t))


NEEDED: Final = 0.45
"""Least `Frame.margin` of a crop that holds a head; a crop with less is extended from its own pixels."""
SHOWN: Final = ((0.493, 0.38, 0.51, 0.63), (0.493, 0.80, 0.30, 0.46))
"""Ellipses of the visible part of a crop, head and neck: centres and half axes, in units of UTKFace's
crop."""
SOFT: Final = 0.09
"""Width of their soft edge, relative to the half axes."""


@dataclass(frozen=True, eq=False)
class DrawnCrop:
    """Levels 0 to 255 and alpha 0 to 1 in a frame, to whose pixels `pose` maps the photo."""

    levels: Float32[np.ndarray, "t t 3"]
    alpha: Float32[np.ndarray, "t t"]
    pose: Similarity

    def on(
        self, box: Box, channels: int, match: ColourMatch
    ) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
        """Return alpha and levels, matched in colour and resampled to a box of the photo."""
        import cv2

        levels, pose = self.levels, self.pose
        levels = levels if channels == 3 else cv2.cvtColor(levels, cv2.COLOR_RGB2GRAY)[..., None]
        levels = match(levels)
        if pose.scale > 1:
            levels = cv2.GaussianBlur(levels, (0, 0), BLUR * math.sqrt(pose.scale**2 - 1))
        matrix = pose.inverse.matrix
        matrix[:, 2] -= box.x, box.y
        rounded = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        mode = cv2.INTER_LINEAR if pose.scale > 1 else cv2.INTER_CUBIC
        face = cv2.warpAffine(rounded, matrix, (box.w, box.h), flags=mode, borderMode=cv2.BORDER_REPLICATE)
        shown = cv2.warpAffine(self.alpha, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR)
        return np.asarray(shown, np.float32), np.asarray(face, np.uint8).reshape(box.h, box.w, channels)


def drawn_head(
    crop: UInt8[np.ndarray, "s s 3"], frame: Frame, pose: Similarity, turn: Turn | None = None
) -> DrawnCrop:
    """Return the crop, extended from its own pixels to hold a whole head, which is then turned."""
    one = frame.unit
    more = max(0, math.ceil((NEEDED - frame.margin) * one))
    if not more:
        return _turned(DrawnCrop(crop.astype(np.float32), _shown(frame), pose), frame, turn)
    size = frame.size + 2 * more
    known, hole = np.zeros((size, size, 3), np.uint8), np.ones((size, size), np.bool_)
    inner = slice(more, more + frame.size)
    known[inner, inner], hole[inner, inner] = crop, False
    levels = fill(known, hole).astype(np.float32)
    levels[inner, inner] = crop
    there = Similarity(pose.scale, pose.angle, pose.x + more, pose.y + more)
    wide = Frame(size, (size / one - 1) / 2)
    head = DrawnCrop(with_hair_and_neck(levels, wide, crop, frame), _shown(wide), there)
    return _turned(head, wide, turn)


def _turned(head: DrawnCrop, frame: Frame, turn: Turn | None) -> DrawnCrop:
    """Return the head in `frame` after a turn, with nothing beyond its outline on the far side."""
    if turn is None:
        return head
    levels, share = turn.of(head.levels, frame)
    return replace(head, levels=levels, alpha=_shown(frame, turn.back) * share)


@lru_cache(maxsize=16)
def _shown(frame: Frame, right: float = 0.0) -> Float32[np.ndarray, "s s"]:
    """Return the alpha of each pixel of a crop: 1 in the head, 0 outside it; `right` moves the head."""
    parts = grid(frame) - [right, 0]
    far = np.minimum(*(np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b) for x, y, a, b in SHOWN))
    soft = np.clip((1 - far) / SOFT, 0, 1)
    edge = np.clip(np.minimum(np.arange(frame.size), np.arange(frame.size)[::-1]) / (0.06 * frame.size), 0, 1)
    alpha = np.asarray(soft * soft * (3 - 2 * soft) * np.minimum(edge[:, None], edge), np.float32)
    alpha.setflags(write=False)
    return alpha

"""A released crop that is drawn in place, without a network: a whole head, from the crop's own pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.colour_match import ColourMatch
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.hair_and_neck import with_hair_and_neck
from dpveil.faces.geometry.head import grid
from dpveil.faces.geometry.turn import Turn

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

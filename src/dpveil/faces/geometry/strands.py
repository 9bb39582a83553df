"""Strands: hair that a network painted gets detail finer than the network's frame, from public noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.layout import HAIR, SKIN
from dpveil.noise.bits import SeededBits

BACK: Final = (0.5, 0.56, 0.0)
"""Where strands come from that are combed back: a point across and down, and half the width of the line on
which it lies, in units of the frame's side. Below the hair, so that they do not meet in it."""
PARTED: Final = (0.42, 0.10, 0.02)
"""The same for hair with a parting, at one side."""
FRINGE: Final = (0.5, 0.06, 0.05)
"""The same for hair that falls over the brow."""
LOW: Final = 0.30
"""Row of the hairline below which hair falls over the brow, in the same units."""
SIDES: Final = (0.48, 0.02)
"""Row of the ears, and how much of the rows below it is hair if it is long: it is not combed back."""
SWIRL: Final = 0.5
"""Largest turn of strands in radians, from their origin to a distance of half of the frame's side."""
WARP: Final = (0.02, 0.07)
"""Standard deviation by which strands are displaced across, and that of its blur, in units of the side."""
NEAR: Final = (0.03, 0.10)
"""Distances from the origin between which strands fade in."""
WIDE: Final = 1.3
"""Width of strands in pixels of the photo."""
LOCK: Final = 0.008
"""Width of locks of strands, in units of the frame's side."""
LOCKS: Final = 0.7
"""Contrast of locks relative to that of strands."""
COARSE: Final = 1.0
"""Pixels of the frame to a pixel of the photo from which on there are no strands."""
LONG: Final = 40.0
"""Length of strands relative to their width."""
STRIP: Final = (256, 1024)
"""Rows and columns of the pattern: along strands, and across."""
BLUR: Final = (0.8, 2.0, 6.0)
"""Standard deviations of the blur of its noise across strands, in its pixels, of equal weights."""
STRONG: Final = (0.16, 18.0, 11.0)
"""Contrast of strands; what is added to levels before it is applied; its limit in levels."""
Levels = UInt8[np.ndarray, "h w 3"]
Plane = Float32[np.ndarray, "s s"]


@dataclass(frozen=True, eq=False)
class Combing:
    """How hair lies in a frame: distances `across` and `along` strands in units of its side, and how strong
    strands are, 0 to 1, at every pixel.
    """

    across: Plane
    along: Plane
    share: Plane

    @classmethod
    def of(cls, layout: Float32[np.ndarray, "4 s s"], number: int) -> Combing:
        """Return how the hair of a layout lies; `number` chooses among the ways that suit it."""
        side = layout.shape[-1]
        bits = SeededBits(number, "hair")
        u = bits.words(4).astype(np.float64) / 2.0**64
        x, y, line = _origin(layout, u[0])
        mirrored = -1.0 if u[1] < 0.5 else 1.0
        grid = (np.arange(side, dtype=np.float32) + np.float32(0.5)) / side
        right = (grid - 0.5)[None, :] * mirrored + 0.5 - x
        right = np.sign(right) * np.maximum(np.abs(right) - line, 0)
        down = (grid - y)[:, None]
        far = np.hypot(right, down)
        angle = np.arctan2(right, down if y < 0.3 else -down)
        turn = angle + SWIRL * (2 * u[2] - 1) * 2 * far
        across = turn * max(0.15, abs(y - 0.18)) + _smooth(bits, side)
        share = layout[HAIR] * np.clip((far - NEAR[0]) / (NEAR[1] - NEAR[0]), 0, 1)
        return cls(*(np.asarray(one, np.float32) for one in (across, far, share)))


def _origin(layout: Float32[np.ndarray, "4 s s"], drawn: float) -> tuple[float, float, float]:
    """Return where strands come from."""
    side = layout.shape[-1]
    skin = layout[SKIN, :, round(0.42 * side) : round(0.58 * side)].mean(axis=1) > 0.5
    if np.argmax(skin) > LOW * side:
        return FRINGE
    if drawn < 0.4 or layout[HAIR, round(SIDES[0] * side) :].mean() > SIDES[1]:
        return PARTED
    return BACK


def _smooth(bits: SeededBits, side: int) -> Plane:
    import cv2

    few = bits.words(32).view(np.uint8).reshape(16, 16).astype(np.float32)
    soft = cv2.GaussianBlur(few, (0, 0), 16 * WARP[1])
    wide = cv2.resize((soft - soft.mean()) / soft.std(), (side, side), interpolation=cv2.INTER_CUBIC)
    return np.asarray(WARP[0] * wide, np.float32)


def combed(levels: Levels, hair: Combing, pose: Similarity, box: Box) -> Levels:
    """Return the levels in a box of the photo with strands of hair.

    `pose` maps the photo to the frame of `hair`. Strands are stronger the finer the photo is than the frame;
    where it is `COARSE` there are none.
    """
    import cv2

    fine = min(1.0, 2 * (COARSE - pose.scale))
    if fine <= 0:
        return levels
    back = pose.inverse.matrix
    back[:, 2] -= box.x, box.y
    share = cv2.warpAffine(hair.share, back, (box.w, box.h), flags=cv2.INTER_LINEAR)
    x, y, w, h = cv2.boundingRect((share > 0).astype(np.uint8))
    if w * h == 0:
        return levels
    view = slice(y, y + h), slice(x, x + w)
    back[:, 2] -= x, y
    across, along = (
        np.asarray(cv2.warpAffine(one, back, (w, h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
        for one in (hair.across, hair.along)
    )
    side = len(hair.share) / pose.scale
    pattern = _looked_up(across * side / WIDE, along * side / (WIDE * LONG))
    pattern = pattern + np.float32(LOCKS) * _looked_up(across / LOCK, along / (LOCK * LONG))
    part = levels[view].astype(np.float32) + np.float32(STRONG[1])
    light = part.mean(axis=2)
    change = pattern * share[view] * np.float32(fine) * np.minimum(STRONG[0], STRONG[2] / light)
    out = levels.copy()
    out[view] = np.clip(np.rint(levels[view] + change[..., None] * part), 0, 255)
    return out


def _looked_up(columns: Float32[np.ndarray, "h w"], rows: Float32[np.ndarray, "h w"]) -> np.ndarray:
    import cv2

    rows = rows * np.float32(8)
    strip = _strip()
    return np.asarray(cv2.remap(strip, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP))


@lru_cache(maxsize=1)
def _strip() -> Float32[np.ndarray, "256 1024"]:
    """Return the pattern, which continues at its edges, of standard deviation 0.7."""
    import cv2

    rows, columns = STRIP
    bits, total = SeededBits(1, "strands"), np.zeros(STRIP, np.float32)
    for width in BLUR:
        noise = bits.words(rows * columns // 8).view(np.uint8).reshape(STRIP).astype(np.float32)
        wide = cv2.copyMakeBorder(noise, 64, 64, 64, 64, cv2.BORDER_WRAP)
        soft = cv2.GaussianBlur(wide, (0, 0), sigmaX=width, sigmaY=8.0)[64:-64, 64:-64]
        total += (soft - soft.mean()) / soft.std()
    return np.asarray(total / total.std() / math.sqrt(2), np.float32)

"""Strands: hair that a network painted gets detail finer than the network's frame, from public noise."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.noise.bits import SeededBits

CROWN: Final = (0.5, 0.24)
"""Where strands begin, in units of the frame's side."""
FADED: Final = 0.06
"""Distance from the crown up to which strands fade in, in the same units."""
ARM: Final = 0.15
"""Distance from the crown at which strands have the width meant."""
WAVE: Final = (0.04, 24.0)
"""Amplitude in radians, and angular frequency by distance, of the waves of strands."""
DEPTH: Final = 128
"""Rows of a pattern: distances from the crown, up to half of the frame's side."""
TURN: Final = 2048
"""Columns of the finest pattern: angles."""
OCTAVES: Final = 5
"""Number of patterns, each half as fine as the one before."""
WIDE: Final = 1.2
"""Width of the finest strands in pixels of the photo."""
WEIGHTS: Final = (0.6, 0.6, 0.5)
"""Weights of a pattern and of the two that are coarser, for locks of strands."""
BLUR: Final = (0.8, 9.0)
"""Standard deviations of the blur of a pattern's noise across strands and along them, in its pixels."""
STRONG: Final = (0.16, 18.0, 11.0)
"""Contrast of strands; what is added to levels before it is applied; its limit in levels."""

Levels = UInt8[np.ndarray, "h w 3"]


def combed(levels: Levels, hair: Float32[np.ndarray, "s s"], pose: Similarity, box: Box) -> Levels:
    """Return the levels in a box of the photo with strands where there is `hair`, by shares from 0 to 1.

    `hair` is in the frame to which `pose` maps the photo. Strands are stronger the finer the photo is than
    the frame; where it is coarser there are none. The pattern is the same in every release.
    """
    import cv2

    fine = min(1.0, 2 * (1 - pose.scale))
    if fine <= 0:
        return levels
    back = pose.inverse.matrix
    back[:, 2] -= box.x, box.y
    share = cv2.warpAffine(hair, back, (box.w, box.h), flags=cv2.INTER_LINEAR)
    x, y, w, h = cv2.boundingRect((share > 0).astype(np.uint8))
    if w * h == 0:
        return levels
    view = slice(y, y + h), slice(x, x + w)
    pattern, near = _pattern(Box(box.x + x, box.y + y, w, h), pose, len(hair))
    part = levels[view].astype(np.float32) + np.float32(STRONG[1])
    light = part.mean(axis=2)
    change = pattern * near * share[view] * np.float32(fine) * np.minimum(STRONG[0], STRONG[2] / light)
    out = levels.copy()
    out[view] = np.clip(np.rint(levels[view] + change[..., None] * part), 0, 255)
    return out


def _pattern(
    box: Box, pose: Similarity, side: int
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """Return the pattern of strands in a box of the photo, of standard deviation 1, and its weight there."""
    import cv2

    matrix = pose.matrix
    across, down = box.x + np.arange(box.w, dtype=np.float32), box.y + np.arange(box.h, dtype=np.float32)
    x, y = (row[0] * across + row[1] * down[:, None] + np.float32(row[2] + 0.5) for row in matrix)
    far, angle = cv2.cartToPolar(
        (y / side - CROWN[1]).astype(np.float32), (x / side - CROWN[0]).astype(np.float32)
    )
    per_pixel = TURN / (2 * math.pi) * pose.scale / (side * ARM)
    strip = _strips()[min(max(0, round(math.log2(WIDE * per_pixel))), OCTAVES - 1)]
    angle += WAVE[0] * np.sin(WAVE[1] * far)
    columns = angle * np.float32(strip.shape[1] / (2 * math.pi))
    rows = np.minimum(far * np.float32(2 * DEPTH), DEPTH - 1)
    found = cv2.remap(strip, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    return np.asarray(found), np.clip(far / FADED, 0, 1).astype(np.float32)


@lru_cache(maxsize=1)
def _strips() -> list[Float32[np.ndarray, "128 _"]]:
    """Return the patterns, from the finest to the coarsest, each of standard deviation 1."""
    import cv2

    strips, bits = [], SeededBits(1, "strands")
    for octave in range(OCTAVES + len(WEIGHTS) - 1):
        turn = TURN >> octave
        noise = bits.words(DEPTH * turn // 8).view(np.uint8).reshape(DEPTH, turn).astype(np.float32)
        soft = cv2.GaussianBlur(np.tile(noise, (1, 3)), (0, 0), sigmaX=BLUR[0], sigmaY=BLUR[1])[
            :, turn : 2 * turn
        ]
        strips.append((soft - soft.mean()) / soft.std())
    mixed = []
    for octave in range(OCTAVES):
        size = (TURN >> octave, DEPTH)
        some = [cv2.resize(one, size) for one in strips[octave : octave + len(WEIGHTS)]]
        total = sum(weight * one for weight, one in zip(WEIGHTS, some, strict=True))
        mixed.append(np.asarray(total / np.std(total), np.float32))
    return mixed

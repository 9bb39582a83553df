"""A wall and clothes for heads around which nothing of the photo is seen, chosen by a public number."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.layout import CLOTHES
from dpveil.faces.geometry.painted import seen

WALLS: Final = (
    (128, 134, 140),
    (158, 152, 142),
    (104, 118, 134),
    (142, 130, 114),
    (168, 172, 174),
    (112, 124, 114),
    (92, 94, 102),
    (150, 160, 170),
)
"""Colours of walls: greys, most of them cool or warm."""
DIM: Final = 0.22
"""Share of the light that is missing at the corners."""
DYES: Final = (
    (0, 0, 0),
    (44, 30, 16),
    (0, 14, 46),
    (46, 46, 50),
    (56, 4, 12),
    (4, 32, 20),
    (88, 78, 62),
)
"""Colours that are added to black clothes; to lighter ones, less."""
BLACK: Final = 30.0
"""Levels of black clothes as networks paint them."""
PALE: Final = 150.0
"""Level from which on clothes, such as collars, stay as they are."""
Levels = Float32[np.ndarray, "s s 3"]


def wall(number: int, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return a wall that is lit in its middle."""
    down, across = (np.linspace(-1, 1, size, dtype=np.float32) for size in (height, width))
    light = 1 - np.float32(DIM) * (down[:, None] ** 2 + across**2) / 2
    return np.rint(light[..., None] * np.array(WALLS[number % len(WALLS)], np.float32)).astype(np.uint8)


def dyed(
    levels: Levels, layout: Float32[np.ndarray, "4 s s"], number: int, below: Float32[np.ndarray, 3] | None
) -> Levels:
    """Return the levels of a head with clothes of the colour that is seen `below` it, or of one of `DYES`."""
    dye = np.array(DYES[number // len(WALLS) % len(DYES)], np.float32)
    if below is not None:
        dye = np.maximum(below - np.float32(BLACK), 0)
    share = layout[CLOTHES] * np.clip(1 - levels.max(axis=2) / np.float32(PALE), 0, 1)
    return np.asarray(levels + share[..., None] * dye, np.float32)


def seen_below(
    outside: UInt8[np.ndarray, "H W k"], hidden: Bool[np.ndarray, "H W"], pose: Similarity, side: int
) -> Float32[np.ndarray, 3] | None:
    """Return the mean colour of what is seen of the photo nearest below a frame, or None if nothing is."""
    light, known = seen(outside, hidden, replace(pose, y=pose.y - side / 2), side)
    known[:, : side // 4] = known[:, side - side // 4 :] = False
    rows = np.flatnonzero(known.sum(axis=1) > side // 4)
    if len(rows) == 0:
        return None
    near = known & (np.arange(side)[:, None] < rows[0] + side // 10)
    return np.asarray(np.median(light[near], axis=0), np.float32)

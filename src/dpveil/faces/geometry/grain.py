"""Sharpness and grain of a released face: those that the photo has around it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Shaped, UInt8
from dpveil.core.region import Box
from dpveil.faces.geometry.colour_match import quantile
from dpveil.noise.bits import SeededBits
from dpveil.opencv import cv2

TILE: Final = 128  # side of the pattern of grain, in pixels, which repeats
FINE: Final = 0.6
"""Standard deviation of the blur of that pattern, in pixels: cameras and JPEG correlate neighbours."""
DETAIL: Final = 1.0
"""Standard deviation of the blur, in pixels, beyond whose resolution detail counts as grain."""
QUIET: Final = 0.15  # quantile of that detail, which edges and hair hardly change
AROUND: Final = 0.3
"""Width of the surroundings in which grain is measured, relative to the longer side of the region's box."""
ENOUGH: Final = 64  # least number of pixels in which grain is measured
MOST_GRAIN: Final = 4.0  # largest standard deviation of added grain, in levels
SHARE: Final = 0.7
"""Factor for the grain that is added: cameras have finer grain than the pattern, with more detail at the same
strength."""
BESIDE: Final = 0.12  # the same for sharpness: the person, who is in focus where a background may not be
EDGES: Final = 0.97  # quantile of detail that edges decide, by which sharpness is measured
NEAREST: Final = 12  # least width of these surroundings, in pixels: those next to what is hidden do not count
BLURS: Final = (0.45, 0.6, 0.75, 0.9, 1.2, 1.6, 2.1, 2.8)
"""Standard deviations of the blur of a face that is sharper than the photo, in pixels."""
Photo = UInt8[np.ndarray, "H W c"]
Hidden = Bool[np.ndarray, "H W"]
Face = UInt8[np.ndarray, "h w c"]
Levels = Float32[np.ndarray, "h w c"]
Share = Float32[np.ndarray, "h w"]


def add_grain(face: Face, shown: Share, box: Box, outside: Photo, hidden: Hidden) -> Face:
    """Return the levels of a face in a region's box with the grain that the photo has around it.

    `shown` is the alpha of the face. No pixel under `hidden` is read; the pattern is always the same.
    """
    wanted, own = _around(box, outside, hidden, QUIET), _detail(face, shown > 0.9, QUIET)
    if wanted is None or own is None or wanted <= own:
        return face
    tile = _pattern()
    missing = SHARE * float(np.sqrt(wanted**2 - own**2))
    needed = min(MOST_GRAIN, missing / (_detail(tile[..., None], tile < np.inf, QUIET) or 1.0))
    down, across = ((start + np.arange(length)) % TILE for start, length in ((box.y, box.h), (box.x, box.w)))
    noise = np.float32(needed) * tile[np.ix_(down, across)]
    return np.clip(np.rint(face + noise[..., None]), 0, 255).astype(np.uint8)


def match_sharpness(levels: Levels, shown: Share, box: Box, outside: Photo, hidden: Hidden) -> Levels:
    """Return the levels of a face no sharper than the photo around it."""
    wanted = _around(box, outside, hidden, EDGES, BESIDE)
    out = levels
    for blur in BLURS:
        own = _detail(out, shown > 0.9, EDGES)
        if wanted is None or own is None or own <= wanted:
            break
        out = cv2.GaussianBlur(levels, (0, 0), blur).reshape(levels.shape)
    return np.asarray(out, np.float32)


def _around(box: Box, outside: Photo, hidden: Hidden, share: float, wide: float = AROUND) -> float | None:
    """Return the detail around a box, in levels; None if little is seen."""
    more = max(NEAREST, round(wide * max(box.w, box.h)))
    rows = slice(max(0, box.y - more), box.y + box.h + more)
    columns = slice(max(0, box.x - more), box.x + box.w + more)
    apart = cv2.dilate(hidden[rows, columns].astype(np.uint8), np.ones((9, 9), np.uint8)) == 0
    return _detail(outside[rows, columns], apart, share)


def _detail(
    levels: Shaped[np.ndarray, "h w c"], where: Bool[np.ndarray, "h w"], share: float
) -> float | None:
    """Return a quantile of the detail of some pixels, in levels; None if they are few."""
    if np.count_nonzero(where) < ENOUGH:
        return None
    count = levels.shape[2]
    light = cv2.transform(levels.astype(np.float32), np.full((1, count), 1 / count, np.float32))
    detail = np.abs(light - cv2.GaussianBlur(light, (0, 0), DETAIL))
    return quantile(detail[where], share)


@lru_cache(maxsize=1)
def _pattern() -> Float32[np.ndarray, "128 128"]:
    """Return public noise of standard deviation 1."""
    draws = SeededBits(1, "grain").words(TILE * TILE).view(np.uint8).reshape(8, TILE, TILE)
    noise = draws.astype(np.float32).mean(axis=0) - np.float32(127.5)
    noise = cv2.GaussianBlur(np.tile(noise, (3, 3)), (0, 0), FINE)[TILE : 2 * TILE, TILE : 2 * TILE]
    return np.asarray(noise / noise.std(), np.float32)

"""Hair and neck around a released face whose crop has none, in colours of the crop's own pixels.

Positions are in units of UTKFace's crop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, UInt8

from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.head import grid, inside

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
SOFT: Final = 0.07
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
    over = _step((far - 1) / (2 * SOFT / b))
    return _rows(over * _step((BELOW - parts[..., 1]) / BELOW))


@lru_cache(maxsize=4)
def _neck(frame: Frame) -> Rows:
    """Return the same of the neck."""
    parts, (low, high) = grid(frame), UNDER
    down = _step((parts[..., 1] - low) / (high - low))
    across = _step((NECK - np.abs(parts[..., 0] - CHEEKS[0])) / SOFT + 0.5)
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

"""Hair and neck around a released face whose crop has none, in colours of the crop's own pixels.

Positions are in units of UTKFace's crop.
"""

from __future__ import annotations

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


def with_hair_and_neck(levels: Levels, frame: Frame, crop: UInt8[np.ndarray, "s s 3"], own: Frame) -> Levels:
    """Return `levels`, an extension of `crop` to a larger frame, with hair and a neck drawn on it.

    `frame` is that of the levels and `own` that of the crop. The result depends on released pixels only.
    """
    parts, mine = grid(frame), grid(own)
    skin = crop[inside(CHEEKS, mine)].reshape(-1, 3).mean(axis=0)
    out = levels
    hair, neck = _hair(crop, mine, skin), SHADE * skin
    for colour, share in ((neck, _neck(parts)), (hair, _cap(parts))):
        out = out + share[..., None] * (colour.astype(np.float32) - out)
    return np.asarray(out, np.float32)


def _hair(
    crop: UInt8[np.ndarray, "s s 3"], parts: Float64[np.ndarray, "s s 2"], skin: Float64[np.ndarray, 3]
) -> Float64[np.ndarray, 3]:
    """Return the mean colour of the darkest pixels at the crop's upper corners, darker than the skin."""
    x, y = parts[..., 0], parts[..., 1]
    sides: Bool[np.ndarray, "s s"] = np.logical_or.reduce([(x >= low) & (x <= high) for low, high in TEMPLES])
    seen = crop[sides & (y <= HIGH)].reshape(-1, 3).astype(np.float64)
    light = seen @ WEIGHTS
    dark = seen[light <= np.quantile(light, DARK)].mean(axis=0)
    most = LIGHTEST * float(skin @ WEIGHTS)
    return np.asarray(dark * min(1.0, most / max(float(dark @ WEIGHTS), 1.0)))


def _cap(parts: Float64[np.ndarray, "t t 2"]) -> Float32[np.ndarray, "t t"]:
    """Return the alpha of the hair at each position, 0 to 1."""
    x, y, a, b = FOREHEAD
    far = np.hypot((parts[..., 0] - x) / a, (parts[..., 1] - y) / b)
    over = _step((far - 1) / (2 * SOFT / b))
    return np.asarray(over * _step((BELOW - parts[..., 1]) / BELOW), np.float32)


def _neck(parts: Float64[np.ndarray, "t t 2"]) -> Float32[np.ndarray, "t t"]:
    low, high = UNDER
    down = _step((parts[..., 1] - low) / (high - low))
    across = _step((NECK - np.abs(parts[..., 0] - CHEEKS[0])) / SOFT + 0.5)
    return np.asarray(down * across, np.float32)


def _step(at: np.ndarray) -> np.ndarray:
    """Return a smooth step from 0 at 0 to 1 at 1."""
    t = np.clip(at, 0, 1)
    return np.asarray(t * t * (3 - 2 * t))

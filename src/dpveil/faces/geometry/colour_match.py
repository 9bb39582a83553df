"""Colour matching of released faces to the pixels outside the regions: saturation, brightness and skin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from dpveil.core.arrays import Bool, Float32, Shaped, UInt8
from dpveil.faces.geometry.align import Similarity, quantile
from dpveil.faces.geometry.head_frame import AnyFrame, HeadFrame, between
from dpveil.faces.geometry.tone import lightness

SAMPLES: Final = 1 << 16
"""Approximate number of outside pixels that are sampled."""
GREY: Final = (3.0, 9.0)
"""Differences between the largest and the least channel, in levels: if even the most colourful pixels have
less than the first, the photo is grey; from the second on it is in colour."""
BRIGHT: Final = 60.0
"""Levels by which a face may exceed the brightest part of the photo outside, if more than half of the photo
is outside: a face in front of a dark wall need not be dark."""
DARKEST: Final = 0.35
"""Least factor by which a face is darkened."""
WEIGHTS: Final = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in luma (ITU-R BT.601)."""
BELOW: Final = (0.08, 0.815, 0.9)
"""Where skin is looked for, below the chin: half the width, and from where to where, in units of the head
frame's side. Nothing else is looked at: hands, other people and wood have the colour of skin, too."""
SKIN: Final = ((25.0, 68.0), (13.0, 45.0), (25.0, 96.0))
"""Hue in degrees, chroma and lightness of skin, least and largest, in CIE Lab."""
ENOUGH: Final = 0.2
"""Least share of that place that has to be seen."""
PURE: Final = 0.7
"""Least share of what is seen there that has to be skin."""
EVEN: Final = 0.25
"""Largest range of its L*, from the 20 % to the 80 % quantile, relative to its median."""
LIGHTER: Final = 9.5
"""CIE L* by which such skin is lighter than the cheeks: about the median of 13 photos of LFW."""


@dataclass(frozen=True)
class ColourMatch:
    """A change of a face's levels: `colour` from 0 to 1 scales its saturation, `bright` is the level that its
    98 % quantile may reach.
    """

    colour: float
    bright: float

    def __call__(self, levels: Float32[np.ndarray, "h w c"]) -> Float32[np.ndarray, "h w c"]:
        """Return the matched levels of a released face."""
        if levels.shape[2] == 3 and self.colour < 1:
            grey = (levels @ WEIGHTS)[..., None]
            levels = grey + np.float32(self.colour) * (levels - grey)
        top = float(quantile(_most(levels).ravel(), 0.98))
        gain = max(DARKEST, min(1.0, self.bright / max(top, 1.0)))
        return np.asarray(levels * np.float32(gain), np.float32)


AS_IT_IS: Final = ColourMatch(1.0, 255.0)
"""No change."""


def match_of(outside: UInt8[np.ndarray, "H W c"], hidden: Bool[np.ndarray, "H W"]) -> ColourMatch:
    """Return the match to the pixels that are not hidden; the identity if they are few."""
    step = max(1, int((hidden.size / SAMPLES) ** 0.5))
    seen = outside[::step, ::step][~hidden[::step, ::step]].astype(np.int16)
    if len(seen) < 256:
        return AS_IT_IS
    most = len(seen) > 0.5 * hidden[::step, ::step].size
    bright = float(quantile(_most(seen), 0.98)) + BRIGHT if most else 255.0
    if seen.shape[1] == 1:
        return ColourMatch(1.0, bright)
    low, high = GREY
    colourful = float(quantile(_most(seen) + _most(-seen), 0.99))
    return ColourMatch(min(1.0, max(0.0, (colourful - low) / (high - low))), bright)


def _most(levels: Shaped[np.ndarray, "*n c"]) -> Shaped[np.ndarray, "*n"]:
    """Return the largest channel of each pixel, in a tenth of the time of NumPy's `max`."""
    return reduce(np.maximum, np.moveaxis(levels, -1, 0))


def skin_below(
    outside: UInt8[np.ndarray, "H W c"], hidden: Bool[np.ndarray, "H W"], place: Similarity, frame: AnyFrame
) -> float | None:
    """Return the CIE L* of a face by the skin that is seen below it, or None where too little is certain.

    `place` maps the photo to `frame`. Only pixels that are not hidden are read.
    """
    import cv2

    half, top, bottom = BELOW
    grid = np.meshgrid(np.linspace(-half, half, 25) + 0.5, np.linspace(top, bottom, 14))
    at = between(place, frame, HeadFrame(1)).back(np.stack([one.ravel() for one in grid], axis=1) - 0.5)
    x, y = np.rint(at).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < hidden.shape[1]) & (y < hidden.shape[0])
    x, y = x[inside], y[inside]
    x, y = x[~hidden[y, x]], y[~hidden[y, x]]
    if outside.shape[2] == 1 or len(x) < ENOUGH * grid[0].size:
        return None
    pixels = outside[y, x]
    light, a, b = cv2.cvtColor(pixels[None].astype(np.float32) / 255, cv2.COLOR_RGB2LAB)[0].T
    looks = np.degrees(np.arctan2(b, a)), np.hypot(a, b), light
    skin = np.logical_and.reduce(
        [(one >= low) & (one <= high) for one, (low, high) in zip(looks, SKIN, strict=True)]
    )
    if skin.mean() < PURE:
        return None
    low, middle, high = np.quantile(light[skin], (0.2, 0.5, 0.8))
    return None if high - low > EVEN * middle else lightness(pixels[skin]) - LIGHTER

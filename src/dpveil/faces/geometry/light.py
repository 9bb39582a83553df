"""The light in which an inner face is shown: that of the skin at the rim of its region.

Everything is a function of the pixels outside all regions, and of released pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.core.arrays import Float32, UInt8
from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.around import Around
from dpveil.faces.geometry.head_frame import INNER, HeadFrame, between, pixel_grid
from dpveil.faces.geometry.membrane import TINT, levels_of, skin_weights, stretched
from dpveil.faces.geometry.tone import patch_of
from dpveil.faces.geometry.view import View, seen

FRAME: Final = HeadFrame(96)
"""The frame in which light is corrected."""
RIM: Final = 2
"""Width of the rim of a region, in pixels of that frame."""
CHIN: Final = 0.6
"""Row of the frame from which on a rim shows chin and jaws, which hair hardly covers."""
BROW: Final = 0.1
"""How likely a pixel of the rim above it is to be skin, beside one below."""
DOME: Final = (-0.25, 0.35)
"""Least and largest gain of a face's middle beside its rim, as a logarithm; the rest is gained all over."""
WHOLE: Final = 1.15
"""The gain in the middle, for a mean of 1 over cheeks and nose."""
SHOULDER: Final = 190.0
"""Level from which on lightness is compressed."""
DARK: Final = 12.0
"""Levels that are added before logarithms are taken, so that noise in shadows is no difference in light."""
Levels = Float32[np.ndarray, "_ _ 3"]
Share = Float32[np.ndarray, "_ _"]


@dataclass(frozen=True, eq=False)
class Light:
    """How a face is corrected: levels + `DARK` times `gain`. `skin` says how much skin the nearest rim shows,
    0 to 1. Both are in `FRAME`.
    """

    gain: Levels
    skin: Share

    def on(self, place: Similarity, box: Box) -> tuple[Levels, Share]:
        """Return both in a box of the photo that `place` maps to a head's frame with a side of 1."""
        import cv2

        matrix = between(place, HeadFrame(1), FRAME).inverse.matrix
        matrix[:, 2] -= box.x, box.y
        both = np.dstack([self.gain, self.skin])
        mode, edge = cv2.INTER_LINEAR, cv2.BORDER_REPLICATE
        there = cv2.warpAffine(both, matrix, (box.w, box.h), flags=mode, borderMode=edge)
        return np.asarray(there[..., :3]), np.clip(there[..., 3], 0, 1)

    @staticmethod
    def lit(levels: Levels, gain: Levels) -> Levels:
        """Return levels with a gain, 0 to 255; the lightest are compressed, so that no face glares."""
        dark, top = np.float32(DARK), np.float32(SHOULDER)
        lit = np.clip((levels + dark) * gain - dark, 0, None)
        room = 255 - top
        over = top + room * (1 - np.exp(-np.maximum(lit - top, 0) / room))
        return np.asarray(np.where(lit > top, over, lit), np.float32)


def light_of(
    view: View,
    region: Region,
    around: Around,
) -> Light:
    """Return the light of a released face in its region.

    Only what is `around` it has influence.
    """
    import cv2

    side, there = FRAME.size, between(around.place, HeadFrame(1), FRAME)
    outside, sure = seen(around.outside, around.hidden, there, side)
    wide = np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8)
    inside = (cv2.dilate(_mask(region, there), wide) > 0) & ~sure
    rim = (cv2.dilate(inside.astype(np.uint8), wide) > 0) & sure
    if not rim.any():
        return Light(np.ones((side, side, 3), np.float32), np.zeros((side, side), np.float32))
    patch, read = patch_of(FRAME), rim.copy()
    read[patch] = True
    rows, columns = (np.flatnonzero(read.any(axis=axis)).tolist() for axis in (1, 0))
    near = Box(columns[0], rows[0], columns[-1] + 1 - columns[0], rows[-1] + 1 - rows[0])
    face, _ = view.framed(side, skin=True, near=near)
    missed = np.log((outside[rim].astype(np.float64) + DARK) / (face[rim] + DARK))
    sure = np.where(np.argwhere(rim)[:, 0] > CHIN * side, 1.0, BROW)
    correction, skin = stretched(inside, rim, skin_weights(outside[rim], sure, grey=around.grey), missed)
    gain = np.exp(correction).astype(np.float32)
    middle = np.clip(1 - INNER.far(pixel_grid(side)) ** 2, 0, 1)[..., None]
    goal = None if around.cheeks is None else np.log(levels_of(around.cheeks) + DARK)
    for _ in range(0 if goal is None else 2):  # light that is compressed answers less
        missed = goal - np.log(Light.lit(face[patch], gain[patch]).mean(axis=(0, 1)) + DARK)
        light, domed = missed.mean(), np.clip(missed.mean(), *DOME)
        dome = WHOLE * (domed + np.clip(missed - light, -TINT, TINT))
        gain *= np.exp(middle * dome + (light - domed)).astype(np.float32)
    return Light(gain, skin)


def _mask(region: Region, place: Similarity) -> UInt8[np.ndarray, "s s"]:
    """Return the region's pixels in `FRAME`, to which `place` maps the photo."""
    import cv2

    box = region.box
    mask = np.ones((box.h, box.w), np.uint8) if region.mask is None else region.mask.astype(np.uint8)
    matrix = place.matrix
    matrix[:, 2] = place.to(np.array([[box.x, box.y]], np.float64))[0]
    return np.asarray(cv2.warpAffine(mask, matrix, (FRAME.size, FRAME.size), flags=cv2.INTER_NEAREST))

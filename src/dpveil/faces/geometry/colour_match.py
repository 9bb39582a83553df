"""Colour matching of released faces to the pixels outside: saturation and brightness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

SAMPLES: Final = 1 << 16
"""Approximate limit on the outside pixels that are examined."""
GREY: Final = (3.0, 9.0)
"""Levels between the largest and the least channel: a photo whose most colourful pixels have less than the
first has no colour; from the second on it has."""
BRIGHT: Final = 60.0
"""Levels by which a face may be brighter than the brightest part of the photo around it, where more than half
of the photo is seen: a face before a dark wall is not dark."""
DARKEST: Final = 0.35
"""Largest factor by which a face is darkened."""
WEIGHTS: Final = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True)
class ColourMatch:
    """What is done to a face's levels: `colour` is how much of its colour stays, `bright` the level that its
    brightest parts may reach.
    """

    colour: float
    bright: float

    def __call__(self, levels: Float32[np.ndarray, "h w c"]) -> Float32[np.ndarray, "h w c"]:
        """Return released levels, matched; reads nothing else."""
        if levels.shape[2] == 3 and self.colour < 1:
            grey = (levels @ WEIGHTS)[..., None]
            levels = grey + np.float32(self.colour) * (levels - grey)
        top = float(np.quantile(levels.max(axis=2), 0.98))
        gain = max(DARKEST, min(1.0, self.bright / max(top, 1.0)))
        return np.asarray(levels * np.float32(gain), np.float32)


def match_of(outside: UInt8[np.ndarray, "H W c"], hidden: Bool[np.ndarray, "H W"]) -> ColourMatch:
    """Return the match to the pixels that are not hidden; one that changes nothing where they are few."""
    step = max(1, int((hidden.size / SAMPLES) ** 0.5))
    seen = outside[::step, ::step][~hidden[::step, ::step]].astype(np.int16)
    if len(seen) < 256:
        return ColourMatch(1.0, 255.0)
    most = len(seen) > 0.5 * hidden[::step, ::step].size
    bright = float(np.quantile(seen.max(axis=1), 0.98)) + BRIGHT if most else 255.0
    if seen.shape[1] == 1:
        return ColourMatch(1.0, bright)
    low, high = GREY
    colourful = float(np.quantile(seen.max(axis=1) - seen.min(axis=1), 0.99))
    return ColourMatch(min(1.0, max(0.0, (colourful - low) / (high - low))), bright)

"""The light in which a head is shown: by pixels outside what is replaced, slowly.

The brightness of what is worn just below a head tells of its light; where too little is seen of that, only a
picture that is much darker than it was does, such as one that fades out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Bool, Float64, UInt8

from dpveil.faces.geometry.align import Similarity

BELOW: Final = (0.22, 0.9, 1.06)
"""Where what is worn is looked at: half the width, and from where to where, in sides of the head's frame."""
ENOUGH: Final = 0.3
"""Least share of that place that has to be seen."""
EVERY: Final = 12
"""Rows and columns from one pixel of the picture to the next that are looked at."""
DARK: Final = 8.0
"""Levels that are added before logarithms are taken."""
FREE: Final = 0.5
"""By how much a picture may darken, as a logarithm, before a head does."""
STEADY: Final = 0.1
"""Change of what is worn, as a logarithm, that a head does not follow: folds, hands, noise."""
MOST: Final = (-2.5, 0.35)
"""Least and largest logarithm of the factor of a head's levels."""
LEAST: Final = 1e-3
"""Least change that is shown."""
SECONDS: Final = 1.2
"""Over how long light is averaged."""


@dataclass(frozen=True)
class Light:
    """The mean level of what is worn `below` a head, None where too little is seen, and of the `picture`."""

    below: float | None
    picture: float

    @classmethod
    def seen(
        cls, outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"], head: Similarity
    ) -> Self:
        """Return the light in a picture; no pixel that is `hidden` is read."""
        worn = _worn()
        at = np.rint(head.back(worn)).astype(int)
        at = at[(at >= 0).all(axis=1) & (at < hidden.shape[::-1]).all(axis=1)]
        at = at[~hidden[at[:, 1], at[:, 0]]]
        enough = len(at) >= ENOUGH * len(worn)
        below = float(outside[at[:, 1], at[:, 0]].mean()) if enough else None
        return cls(below, brightness(outside, hidden))

    def change(self, other: Light) -> float:
        """Return the logarithm of the factor from this light to another one."""
        return _change(self, other)

    def facts(self) -> dict[str, Any]:
        """Return the light as JSON."""
        return {"below": self.below, "picture": self.picture}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """Return a light that was stored; raises a built-in error for what none can be."""
        below = None if facts["below"] is None else float(facts["below"])
        picture = float(facts["picture"])
        if not all(0 <= level <= 255 for level in (picture, below or 0.0)):
            raise ValueError("light")
        return cls(below, picture)


@lru_cache(maxsize=4096)  # asked for again in every frame of `SECONDS`
def _change(before: Light, after: Light) -> float:
    least, most = MOST
    darker = min(0.0, math.log((after.picture + DARK) / (before.picture + DARK)) + FREE)
    if before.below is None or after.below is None:
        return max(least, darker)
    worn = math.log((after.below + DARK) / (before.below + DARK))
    return min(most, max(least, math.copysign(max(0.0, abs(worn) - STEADY), worn)))


@lru_cache(maxsize=1)
def _worn() -> Float64[np.ndarray, "n 2"]:
    """Return where what is worn is looked at, in a head's frame with a side of 1."""
    half, top, bottom = BELOW
    x, y = np.meshgrid(np.linspace(0.5 - half, 0.5 + half, 24), np.linspace(top, bottom, 10))
    return np.stack([x.ravel(), y.ravel()], axis=1) - 0.5


def brightness(outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"]) -> float:
    """Return the mean level of the picture outside; 0 if nothing of it is seen."""
    few = outside[::EVERY, ::EVERY][~hidden[::EVERY, ::EVERY]]
    return float(few.mean()) if len(few) else 0.0


def lit(levels: UInt8[np.ndarray, "h w c"], change: float) -> UInt8[np.ndarray, "h w c"]:
    """Return levels in another light; `change` is the logarithm of the factor."""
    import cv2

    if abs(change) < LEAST:
        return levels
    table = np.clip(np.rint((np.arange(256) + DARK) * math.exp(change) - DARK), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(levels, table)).reshape(levels.shape)

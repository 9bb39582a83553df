"""The classes of a layout: what each pixel of a completed head shows."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float32

BACKGROUND, HAIR, SKIN, CLOTHES = range(4)
CLASSES: Final = 4
"""Number of the classes."""
NECK: Final = (0.07, 0.10, 0.62, 0.68, 0.75, 0.80)
"""The public place of a neck: half widths between which it ends, rows between which it begins, and rows
between which it ends, in units of the frame's side."""
SURE: Final = (0.7, 0.7)
"""What is added to the logits of skin below the rows where a neck begins, and to those of the neck besides:
collars end at different heights, and the most likely class alone gives everybody one up to the chin."""


@lru_cache(maxsize=8)
def neck(side: int) -> Float32[np.ndarray, "4 s s"]:
    """Return what is added to the logits of the classes in a frame, so that a head has a neck."""
    along = (np.arange(side) + 0.5) / side
    half, beside, chin, low, collar, end = NECK
    below = np.clip((along - chin) / (low - chin), 0, 1)
    high = below * np.clip((end - along) / (end - collar), 0, 1)
    middle = np.clip((beside - np.abs(along - 0.5)) / (beside - half), 0, 1)
    out = np.zeros((CLASSES, side, side), np.float32)
    out[SKIN] = SURE[0] * below[:, None] + SURE[1] * np.outer(high, middle)
    return out


LOOK: Final = 8
"""Numbers of a look at each place."""
STRIDE: Final = 8
"""Pixels of the frame between those places."""

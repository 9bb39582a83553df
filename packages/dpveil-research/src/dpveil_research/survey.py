"""A synthetic survey in place of the thesis's census file, which may not be redistributed.

Only its means are those that the thesis gives: family size 2.02 from 1 to 7, 2.27 of 10 people with a degree.
People are independent, which they need not be in a real file.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.noise.bits import SeededBits

GROUPS: Final = 2000
PEOPLE: Final = 10
SIZES: Final = (424, 328, 118, 85, 29, 10, 6)
"""Families of size 1, 2, ..., 7 per thousand; the mean is 2.021."""
DEGREES: Final = 227
"""People with a degree per thousand."""


def groups(seed: int) -> tuple[Float64[np.ndarray, " groups"], Float64[np.ndarray, " groups"]]:
    """Return the mean family size and the number of degrees of every group of ten."""
    words = SeededBits(seed).words(2 * GROUPS * PEOPLE).reshape(2, GROUPS, PEOPLE) % np.uint64(1000)
    sizes = 1 + np.searchsorted(np.cumsum(SIZES), words[0], side="right")
    degrees = words[1] < DEGREES
    return sizes.mean(axis=1), degrees.sum(axis=1).astype(np.float64)

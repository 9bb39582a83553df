"""The calmest line through the intervals of a coarse grid, and means along it."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

ROUNDS: Final = 400
"""Sweeps in which the calmest line is approached; after any of them it is within its intervals."""
TAPS: Final = 9
"""Positions of a mean along a line."""

Series = Float64[np.ndarray, " n"]


def calm(frames: Series, middle: Series, reach: Series) -> Series:
    """Return values at `frames`, each within `reach` of its `middle`, whose line has the least slope.

    It minimises the sum of squared slopes by sweeps over every other value: what stays within common limits
    does not move. Its bends lie where intervals force them.
    """
    low, high = middle - reach, middle + reach
    line = middle.astype(np.float64).copy()
    if len(line) < 2:
        return line
    pull = 1 / np.diff(frames)
    before, after = np.r_[0.0, pull], np.r_[pull, 0.0]
    for sweep in range(2 * ROUNDS):
        some = slice(sweep % 2, None, 2)
        left, right = np.r_[line[0], line[:-1]], np.r_[line[1:], line[-1]]
        wanted = (before * left + after * right) / (before + after)
        line[some] = np.clip(wanted, low, high)[some]
    return line


def mean_at(frame: float, frames: Series, line: Series, blur: float) -> float:
    """Return the mean of a line from `frame` - `blur` to `frame` + `blur`; beyond its ends it is constant."""
    if blur <= 0:
        return float(np.interp(frame, frames, line))
    return float(np.interp(frame + np.linspace(-blur, blur, TAPS), frames, line).mean())

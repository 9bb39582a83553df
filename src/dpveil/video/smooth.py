"""The calmest line through the intervals of a coarse grid, and means along it."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

ROUNDS: Final = 80
"""Sweeps at most in which the calmest lines are approached; after any of them they are within intervals."""
FASTER: Final = 1.6
"""Factor of a step (over-relaxation)."""
NEAR: Final = 1e-4
"""Steps that end the search, relative to an interval."""
TAPS: Final = 9
"""Positions of a mean along a line."""

Series = Float64[np.ndarray, " n"]
Lines = Float64[np.ndarray, "k n"]


def calm(frames: Series, middle: Lines, reach: Lines) -> Lines:
    """Return lines of values at `frames`, each within `reach` of its `middle`, with the least slopes.

    They minimise sums of squared slopes, by sweeps over every other value (projected over-relaxation): what
    stays within common limits does not move, and bends lie where intervals force them.
    """
    low, high = middle - reach, middle + reach
    line = middle.astype(np.float64).copy()
    least, most = low.max(axis=1, keepdims=True), high.min(axis=1, keepdims=True)
    still = least <= most
    line = np.where(still, np.broadcast_to((least + most) / 2, line.shape), line)
    if len(frames) < 2 or still.all():
        return line
    pull = 1 / np.diff(frames)
    before, after = np.r_[0.0, pull], np.r_[pull, 0.0]
    share = before / (before + after)
    for _ in range(ROUNDS):
        last = line.copy()
        for some in (slice(0, None, 2), slice(1, None, 2)):
            left, right = np.roll(line, 1, 1), np.roll(line, -1, 1)
            wanted = right + share * (left - right)
            line[:, some] = np.clip(line + FASTER * (wanted - line), low, high)[:, some]
        if (np.abs(line - last) <= NEAR * reach).all():
            break
    return line


def mean_at(frame: float, frames: Series, line: Series, blur: float) -> float:
    """Return the mean of a line from `frame` - `blur` to `frame` + `blur`; beyond its ends it is constant."""
    if blur <= 0:
        return float(np.interp(frame, frames, line))
    return float(np.interp(frame + np.linspace(-blur, blur, TAPS), frames, line).mean())

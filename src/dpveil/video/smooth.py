"""The calmest course through the intervals of a coarse grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64

ROUNDS: Final = 150
"""Steps in which the calmest lines are approached; after any of them they are within their intervals."""
SLOPE: Final = 0.02
"""Weight of slopes beside that of bends: what can stay where it is does."""
PULL: Final = 0.1
"""Weight with which lines are drawn into their intervals (the step of the alternating directions)."""

Series = Float64[np.ndarray, " n"]
Lines = Float64[np.ndarray, "k n"]


def calm(frames: Series, middle: Lines, reach: Lines, near: Sequence[float] | None = None) -> Lines:
    """Return lines of values at `frames`, each within `reach` of its `middle`, that bend the least.

    A line that can be constant is. The others minimise the sum of squared bends, a little of slopes, and if
    given `near` times the squared distances from `middle`, for each line, by alternating directions (Boyd et
    al. 2011), with one factor of a banded matrix for all steps.
    """
    near = [0.0] * len(middle) if near is None else near
    low, high = middle - reach, middle + reach
    least, most = low.max(axis=1, keepdims=True), high.min(axis=1, keepdims=True)
    still = np.broadcast_to((least + most) / 2, middle.shape)
    if (least <= most).all():
        return np.array(still, np.float64)
    lines = np.array([_bent(frames, *line) for line in zip(middle, low, high, near, strict=True)])
    return np.asarray(np.where(least <= most, still, lines))


def _bent(frames: Series, middle: Series, low: Series, high: Series, near: float) -> Series:
    """Return a line between `low` and `high` with the least bends; two frames at least."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    energy = _energy(np.diff(frames) / np.diff(frames).mean())
    energy[0] += near
    factor = cholesky_banded(energy, lower=True)
    line, missed = middle.copy(), np.zeros(middle.shape)
    for _ in range(ROUNDS):
        smooth = cho_solve_banded((factor, True), PULL * (line - missed) + near * middle)
        line = np.clip(smooth + missed, low, high)
        missed += smooth - line
    return np.asarray(line)


def _energy(steps: Series) -> Float64[np.ndarray, "3 n"]:
    """Return the matrix of the squared bends and slopes of a line and of `PULL`: its diagonals, from the
    main one downwards. `steps` are those between the line's values.
    """
    count = len(steps) + 1
    bands = np.zeros((3, count))
    bands[0] = PULL
    slope = SLOPE / steps
    bands[0, :-1] += slope
    bands[0, 1:] += slope
    bands[1, :-1] -= slope
    before, after = 1 / steps[:-1], 1 / steps[1:]
    bend = np.array([before, -before - after, after])
    for first in range(3):
        for second in range(first, 3):
            bands[second - first, first : first + len(before)] += bend[first] * bend[second]
    return bands

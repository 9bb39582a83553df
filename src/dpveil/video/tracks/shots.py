"""Cuts between shots, from the change of small pictures; flashes and fades are none."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

SIZE: Final = (48, 27)
"""Width and height of the pictures that are compared."""
THIN: Final = 100
"""Frames are thinned to about so many pixels on the shorter side before."""
SHIFT: Final = 4
"""Pixels by which a picture may be shifted between two frames, as in a pan."""
BINS: Final = 32
EMPTY: Final = 3.0
"""Standard deviation in levels below which a picture shows nothing, as in a flash or a fade."""
ALIKE: Final = 0.3
"""Correlation of two pictures above which they are of one shot, whatever their levels."""
SAME: Final = 0.6
"""The same where their levels differ by more than `LEVELS`."""
LEVELS: Final = 0.45
"""Share of pixels whose levels differ."""
SUDDEN: Final = 2.5
"""A cut changes the picture by so many times the change of the frames before."""
SLOW: Final = 0.8
"""Share of the former changes in their running mean."""


class Shots:
    """Looks at the frames of a clip in order and says where a shot begins."""

    def __init__(self) -> None:
        self._last: Float32[np.ndarray, "h w"] | None = None
        self._usual = 0.0

    def begins(self, grey: UInt8[np.ndarray, "h w"]) -> bool:
        """Return whether a shot begins with the next frame, of the clip or of a small copy.

        Pictures that show nothing are compared with nothing: after them, the last one that does counts. So a
        flash is no cut, and what follows a fade to black is one if it shows something else.
        """
        import cv2

        step = max(1, min(grey.shape) // THIN)
        thin = np.ascontiguousarray(grey[::step, ::step])
        now = cv2.resize(thin, SIZE, interpolation=cv2.INTER_AREA).astype(np.float32)
        if now.std() < EMPTY:
            return False
        before, self._last = self._last, now
        if before is None:
            return False
        like = _correlation(before, now)
        change = min(1 - like, 1.0)
        sudden = change > SUDDEN * self._usual
        limit = SAME if _levels_differ(before, now) > LEVELS else ALIKE
        cut = like < limit and sudden
        self._usual = SLOW * self._usual + (1 - SLOW) * change
        return cut


def _correlation(before: Float32[np.ndarray, "h w"], now: Float32[np.ndarray, "h w"]) -> float:
    """Return the best correlation of two pictures over small shifts, which does not depend on exposure."""
    import cv2

    inner = np.ascontiguousarray(before[SHIFT:-SHIFT, SHIFT:-SHIFT])
    if inner.std() < EMPTY:
        inner = before
    return float(cv2.matchTemplate(now, inner, cv2.TM_CCOEFF_NORMED).max())


def _levels_differ(before: Float32[np.ndarray, "h w"], now: Float32[np.ndarray, "h w"]) -> float:
    """Return the share of pixels by which two histograms of levels differ."""
    import cv2

    counts = [cv2.calcHist([picture], [0], None, [BINS], [0, 256]) for picture in (before, now)]
    return float(np.abs(counts[0] - counts[1]).sum() / (2 * before.size))

"""Non-local means (Buades, Coll & Morel 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import Between
from dpveil.postprocessing.base import Step

PATCH: Final = 7
"""Side of the compared patches in pixels."""
WINDOW: Final = 21
"""Side of the area in which similar patches are searched, in pixels."""


@dataclass(frozen=True)
class NonLocalMeans(Step):
    """Each level becomes a mean of levels with similar patches around them; `strength` is in grey levels.

    Patches of 7 × 7 pixels are compared within 21 × 21. The strength is usually close to the standard
    deviation of the noise.
    Raises `InvalidParameter`. Source: Buades, Coll & Morel 2005, by OpenCV.

    >>> NonLocalMeans(10)(np.full((8, 8, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "non-local-means"
    usual: ClassVar[str] = "non-local-means:10"
    summary: ClassVar[str] = "mean over patches that look alike; strength in grey levels"

    strength: Between = Between("0.001", 1000, hint="in grey levels, such as 10")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the denoised levels, channel by channel."""
        planes = [
            cv2.fastNlMeansDenoising(
                np.ascontiguousarray(image[:, :, k]), None, float(self.strength), PATCH, WINDOW
            )
            for k in range(image.shape[2])
        ]
        return np.stack(planes, axis=2).astype(np.uint8)

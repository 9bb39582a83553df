"""Total-variation denoising (Rudin, Osher & Fatemi 1992; Chambolle & Pock 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import Between
from dpveil.postprocessing.base import Step

ITERATIONS: Final = 60
"""Iterations of the solver."""


@dataclass(frozen=True)
class TotalVariation(Step):
    """TV-L1 denoising: minimises total variation plus the L1 distance to the release divided by `weight`.

    `weight` is from 0.001 to 1000 and has no unit: 1 keeps edges, 3 keeps only large areas. Raises
    `InvalidParameter`. Source: Chambolle & Pock 2011, by OpenCV.

    >>> TotalVariation(1)(np.full((8, 8, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "total-variation"
    usual: ClassVar[str] = "total-variation:1"
    summary: ClassVar[str] = "least total variation near the release; weight without unit"

    weight: Between = Between("0.001", 1000, hint="such as 1")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the denoised levels, channel by channel."""
        weight, out = 1 / float(self.weight), np.empty_like(image)
        for k in range(image.shape[2]):
            plane = np.ascontiguousarray(image[:, :, k])
            smooth = np.empty_like(plane)
            cv2.denoise_TVL1([plane], smooth, weight, ITERATIONS)
            out[:, :, k] = smooth
        return out

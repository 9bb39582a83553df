"""Gaussian blur (Croft 2022 §6 uses σ = 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import Between
from dpveil.postprocessing.base import Step


@dataclass(frozen=True)
class GaussianBlur(Step):
    """Gaussian blur of each channel; `sigma` is the standard deviation in pixels, 0.001 to 1000.

    Raises `InvalidParameter`. Source: Croft 2022 §6.

    >>> GaussianBlur(1)(np.full((4, 4, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "gaussian"
    usual: ClassVar[str] = "gaussian:1"
    summary: ClassVar[str] = "Gaussian blur; standard deviation in pixels"

    sigma: Between = Between("0.001", 1000, hint="in pixels, such as 1")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the blurred levels; the edge is replicated."""
        sigma = float(self.sigma)
        blurred = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, np.uint8).reshape(image.shape)

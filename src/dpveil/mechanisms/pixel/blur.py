"""Gaussian blur: a baseline that promises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import Json
from dpveil.core.parameters import Between
from dpveil.mechanisms.pixel.baseline import Baseline
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class Blur(Baseline):
    """Gaussian blur within the region; nothing is promised.

    `sigma` is the standard deviation in pixels, 0.001 to 1000, with no default. Edge pixels are replicated,
    so nothing outside the region is read. For comparison only, as without noise there is no guarantee. Raises
    `InvalidParameter`. Source: common practice; OpenCV.

    >>> Blur(sigma=8).guarantee(height=120, width=88, channels=3).kind
    'heuristic'
    """

    name: ClassVar[str] = "blur"
    summary: ClassVar[str] = "Gaussian blur, a baseline that promises nothing"
    source: ClassVar[str] = "common practice"
    help: ClassVar[Mapping[str, str]] = {
        "sigma": "Standard deviation of the blur in pixels.",
    }
    typical: ClassVar[dict[str, Json]] = {"sigma": 8}
    broken_by: ClassVar[tuple[str, ...]] = (
        "deblurring: a blur with a known kernel is a linear map, undone but for rounding",
        "comparing: known faces, blurred alike, are matched with the release (parrot attack: Newton, Sweeney"
        " and Malin 2005; Hill et al. 2016)",
        "learning: networks trained on blurred photos recognise faces and digits (McPherson, Shokri and"
        " Shmatikov 2016)",
    )

    sigma: Between = Between("0.001", 1000, hint="in pixels, such as 8")

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        blurred = cv2.GaussianBlur(image, (0, 0), float(self.sigma), borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, np.uint8).reshape(image.shape)

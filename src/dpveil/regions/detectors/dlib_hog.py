"""dlib's frontal face detector: histograms of oriented gradients, the fallback without a network."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from dpveil.assets.engines import frontal_detector
from dpveil.assets.trained_files import INSTALL
from dpveil.core.arrays import Float, UInt8
from dpveil.errors import UsageError
from dpveil.regions.detectors import Detector
from dpveil.regions.tiling import suppress

SMALL: Final = 640
"""Images with a longer side of at most so many pixels are doubled, to find faces of 40 pixels and not 80."""
UP: Final = 0.25  # share of the height by which boxes are extended at the top: dlib's begin at the eyebrows


class DlibHOG(Detector):
    """The HOG detector of the package dlib-bin: upright frontal faces of at least 80 pixels."""

    name = "dlib"
    threshold = Fraction(1, 2)
    doubtful = Fraction(2, 5)
    smallest = 80
    notes = (
        "faces were found by dlib, which misses faces that are small, turned or tilted; CenterFace misses"
        f" fewer: {INSTALL}",
    )

    def __init__(self) -> None:
        try:
            self._detector: Any = frontal_detector()
        except ImportError as error:
            raise UsageError("the face detector dlib is not installed", hint=INSTALL) from error

    @classmethod
    def is_installed(cls) -> bool:
        return find_spec("dlib") is not None

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return the faces of an image; scores are the logistic function of dlib's, whose threshold is 0."""
        cut = float(np.log(threshold / (1 - threshold)))
        doubled = int(max(image.shape[:2]) <= SMALL)
        boxes, scores, _ = self._detector.run(np.ascontiguousarray(image), doubled, cut)
        found = [
            [
                *(box.left(), box.top() - UP * box.height(), box.width(), (1 + UP) * box.height()),
                float(1 / (1 + np.exp(-score))),
            ]
            for box, score in zip(boxes, scores, strict=True)
        ]
        return suppress(np.array(found, np.float64).reshape(-1, 5))

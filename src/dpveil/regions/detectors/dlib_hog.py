"""dlib's frontal face detector: histograms of oriented gradients, the fallback without a network."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.assets.defaults import INSTALL
from dpveil.assets.frontal import frontal_detector
from dpveil.errors import UsageError
from dpveil.regions.detectors.base import Detector
from dpveil.regions.detectors.suppress import suppress

SMALL: Final = 640
"""A picture whose long side is at most this is doubled, for faces of 40 pixels; else 80 are needed."""

UP: Final = 0.25
"""How far boxes are raised at their top, as a part of their height: they begin at the eyebrows."""


class DlibHOG(Detector):
    """The detector of the package dlib-bin: upright frontal faces of 80 pixels and more."""

    name = "dlib"
    threshold = Fraction(1, 2)
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
    def installed(cls) -> bool:
        """Whether the package dlib-bin (or dlib) is there."""
        return find_spec("dlib") is not None

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return the faces of an sRGB picture; scores are 1 / (1 + e^-s) of dlib's own s, whose cut is 0."""
        cut = float(np.log(threshold / (1 - threshold)))
        doubled = int(max(image.shape[:2]) <= SMALL)
        boxes, scores, _ = self._detector.run(np.ascontiguousarray(image), doubled, cut)
        found = [
            [box.left(), box.top() - UP * box.height(), box.width(), (1 + UP) * box.height(), squash(score)]
            for box, score in zip(boxes, scores, strict=True)
        ]
        return suppress(np.array(found, np.float64).reshape(-1, 5))


def squash(score: float) -> float:
    """Return 1 / (1 + e^-score).

    >>> squash(0.0)
    0.5
    """
    return float(1 / (1 + np.exp(-score)))

"""Face detectors: dpveil's own, in a file, and those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float, UInt8
from dpveil.core.registry import DETECTORS
from dpveil.errors import UnknownName


class Detector(ABC):
    """Finds faces in an image; an instance is used for many images, but never by two threads at once.

    Creating a detector raises `UsageError` with an install hint if something is missing. Bounding boxes reach
    from the forehead to the chin, in pixels of the given image, and may lie partly outside it. Scores are
    between 0 and 1 and comparable within one detector only: they are not probabilities.
    """

    name: ClassVar[str]
    threshold: ClassVar[Fraction]
    """Default of the least score that counts as a face."""

    doubtful: ClassVar[Fraction | None] = None
    """Least score of what looks a little like a face, which runs count and leave as it is; None: nothing.

    Only for detectors that find the same faces, in the same order, if they are asked for lower scores too."""

    smallest: ClassVar[int] = 24
    """Least height in pixels at which it reliably finds faces."""

    def another(self) -> Detector:
        """Return a detector with the same network for another thread."""
        return type(self)()

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height (pixels) and score of each face that scores at least `threshold`.

        `image` has sRGB levels 0..255. No two boxes have an intersection over union above `tiling.OVERLAP`.
        Raises `RegionError` for invalid output of the network, and any error of the underlying library.
        """


__all__ = ["AUTO", "DETECTORS", "REMEDY", "Detector", "check", "choose"]

REMEDY: Final = "choose another detector, or protect the whole photo"
AUTO: Final = "auto"


def check(name: str) -> None:
    """Raise `UnknownName` for an unknown detector."""
    if name != AUTO and name not in DETECTORS:
        raise UnknownName("detector", name, (AUTO, *DETECTORS))


def choose(name: str) -> Detector:
    """Return the detector of that name, or dpveil's own for "auto".

    Raises `UnknownName`, `UsageError` with an install hint if the detector is not installed, and
    `PluginError` for a plug-in that fails.
    """
    check(name)
    detector: Detector = DETECTORS[next(iter(DETECTORS.rows)) if name == AUTO else name]()
    return detector

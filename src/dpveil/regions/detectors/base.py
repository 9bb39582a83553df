"""The interface of a face detector: pixels in, boxes with scores out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.errors import RegionError


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

    notes: tuple[str, ...] = ()
    """Warnings for certificates if the user did not choose this detector by name."""

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of a network supplied by the user; empty for others."""
        return ""

    def another(self) -> Detector:
        """Return a detector with the same network for another thread, even if its file has changed."""
        return type(self)()

    @classmethod
    @abstractmethod
    def installed(cls) -> bool:
        """Whether the detector can be created without arguments."""

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height (pixels) and score of each face that scores at least `threshold`.

        `image` has sRGB levels 0..255. No two boxes have an intersection over union above `suppress.OVERLAP`.
        Raises `RegionError` for invalid output of the network, and any error of the underlying library.
        """


OVERLAP: Final = 0.3
"""Intersection over union above which two boxes are taken for the same face."""
REMEDY: Final = "choose another detector, or protect the whole photo"


def suppress(found: Float[np.ndarray, "n 5"], overlap: float = OVERLAP) -> Float[np.ndarray, "m 5"]:
    """Return the rows (left, top, width, height, score) left by greedy non-maximum suppression, best first.

    A box is dropped if its intersection over union with a kept one of at least its score is above `overlap`.
    Equal scores keep their order. Raises `RegionError` for non-finite numbers and non-positive sides.

    >>> suppress(np.array([[0, 0, 10, 10, 0.5], [1, 0, 10, 10, 0.9], [20, 0, 10, 10, 0.4]]))[:, 4]
    array([0.9, 0.4])
    """
    if not (np.isfinite(found).all() and (found[:, 2:4] > 0).all()):
        raise RegionError("the face detector returned something that is not a box", hint=REMEDY)
    rest = found[np.argsort(-found[:, 4], kind="stable")]
    kept = []
    while len(rest):
        kept.append(rest[0])
        rest = rest[1:][overlaps(rest[0], rest[1:]) <= overlap]
    return np.array(kept, dtype=found.dtype).reshape(-1, 5)


def overlaps(one: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Float[np.ndarray, " n"]:
    """Return the intersection over union of one box with each of many."""
    start = np.maximum(one[:2], many[:, :2])
    stop = np.minimum(one[:2] + one[2:4], many[:, :2] + many[:, 2:4])
    shared = np.prod(np.maximum(stop - start, 0), axis=1)
    areas = one[2] * one[3] + many[:, 2] * many[:, 3]
    return np.asarray(shared / (areas - shared))

"""The interface of a face detector: pixels in, boxes with scores out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import Float, UInt8


class Detector(ABC):
    """Finds faces in one picture; created once, used for many pictures, never concurrently.

    A detector raises `UsageError` with an install hint on creation if something is missing. Its boxes reach
    from the forehead to the chin, in pixels of the given picture; they may lie partly outside. Scores are
    between 0 and 1 and comparable within one detector only: they are not probabilities.
    """

    name: ClassVar[str]
    threshold: ClassVar[Fraction]
    """The score from which a face counts unless the user says otherwise."""

    smallest: ClassVar[int] = 24
    """Height in pixels of the faces that it is expected to find; smaller ones by chance."""

    notes: tuple[str, ...] = ()
    """What a certificate warns of where this detector was not chosen by the user."""

    @property
    def digest(self) -> str:
        """SHA-256 of a network that the user brought, else empty."""
        return ""

    def another(self) -> Detector:
        """Return such a detector for another thread: of the same network, whatever lies in its file now."""
        return type(self)()

    @classmethod
    @abstractmethod
    def installed(cls) -> bool:
        """Whether the detector can be made without anything from the user."""

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height and score of each face whose score is at least `threshold`.

        Two boxes never cover one another by more than `suppress.OVERLAP`. Raises whatever the library below
        raises, and `RegionError` where it returns what cannot be.
        """

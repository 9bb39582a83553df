"""Figures: heads that are released as such, and drawn where and as large as they are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.head import AnyFrame

Step = Callable[[UInt8[np.ndarray, "h w c"]], UInt8[np.ndarray, "h w c"]]
Shown = tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w 3"]]


class Figure(ABC):
    """A released head that is no picture yet: it depends on nothing private but what a draw released."""

    @abstractmethod
    def after(self, step: Step) -> Figure:
        """Return the same, followed by a step wherever it is drawn."""

    @abstractmethod
    def on(
        self,
        pose: Similarity,
        frame: AnyFrame,
        box: Box,
        outside: UInt8[np.ndarray, "H W c"],
        hidden: Bool[np.ndarray, "H W"],
    ) -> Shown:
        """Return how much of the head shows in a box of the photo (0 to 1), and the head there, in sRGB.

        `pose` takes the photo to `frame`. `outside` is the photo with 0 under `hidden`, which is all that may
        be seen of it.
        """

    @abstractmethod
    def alone(self, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
        """Return a portrait of this size, in sRGB."""

    @abstractmethod
    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the head in a canonical crop, in sRGB."""

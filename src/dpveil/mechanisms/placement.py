"""A method with the regions of one photo as they will be replaced, before anything is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from jaxtyping import UInt8

from dpveil.core.region import Region
from dpveil.noise.bits import BitSource

Image = UInt8[np.ndarray, "h w c"]
Step = Callable[[Image], Image]
"""What follows the draw within each region, such as a filter."""


class Size(TypedDict):
    """Of a region, in pixels."""

    height: int
    width: int
    channels: int


class Placement(ABC):
    """Regions of one photo, in the order in which they were asked for, each grown and placed by a method."""

    regions: tuple[Region, ...]

    @abstractmethod
    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo in which every region was drawn anew, followed by the steps."""

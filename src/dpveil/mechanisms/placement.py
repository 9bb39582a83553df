"""The regions of one photo as a method will replace them, before anything is drawn."""

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
"""Post-processing within each region, such as a filter."""


class Size(TypedDict):
    """The size of a region in pixels, and its number of channels."""

    height: int
    width: int
    channels: int


class Placement(ABC):
    """The regions of one photo in the order of the request, each grown and placed by a method."""

    regions: tuple[Region, ...]
    notes: tuple[str, ...] = ()
    """Notes for the owner of the original, which no certificate has."""

    @abstractmethod
    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with every region drawn and then passed through `steps`."""

"""The regions of one photo as a method will replace them, before anything is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Final, NamedTuple, TypedDict

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource

Image = UInt8[np.ndarray, "h w c"]
Step = Callable[[Image], Image]
"""Post-processing within each region, such as a filter."""


class Size(TypedDict):
    """The size of a region in pixels, and its number of channels."""

    height: int
    width: int
    channels: int


FARTHEST: Final = (30.0, 10.0)
"""Largest yaw and pitch to which faces are turned, in degrees."""


class Pose(NamedTuple):
    """Where a face looks, in degrees: `yaw` to the right of the picture, `pitch` downwards."""

    yaw: float
    pitch: float

    @classmethod
    def of(cls, value: object) -> Pose:
        """Return a pose given as two numbers; raises `InvalidParameter` beyond `FARTHEST`."""
        hint = f"yaw and pitch in degrees, up to {FARTHEST[0]:g} and {FARTHEST[1]:g} to either side"
        if not isinstance(value, list | tuple) or len(value) != len(FARTHEST):
            raise InvalidParameter("pose", value, "is not two numbers", hint=hint)
        for at, most in zip(value, FARTHEST, strict=True):
            if isinstance(at, bool) or not isinstance(at, Real) or not abs(float(at)) <= most:
                raise InvalidParameter("pose", at, "is no angle in range", hint=hint)
        return cls(*map(float, value))


@dataclass(frozen=True, eq=False)
class Drawn:
    """A photo whose regions were drawn, and what shows it `again` with its faces in another pose.

    `again` is None if nothing can; it holds no pixel of a region and draws nothing.
    """

    image: Image
    again: Callable[[Pose], Image] | None = None


class Placement(ABC):
    """The regions of one photo in the order of the request, each grown and placed by a method."""

    photo: Photo
    regions: tuple[Region, ...]
    notes: tuple[str, ...] = ()
    """Notes for the owner of the original, which no certificate has."""

    @abstractmethod
    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with every region drawn and then passed through `steps`."""

    def drawn(self, bits: BitSource, steps: Sequence[Step]) -> Drawn:
        """Return the same, with what shows it again."""
        return Drawn(self.draw(bits, steps))

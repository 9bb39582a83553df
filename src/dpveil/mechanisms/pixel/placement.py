"""Placement of pixel-space methods: each region is replaced in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.mechanisms.placement import Image, Placement, Step
from dpveil.noise.bits import BitSource
from dpveil.regions.grow import grow

if TYPE_CHECKING:
    from dpveil.mechanisms.pixel.base import PixelMethod


class Pixels(Placement):
    """Regions grown to whole blocks of a lossy format, each drawn by a pixel-space method."""

    def __init__(self, photo: Photo, regions: Iterable[Region], method: PixelMethod) -> None:
        self.photo, self.method = photo, method
        self.regions = tuple(grow(region, photo) for region in regions)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with each region of the original released by the method and passed through
        `steps`.
        """
        image = self.photo.image.copy()
        for region in self.regions:
            released = self.method.release(region.crop(self.photo.image), bits=bits)
            for step in steps:
                released = step(released)
            region.paste(image, released)
        return image

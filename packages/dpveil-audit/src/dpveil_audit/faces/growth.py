"""Audit cases for growth: lossy photos with regions, and traces of a region that a release may show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.mechanisms.pixel import Fill
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil.release.pipeline import obfuscate
from dpveil.release.saving import Release
from dpveil_audit.entry import Bits, Variant
from dpveil_audit.faces.photos import Encoding, Places, neighbours, places, scene

SPARSE: Final = 24
"""One in this many pixels of a mask's box is in the mask."""


@dataclass(frozen=True)
class GrowthCase:
    """A synthetic photo of height × width pixels, its encoding, and the regions to protect."""

    encoding: Encoding
    height: int
    width: int
    boxes: tuple[Box, ...]
    masked: bool = False

    def asked(self, bits: BitSource) -> tuple[Region, ...]:
        """Return the requested regions; masks have few pixels."""
        if not self.masked:
            return tuple(Region(box) for box in self.boxes)
        masks = [
            bits.words(box.w * box.h).reshape(box.h, box.w) % np.uint64(SPARSE) == 0 for box in self.boxes
        ]
        for mask in masks:
            mask[-1, -1] = True
        return tuple(Region(box, mask) for box, mask in zip(self.boxes, masks, strict=True))

    def photos(self, asked: tuple[Region, ...], bits: BitSource) -> Iterator[tuple[str, Photo]]:
        """Yield one photo and its neighbours as decoded; they differ within `asked` before encoding."""
        image = scene(bits, self.height, self.width, self.encoding.channels)
        yield "as it was", self.encoding.photo(image)
        for name, other in neighbours(image, places(asked, self.height, self.width), bits):
            yield name, self.encoding.photo(other)

    def __str__(self) -> str:
        where = " and ".join(map(str, self.boxes))
        return f"{self.width} × {self.height}, {self.encoding}, {'mask in ' if self.masked else ''}{where}"


@dataclass(frozen=True, eq=False)
class MadeLossy:
    """The photos of a case, made once for all gates and mutants."""

    case: GrowthCase
    bits: Bits

    @cached_property
    def asked(self) -> tuple[Region, ...]:
        """The requested regions."""
        return self.case.asked(self.bits(f"{self.case} asked"))

    @cached_property
    def photos(self) -> list[tuple[str, Photo]]:
        """The photo and its neighbours as decoded, by the contents of their regions."""
        return list(self.case.photos(self.asked, self.bits(f"{self.case} photos")))


ReleaseOf = Callable[[Photo, tuple[Region, ...], PixelMethod, BitSource], Release]


def released(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
    """Return dpveil's own release."""
    return obfuscate(photo, method, regions=list(asked), bits=bits)


@dataclass(frozen=True, kw_only=True)
class GrowthVersion(Variant):
    """One way to release regions of a lossy photo: dpveil's own, or a mutant."""

    release: ReleaseOf = released

    def painted(self, photo: Photo, asked: tuple[Region, ...], bits: BitSource) -> tuple[Places, Release]:
        """Return which pixels are replaced, by painting them in two levels, and one of the releases."""
        black, white = (self.release(photo, asked, Fill(level=level), bits) for level in (0, 255))
        seen: Places = (black.image != white.image).any(axis=2)
        return seen, black


def with_growth(name: str, grown: Callable[[Region, Photo], Region]) -> GrowthVersion:
    """Return a version whose regions grow in another way, and are listed accordingly."""

    def release(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
        own = tuple(grown(region, photo) for region in asked)
        return released(Photo(photo.image), own, method, bits)

    return GrowthVersion(name=name, gates=("escape", "release"), release=release)

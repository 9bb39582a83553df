"""Objects beside faces: what is no face gets one grey level, and no face is placed or drawn by its pixels.

Boxes that a user gives are covered before anything is searched for, so nothing reads their pixels at all.
Text and the like that is found is covered once faces are found, before they are placed: the boxes of faces,
which certificates say follow from the photo's pixels, are all that may follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import NoRegion
from dpveil.faces.head_placement import HeadPlacement, without_their_chroma
from dpveil.mechanisms.method import Image, Placement, Step
from dpveil.mechanisms.pixel.base import Pixels
from dpveil.mechanisms.pixel.common_practice import Fill
from dpveil.noise.bits import BitSource
from dpveil.regions import Finder
from dpveil.regions.other_finders import NonFaceFinder

GREY_FILL: Final = Fill(level=128)
"""How methods that replace faces replace everything else: 0-DP for any two photos."""


class MixedPlacement(Placement):
    """The placement of objects and of faces, if there are any, in one photo.

    Objects are covered first, and the faces are read and drawn from what can be seen then: neither a crop of
    a face nor what completes it holds a pixel of an object. `heads` are placed in what `hidden` returns.
    """

    def __init__(self, photo: Photo, regions: Sequence[Region], heads: HeadPlacement | None) -> None:
        self.photo, self.heads = photo, heads
        self.covers = _covers(photo, regions)
        objects, faces = iter(self.covers.regions), iter(() if heads is None else heads.regions)
        self.regions = tuple(next(objects if is_object(region) else faces) for region in regions)
        self.notes = () if heads is None else heads.notes

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        covered = self.covers.draw(bits, steps)
        if self.heads is None:
            return covered
        photo = Photo(covered, self.photo.grid, blocks=self.photo.blocks)
        return self.heads.draw_in(without_their_chroma(photo, self.regions), bits, steps)


def is_object(region: Region) -> bool:
    """Whether a region is a box around an object or text, which gets no face."""
    return region.origin.faceless and region.mask is None


def hidden(photo: Photo, regions: Sequence[Region]) -> Photo:
    """Return the photo with the objects among `regions` covered; the photo itself if there are none."""
    covers = _covers(photo, regions)
    if not covers.regions:
        return photo
    image = photo.image.copy()
    for region in covers.regions:
        region.paste(image, np.full((region.box.h, region.box.w, photo.channels), GREY_FILL.level, np.uint8))
    return Photo(image, photo.grid, photo.notes, photo.blocks)


def searched(photo: Photo, finders: Sequence[Finder]) -> Photo:
    """Return the photo in which faces and all else are searched for: objects that a user gives are covered.

    Text and the like is not: faces under captions are found as well. Raises `RegionError` for a box beyond
    it.
    """
    given: list[Region] = []
    for finder in finders:
        if not finder.data_dependent:
            with suppress(NoRegion):  # the search reports it
                given += finder(photo)
    return hidden(photo, given)


def placed_in(photo: Photo, finders: Sequence[Finder]) -> Photo:
    """Return a searched photo with what is found and is no face covered, as faces are placed and drawn in it.

    Raises `RegionError` if a search fails.
    """
    things = [finder for finder in finders if isinstance(finder, NonFaceFinder)]
    return hidden(photo, [region for finder in things for region in finder.find(photo)])


def _covers(photo: Photo, regions: Sequence[Region]) -> Pixels:
    return Pixels(photo, [region for region in regions if is_object(region)], GREY_FILL)

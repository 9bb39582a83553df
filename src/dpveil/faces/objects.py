"""Objects beside faces: what is no face gets one grey level, and nothing else reads its pixels.

Objects are covered before faces are searched for and placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import NoRegion
from dpveil.faces.heads import Heads
from dpveil.mechanisms.pixel.fill import Fill
from dpveil.mechanisms.pixel.placement import Pixels
from dpveil.mechanisms.placement import Drawn, Image, Placement, Step
from dpveil.noise.bits import BitSource
from dpveil.regions import Finder
from dpveil.regions.things import Things

COVER: Final = Fill(level=128)
"""How methods that replace faces replace everything else: 0-DP for any two photos."""


class Among(Placement):
    """The placement of objects and of faces, if there are any, in one photo.

    Objects are covered first, and the faces are read and drawn from what can be seen then: neither a crop of
    a face nor what completes it holds a pixel of an object. `heads` are placed in the photo that `hidden`
    returns.
    """

    def __init__(self, photo: Photo, regions: Sequence[Region], heads: Heads | None) -> None:
        self.photo, self.heads = photo, heads
        self.covers = _covers(photo, regions)
        objects, faces = iter(self.covers.regions), iter(() if heads is None else heads.regions)
        self.regions = tuple(next(objects if is_object(region) else faces) for region in regions)
        self.notes = () if heads is None else heads.notes

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with its objects covered and other faces."""
        return self.drawn(bits, steps).image

    def drawn(self, bits: BitSource, steps: Sequence[Step]) -> Drawn:
        """Return the same, with what shows it again."""
        covered = self.covers.draw(bits, steps)
        if self.heads is None:
            return Drawn(covered)
        return self.heads.drawn_in(Photo(covered, self.photo.grid), bits, steps)


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
        region.paste(image, np.full((region.box.h, region.box.w, photo.channels), COVER.level, np.uint8))
    return Photo(image, photo.grid, photo.notes)


def searched(photo: Photo, finders: Sequence[Finder]) -> Photo:
    """Return the photo in which faces are searched for: objects that a user gives are covered, and what is
    found in the rest and is no face, such as text.

    Raises `RegionError` for a box outside the photo, and if a search fails.
    """
    given: list[Region] = []
    for finder in finders:
        if not finder.data_dependent:
            with suppress(NoRegion):  # the search reports it
                given += finder(photo)
    seen = hidden(photo, given)
    things = [finder for finder in finders if isinstance(finder, Things)]
    covered = hidden(seen, [region for finder in things for region in finder.found(seen)])
    for finder in things:
        finder.remember(seen, covered)
    return covered


def _covers(photo: Photo, regions: Sequence[Region]) -> Pixels:
    return Pixels(photo, [region for region in regions if is_object(region)], COVER)

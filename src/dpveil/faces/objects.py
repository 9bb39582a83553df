"""Objects beside faces: what is no face gets one grey level, and nothing else reads its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpveil.core.origin import OBJECT
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.faces.heads import Heads
from dpveil.mechanisms.pixel.fill import Fill
from dpveil.mechanisms.pixel.placement import Pixels
from dpveil.mechanisms.placement import Drawn, Image, Placement, Step
from dpveil.noise.bits import BitSource

COVER: Final = Fill(level=128)
"""How methods that replace faces replace everything else: 0-DP for any two photos."""


class Among(Placement):
    """The placement of objects and of faces, if there are any, in one photo.

    Objects are covered first, and the faces are read and drawn from what can be seen then: neither a crop of
    a face nor what completes it holds a pixel of an object.
    """

    def __init__(self, photo: Photo, regions: Sequence[Region], heads: Heads | None) -> None:
        self.photo, self.heads = photo, heads
        self.covers = Pixels(photo, [region for region in regions if is_object(region)], COVER)
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
    """Whether a region is a box around an object, which gets no face."""
    return region.origin.kind == OBJECT and region.mask is None

"""The named finders; a new one gets a row here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpveil.core.origin import WHOLE
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.regions.faces import Faces
from dpveil.regions.finder import Finder
from dpveil.regions.text import Plates, Text


@dataclass(frozen=True)
class Whole(Finder):
    """The whole photo as one region: only its size and number of channels stay in the clear."""

    kind = WHOLE
    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        """Return "whole"."""
        return "whole"

    def __call__(self, photo: Photo) -> list[Region]:
        """Return one region of every pixel."""
        return [Region.whole(photo)]


TABLE: Final[dict[str, Finder]] = {
    "whole": Whole(),
    "faces": Faces(),
    "text": Text(),
    "plates": Plates(),
}
"""Finders by their names on the command line."""

"""The whole photo as one region."""

from __future__ import annotations

from dataclasses import dataclass

from dpveil.core.origin import WHOLE
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.regions.finder import Finder


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

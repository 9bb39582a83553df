"""Regions of a photo as a plan finds them, grown to the blocks of a lossy format."""

from __future__ import annotations

from collections.abc import Sequence

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.regions import parse, search
from dpveil.regions.growth import grow


def find(photo: Photo, specs: Sequence[object]) -> tuple[Region, ...]:
    """Return the regions that `specs` select, in order; raises what a plan raises."""
    found, missing = search(photo, [parse(spec) for spec in specs])
    for error in missing.values():
        raise error
    return tuple(grow(region, photo) for region in found)

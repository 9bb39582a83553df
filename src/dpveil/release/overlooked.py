"""What a search may have overlooked in a photo: what is too small for it, and what it was not sure of.

Both are for the owner of the original and in no certificate: whether something scores a little less than a
face may follow from pixels that are replaced, and a guarantee does not take it into account.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.regions import Finder


def smallest(photo: Photo, finders: Sequence[Finder]) -> dict[str, int]:
    """Return the height in pixels below which no region of a kind was searched for, by any finder."""
    heights = [(finder.kind, finder.smallest_in(photo)) for finder in finders]
    falling = sorted(((n, kind) for kind, n in heights if n is not None), reverse=True)
    return {kind: n for n, kind in falling}


def doubtful(photo: Photo, finders: Sequence[Finder], placed: Sequence[Region]) -> tuple[Region, ...]:
    """Return the places that no finder was sure of and of which the middle is not replaced.

    So there are none in a photo that is replaced as a whole.
    """
    seen = (place for finder in finders for place in finder.doubtful_in(photo))
    return tuple(place for place in seen if not any(region.touches(_middle(place.box)) for region in placed))


def _middle(box: Box) -> Box:
    """Return the pixel in the middle of a box."""
    return Box(box.x + box.w // 2, box.y + box.h // 2, 1, 1)

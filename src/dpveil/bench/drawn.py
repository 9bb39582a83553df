"""People who are drawn by dpveil's own code, so that a benchmark runs without any data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

from dpveil.bench.items import Item, digest_of
from dpveil.core.photo import Photo
from dpveil.faces.drawn import traits
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.gallery import DrawnGallery
from dpveil.noise.bits import BitSource, SeededBits

NAME: Final = "drawn"
"""What the data set is called, on the command line, too."""
USUAL: Final = (20, 5)
"""People, and photos of each, unless it is said."""
MOST: Final = (10_000, 100)
"""The most of both."""
SIZE: Final = (112, 92)
"""Rows and columns of a photo: AT&T's."""
ROOM: Final = 16
"""Pixels around it, within which the head is shifted."""
MOVED: Final = 0.12
"""Largest change of a measure between two photos of a person, half the range being 1."""
LIGHT: Final = (0.75, 1.25)
GRAIN: Final = 5.0
"""Standard deviation of the noise, in grey levels."""


@dataclass(frozen=True)
class Drawn(Item):
    """A photo of somebody who is drawn: traits stay, while pose, smile, garment, light and place vary."""

    number: int
    photo: int

    def read(self) -> Photo:
        """Return the photo, uint8 sRGB of `SIZE`."""
        person = traits.drawn(SeededBits(self.number, "somebody"), {})
        bits = SeededBits(self.number * MOST[1] + self.photo, "photo of somebody")  # all of it is public
        seen, moved = traits.drawn(bits, {}), _shares(bits, len(traits.MEASURES))
        changed = dict(zip(traits.MEASURES, MOVED * (2 * moved - 1), strict=True))
        measures = {name: float(np.clip(person.of(name) + more, -1, 1)) for name, more in changed.items()}
        measures["turn"], measures["garment"] = seen.of("turn"), seen.of("garment")
        shown = replace(
            person,
            **{name: getattr(seen, name) for name in ("pose", "smile", "mouth", "garment", "backdrop")},
            measures=MappingProxyType(measures),
        )
        rows, columns = (side + ROOM for side in SIZE)
        portrait = DrawnHead(shown).alone(rows, columns)
        down, right, light = _shares(bits, 3)
        top, left = int(down * ROOM), int(right * ROOM)
        cut = portrait[top : top + SIZE[0], left : left + SIZE[1]].astype(np.float64)
        grain = ndtri(_shares(bits, cut.size)).reshape(cut.shape)
        lit = cut * (LIGHT[0] + light * (LIGHT[1] - LIGHT[0])) + GRAIN * grain
        return Photo(np.rint(lit.clip(0, 255)).astype(np.uint8))

    @property
    def digest(self) -> str:
        """A hash of the drawing's code and numbers."""
        return digest_of(f"{DrawnGallery().digest} {self.number} {self.photo}")


def drawn(people: int | None, photos: int | None) -> list[Item]:
    """Return the photos of as many people, with as many of each."""
    count, each = (
        min(asked or usual, most) for asked, usual, most in zip((people, photos), USUAL, MOST, strict=True)
    )
    numbers = ((who, photo) for who in range(count) for photo in range(each))
    return [Drawn(f"{who:04}", f"{who:04}/{photo:02}", who, photo) for who, photo in numbers]


def _shares(bits: BitSource, count: int) -> Float64[np.ndarray, " n"]:
    """Return numbers between 0 and 1, neither of which is one."""
    return ((bits.words(count) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52

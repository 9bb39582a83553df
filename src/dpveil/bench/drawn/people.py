"""People who are drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Final

import numpy as np

from dpveil.bench.drawn.base import DrawnItem, levels, shares
from dpveil.core.photo import Photo
from dpveil.faces.drawn import traits
from dpveil.faces.drawn.figure import DrawnHead

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
class DrawnPerson(DrawnItem):
    """A photo of somebody who is drawn: traits stay, while pose, smile, garment, light and place vary."""

    kind: ClassVar[str] = "drawn"
    usual: ClassVar[tuple[int, int]] = (20, 5)
    subject: ClassVar[str] = "faces"
    summary: ClassVar[str] = "heads and shoulders; pose, smile, clothes, light and place vary"

    def read(self) -> Photo:
        """Return the photo, uint8 sRGB of `SIZE`."""
        person = traits.drawn(self.own, {})
        bits = self.moment
        seen, moved = traits.drawn(bits, {}), shares(bits, len(traits.MEASURES))
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
        down, right, light = shares(bits, 3)
        top, left = int(down * ROOM), int(right * ROOM)
        cut = portrait[top : top + SIZE[0], left : left + SIZE[1]].astype(np.float64)
        return levels(cut * (LIGHT[0] + light * (LIGHT[1] - LIGHT[0])), bits, GRAIN)

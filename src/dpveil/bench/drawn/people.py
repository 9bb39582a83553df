"""People of the rendered heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dpveil.bench.drawn.base import DrawnItem, levels, shares
from dpveil.core.photo import Photo
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.head_gallery import default_heads
from dpveil.faces.released import HeadFace, portrait

SIZE: Final = (112, 92)
"""Rows and columns of a photo: AT&T's."""
ROOM: Final = 16
"""Pixels around it, within which the head is shifted."""
LIGHT: Final = (0.75, 1.25)
GRAIN: Final = 5.0
"""Standard deviation of the noise, in grey levels."""


@dataclass(frozen=True)
class DrawnPerson(DrawnItem):
    """A photo of a rendered head: the person stays, while pose, backdrop, light and place vary.

    There are as many people as heads in the default gallery; larger numbers begin again.
    """

    kind: ClassVar[str] = "drawn"
    usual: ClassVar[tuple[int, int]] = (20, 5)
    subject: ClassVar[str] = "faces"
    summary: ClassVar[str] = "rendered heads; pose, backdrop, light and place vary"

    def read(self) -> Photo:
        """Return the photo, uint8 sRGB of `SIZE`."""
        gallery = default_heads()
        bits = self.moment
        down, right, light, turn = shares(bits, 4)
        yaw = YAW * (int(3 * turn) - 1)
        person = np.array([self.number % len(gallery)])
        backdrop = int(bits.words(1)[0])
        shown = portrait(HeadFace(gallery, person, backdrop, yaw), *(side + ROOM for side in SIZE))
        top, left = int(down * ROOM), int(right * ROOM)
        cut = shown[top : top + SIZE[0], left : left + SIZE[1]].astype(np.float64)
        return levels(cut * (LIGHT[0] + light * (LIGHT[1] - LIGHT[0])), bits, GRAIN)

"""Scenes that are drawn: whose room it is, is the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np

from dpveil.bench.drawn.base import DrawnItem, levels, shares
from dpveil.core.photo import Photo
from dpveil.noise.bits import BitSource

SIZE: Final = (144, 192)
"""Rows and columns of a photo."""
WALL: Final = (230, 330)
"""Rows and columns of the wall of which a photo shows a part."""
ROOM: Final = 0.12
"""How far the view moves, in sides of the wall, to each side of the middle."""
GRAIN: Final = 5.0
THINGS: Final = (5, 9)
"""Pictures, windows and the like on a wall, at least and at most."""

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class DrawnScene(DrawnItem):
    """A photo of a room: walls and things stay, while view, daylight and what stands about vary."""

    kind: ClassVar[str] = "drawn-scenes"
    usual: ClassVar[tuple[int, int]] = (30, 5)
    subject: ClassVar[str] = "scenes"
    summary: ClassVar[str] = "rooms; view, daylight and what stands about vary"

    def read(self) -> Photo:
        """Return the photo, uint8 sRGB of `SIZE`."""
        bits = self.moment
        wall = _room(self.own)
        for _ in range(3):  # what somebody left there
            _thing(wall, bits, low=True)
        across, down, close, turn, bright, warm = shares(bits, 6)
        middle = (0.5 + ROOM * (2 * across - 1)) * WALL[1], (0.5 + ROOM * (2 * down - 1)) * WALL[0]
        view = cv2.getRotationMatrix2D(middle, 6 * (2 * turn - 1), 0.85 + 0.25 * close)
        view[:, 2] += np.array([SIZE[1] / 2, SIZE[0] / 2]) - middle
        seen = cv2.warpAffine(
            wall, view, SIZE[::-1], flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REFLECT
        ).astype(np.float64)
        light = (0.6 + 0.6 * bright) * (1 + 0.12 * (2 * warm - 1) * np.array([1, 0, -1]))
        return levels(seen * light, bits, GRAIN)


def _colour(bits: BitSource, least: int = 40, most: int = 225) -> Colour:
    red, green, blue = (int(least + one * (most - least)) for one in shares(bits, 3))
    return red, green, blue


def _room(bits: BitSource) -> np.ndarray:
    """Return a wall with its floor, and what hangs and stands there for good."""
    wall = np.empty((*WALL, 3), np.uint8)
    wall[:] = _colour(bits, 110, 230)
    stripes, height, count, board = shares(bits, 4)
    if stripes < 0.4:
        paler = tuple(min(255, level + 14) for level in wall[0, 0].tolist())
        step = 12 + int(30 * stripes)
        for x in range(0, WALL[1], 2 * step):
            cv2.rectangle(wall, (x, 0), (x + step, WALL[0]), paler, -1)
    floor = int(WALL[0] * (0.68 + 0.12 * height))
    cv2.rectangle(wall, (0, floor), (WALL[1], WALL[0]), _colour(bits, 50, 150), -1)
    cv2.rectangle(wall, (0, floor - 4 - int(5 * board)), (WALL[1], floor), _colour(bits, 170, 240), -1)
    for _ in range(THINGS[0] + int(count * (THINGS[1] - THINGS[0] + 1))):
        _thing(wall, bits, low=False)
    return wall


def _thing(wall: np.ndarray, bits: BitSource, *, low: bool) -> None:
    """Draw a picture, a window, a lamp or a piece of furniture."""
    kind, x, y, wide, high, inner = shares(bits, 6)
    size = int(16 + 52 * wide), int(16 + 46 * high)
    top = int((0.6 + 0.25 * y if low else 0.05 + 0.6 * y) * WALL[0])
    left = int(x * (WALL[1] - size[0]))
    if low:
        size = size[0] // 2 + 6, size[1] // 2 + 6
    corner, end = (left, top), (left + size[0], top + size[1])
    if kind < 0.3:
        centre = (left + size[0] // 2, top + size[1] // 2)
        cv2.circle(wall, centre, min(size) // 2, _colour(bits), -1, cv2.LINE_AA)
        return
    cv2.rectangle(wall, corner, end, _colour(bits), -1)
    edge = 2 + int(4 * inner)
    if kind < 0.75 and min(size) > 2 * edge + 4:
        inside = (left + edge, top + edge), (end[0] - edge, end[1] - edge)
        cv2.rectangle(wall, *inside, _colour(bits), -1)
        middle = left + size[0] // 2
        cv2.line(wall, (middle, top + edge), (middle, end[1] - edge), _colour(bits), 2, cv2.LINE_AA)
    else:
        for shelf in range(top + 10, end[1], 12):
            cv2.line(wall, (left, shelf), (end[0], shelf), _colour(bits), 2)

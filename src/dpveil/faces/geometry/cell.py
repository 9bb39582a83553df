"""The public grid to which the placement of a face is rounded before anything of it shows.

A release shows the cell, and nothing else of where the face was. The shapes that are replaced hold the head
of every face of the cell. Source: docs, "Face geometry".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.core.region import Box
from dpveil.core.region_origin import BOX, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, Shape, outline
from dpveil.faces.geometry.protection import PROTECTIONS, TURNED
from dpveil.regions.given_regions import box_of_text

RATIO: Final = (9, 8)  # two numbers whose quotient is the ratio of one scale to the next: 12.5 %
SCALES: Final = range(128)  # exponents of the scale: the frame's side is 1.125^scale pixels
ROLLS: Final = 48  # rolls of a full turn: multiples of 7.5°
PITCHES: Final = 24  # squares of the grid along the head's width
PITCH: Final = 2 * HEAD.half[0] / PITCHES  # distance between the centres, in sides of the frame
YAW: Final = 20  # degrees of yaw of a head that is turned
DRAWN: Final = (0, YAW, 32)
"""Degrees of yaw of a head that is drawn, by its class: few heads in photos are turned farther."""
YAWS: Final = (10, 25)  # degrees of yaw, on either side, at which the next class begins
ROUNDING: Final = 1.02
"""Factor by which a shape is larger than needed to hold a face's box, so that no row of pixels is lost."""


@dataclass(frozen=True)
class Cell:
    """A cell of the grid, by whole numbers.

    The side of the head frame is 1.125^`scale` pixels of the photo, and its roll 7.5° · `roll`, clockwise
    from -23 to 24. The head's centre is in the middle of square (`across`, `down`) of a grid that starts at
    the photo's left top, whose squares are 1/24 of the head's width. The head is turned by some 20° · `yaw`,
    positive towards the right of the image, from -2 to 2 (`YAWS`); None if that is not known.
    """

    scale: int
    roll: int
    across: int
    down: int
    yaw: int | None = None

    @classmethod
    def near(cls, head: Similarity, yaw: float | None, *, raised: int = 0) -> Cell:
        """Return the cell of a head that `head` maps to a frame with a side of 1; `yaw` is in radians.

        With `raised`, the scale is larger by so many steps. Raises `RegionError` for impossible sizes, and
        numbers that are not finite.
        """
        if not all(map(math.isfinite, (head.scale, head.angle, head.x, head.y, yaw or 0.0))):
            raise RegionError("the place of a head is not finite", hint="it may be no face")
        scale = round(-math.log(head.scale) / math.log(RATIO[0] / RATIO[1])) + raised
        if scale not in SCALES:
            raise RegionError("a head is smaller than a pixel, or impossibly large", hint="it may be no face")
        turns = -head.angle * ROLLS / (2 * math.pi)
        x, y = head.back(np.array([MIDDLE]) - 0.5)[0] + 0.5
        pitch = PITCH * side(scale)
        turned = None
        if yaw is not None:
            turned = (-1 if yaw < 0 else 1) * sum(abs(math.degrees(yaw)) >= least for least in YAWS)
        return cls(scale, _wrapped(round(turns)), math.floor(x / pitch), math.floor(y / pitch), turned)

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Cell | None:
        """Return the cell with these `numbers`; None if there is none."""
        if not 4 <= len(numbers) <= 5:
            return None
        cell = cls(*numbers)
        known = cell.scale in SCALES and cell.roll == _wrapped(cell.roll)
        return cell if known and abs(cell.yaw or 0) <= TURNED else None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The cell as certificates state it: without the yaw if that is not known."""
        return (self.scale, self.roll, self.across, self.down, *(() if self.yaw is None else (self.yaw,)))

    @property
    def pose(self) -> Similarity:
        """The map from the photo to a frame with a side of 1, with the head at the cell's centre."""
        size = side(self.scale)
        centre = np.array([[self.across + 0.5, self.down + 0.5]]) * PITCH * size - 0.5
        turned = Similarity(1 / size, -self.roll * 2 * math.pi / ROLLS, 0.0, 0.0)
        x, y = MIDDLE - turned.to(centre)[0] - 0.5
        return replace(turned, x=float(x), y=float(y))

    @property
    def around(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the square as wide as the head, in pixels, also beyond the photo."""
        pitch, half, wide = PITCH * side(self.scale), PITCHES / 2, PITCHES
        return (
            (self.across + 0.5 - half) * pitch,
            (self.down + 0.5 - half) * pitch,
            wide * pitch,
            wide * pitch,
        )

    def shape(self, protect: str) -> Shape:
        """Return the shape that is replaced, which holds that of every face of the cell."""
        kind = PROTECTIONS[protect]
        return kind.stretched(kind.whole, self.yaw)


def side(scale: int) -> float:
    """Return the side of the head frame in pixels, correctly rounded, so that it is the same everywhere."""
    size: float = RATIO[0] ** scale / RATIO[1] ** scale
    return size


def _wrapped(roll: int) -> int:
    """Return a roll from -23 to 24."""
    return (roll + ROLLS // 2 - 1) % ROLLS - ROLLS // 2 + 1


def cell_of(head: Similarity, yaw: float | None, box: Box | None, protect: str = "head") -> Cell:
    """Return the cell of a head; its scale is raised until its shapes hold what they have to of `box`.

    These are the head's, and that which is replaced by `protect`. `head` maps the photo to a frame with a
    side of 1, `yaw` is in radians. Raises `RegionError`.
    """
    cell = Cell.near(head, yaw)
    if box is None:
        return cell
    for raised in SCALES:
        cell = Cell.near(head, yaw, raised=raised)
        if _held(box, cell, "head") and _held(box, cell, protect):
            break
    return cell


def _held(box: Box, cell: Cell, protect: str) -> bool:
    """Return whether the shape of a cell holds what it has to of a detected box (`Protection.holds`)."""
    size, down = PROTECTIONS[protect].holds
    middle = box.x + box.w / 2 - 0.5, box.y + box.h * (0.5 + down) - 0.5
    ends = outline((*middle, size * box.w / 2, size * box.h / 2))
    return ROUNDING * float(cell.shape(protect).far(cell.pose.to(ends) + 0.5).max()) <= 1


def given_box(origin: Origin) -> Box | None:
    """Return the user's box, which the region holds, too; None if it is of a finder, whatever that calls it.

    Certificates state a user's box as the request. They do not state the boxes of a finder.
    """
    try:
        return box_of_text(origin.finder) if origin.kind == BOX else None
    except InvalidParameter:
        return None


def drawn_yaw(yaw: int) -> int:
    """Return the degrees of yaw of a head that is drawn, by the class of its yaw, -2 to 2."""
    return DRAWN[abs(yaw)] * (-1 if yaw < 0 else 1)

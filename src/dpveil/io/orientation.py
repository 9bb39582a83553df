"""EXIF orientation: its eight values as transpositions and flips (EXIF 2.32, tag 0x0112)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import UInt8

from dpveil.core.photo import Grid


class Turn(NamedTuple):
    """A transposition, followed by reversing the columns (`flip_x`) and the rows (`flip_y`)."""

    transpose: bool
    flip_x: bool
    flip_y: bool


TURNS: Final[dict[int, Turn]] = {
    1: Turn(False, False, False),
    2: Turn(False, True, False),
    3: Turn(False, True, True),
    4: Turn(False, False, True),
    5: Turn(True, False, False),
    6: Turn(True, True, False),
    7: Turn(True, True, True),
    8: Turn(True, False, True),
}
UPRIGHT: Final = TURNS[1]


def turned(pixels: UInt8[np.ndarray, "H W c"], turn: Turn) -> UInt8[np.ndarray, "h w c"]:
    """Return a view of the stored `pixels` in the coordinates of the oriented photo."""
    if turn.transpose:
        pixels = pixels.transpose(1, 0, 2)
    return pixels[:: -1 if turn.flip_y else 1, :: -1 if turn.flip_x else 1]


def turned_grid(grid: Grid, turn: Turn, *, width: int, height: int) -> Grid:
    """Return the stored picture's `grid` in coordinates of the oriented photo, of this size in pixels."""
    w, h = (grid.height, grid.width) if turn.transpose else (grid.width, grid.height)
    x0 = width % w if turn.flip_x else 0
    y0 = height % h if turn.flip_y else 0
    return replace(grid, width=w, height=h, x0=x0, y0=y0)

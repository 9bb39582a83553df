"""The orientation in EXIF or XMP: its eight values as transpositions and flips (EXIF 2.32, tag 0x0112).

It is read without trusting counts and offsets, and no other metadata are used: Pillow would load every tag,
at a cost that the file determines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

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


ORIENTATION: Final = 0x0112
WHOLE: Final = {1: 1, 3: 2, 4: 4}
"""Sizes of EXIF's unsigned integer types in bytes."""
IN_XMP: Final = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')
RAW_PROFILE: Final = "Raw profile type exif"
"""The keyword under which ImageMagick stores EXIF in a PNG: three lines, then hexadecimal digits."""


def orientation(exif: bytes, xmp: bytes) -> int | None:
    """Return the orientation in EXIF, else in XMP, else None; raises `ValueError` for malformed EXIF.

    The value is as stored: 1 to 8 in a valid file.
    """
    stated = _in_exif(exif) if exif else None
    if stated is None and (match := IN_XMP.search(xmp)):
        return int(match[1])
    return stated


def words_of(info: Mapping[Any, Any]) -> tuple[bytes, bytes]:
    """Return the EXIF and XMP bytes in Pillow's `info`; raises `ValueError` for malformed hexadecimal."""
    exif, xmp, raw = info.get("exif"), info.get("xmp"), info.get(RAW_PROFILE)
    if not exif and isinstance(raw, str):
        exif = bytes.fromhex("".join(raw.split("\n")[3:]))
    return tuple(word if isinstance(word, bytes) else b"" for word in (exif, xmp))  # type: ignore[return-value]


def _in_exif(exif: bytes) -> int | None:
    while exif.startswith(b"Exif\0\0"):
        exif = exif[6:]
    if exif[:4] not in (b"II*\0", b"MM\0*"):
        raise ValueError("no TIFF header")
    little = exif[:2] == b"II"

    def number(at: int, size: int) -> int:
        if at + size > len(exif):
            raise ValueError("cut off")
        return int.from_bytes(exif[at : at + size], "little" if little else "big")

    first = number(4, 4)
    for start in range(first + 2, first + 2 + 12 * number(first, 2), 12):
        if number(start, 2) == ORIENTATION and number(start + 4, 4):
            size = WHOLE.get(number(start + 2, 2))
            return None if size is None else number(start + 8, size)
    return None

"""GIF before decoding: one picture and its transparency are kept, comments and other extensions removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dpveil.io.isobmff import Reading
from dpveil.io.refused import animation, damaged, overloaded

EXTENSION, PICTURE, END = 0x21, 0x2C, 0x3B
"""First bytes of blocks: extension introducer, image separator, trailer (GIF89a)."""
CONTROL: Final = 0xF9
"""Label of the graphic control extension, which holds the transparent colour."""
MOST_PARTS: Final = 4096
"""Blocks and sub-blocks that are allowed for each picture, besides one for every `PIXELS_PER_PART` pixels."""
PIXELS_PER_PART: Final = 32
"""Far below what encoders write: they fill sub-blocks of 255 bytes, and a pixel takes at most 12 bits."""


def lean_gif(data: bytes, check: Callable[[int, int], None]) -> bytes:
    """Return the file without extensions other than the graphic control of its picture.

    `check` is called with width and height in pixels and raises if they are too large. Raises `Refused` for
    an animation, a picture beyond the logical screen, a truncated file, and too many sub-blocks.
    """
    reading = Reading(data, 6, len(data), "GIF")
    width, height = _pair(reading)
    check(width, height)
    flags = reading.take(3)[0]
    reading.take(_palette(flags))
    kept, control, pictures, parts = [data[: reading.at]], b"", 0, 0
    while (kind := reading.number(1)) != END:
        start = reading.at - 1
        if kind == PICTURE:
            pictures += 1
            left, top, wide, high = (*_pair(reading), *_pair(reading))
            if left + wide > width or top + high > height:
                raise damaged("GIF")
            reading.take(_palette(reading.number(1)) + 1)
        elif kind != EXTENSION:
            raise damaged("GIF")
        label = reading.number(1) if kind == EXTENSION else None
        size = -1
        while size:  # the end of a block counts as well, as there are blocks of nothing else
            parts += 1
            if parts > (1 + pictures) * (MOST_PARTS + width * height // PIXELS_PER_PART):
                raise overloaded(f"{parts:,} parts")
            size = reading.number(1)
            reading.take(size)
        if label == CONTROL and pictures == 0:
            control = data[start : reading.at]
        if kind == PICTURE and pictures == 1:
            kept += [control, data[start : reading.at]]
    if pictures != 1:
        raise animation(pictures) if pictures else damaged("GIF")
    return b"".join([*kept, bytes([END])])


def _pair(reading: Reading) -> tuple[int, int]:
    return int.from_bytes(reading.take(2), "little"), int.from_bytes(reading.take(2), "little")


def _palette(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0

"""GIF before decoding: one picture and its transparency; comments and other extensions are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dpveil.io.isobmff import Reading
from dpveil.io.refused import animation, damaged, overloaded

EXTENSION, PICTURE, END = 0x21, 0x2C, 0x3B
CONTROL: Final = 0xF9
MOST_PARTS: Final = 4096
PIXELS_PER_PART: Final = 32
"""A part holds up to 255 bytes; encoders fill them, and a pixel takes at most 12 bits."""


def lean_gif(data: bytes, check: Callable[[int, int], None]) -> bytes:
    """Return the file without its extensions; `check` raises for a size beyond the limit.

    Raises `Refused` for an animation, telling the number of its frames, and for a picture that is larger
    than the screen or cut off.
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
        while size := reading.number(1):
            reading.take(size)
            parts += 1
            if parts > (1 + pictures) * (MOST_PARTS + width * height // PIXELS_PER_PART):
                raise overloaded(f"{parts:,} parts")
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

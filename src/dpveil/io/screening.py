"""Screening: checks of a file's bytes before a decoder sees them, and those of GIF and Netpbm themselves.

Of a GIF one picture and its transparency are kept; a Netpbm is one picture in PBM, PGM or PPM, plain or raw.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dpveil.core.photo import Grid
from dpveil.io.containers import WEBP_GRID, png_header, webp_header
from dpveil.io.heif import lean_heif
from dpveil.io.isobmff import Reading
from dpveil.io.jpeg import lean_jpeg
from dpveil.io.orientation import Turn
from dpveil.io.refused import COPY_AGAIN, LIMIT, SAVE_ANEW, Refused, animation, damaged, overloaded
from dpveil.io.tiff import check_tiff

GAP: Final = rb"(?:\s|#[^\n\r]{0,1000}[\n\r]){1,100}"
"""White space and comments between the numbers of a header."""
NUMBER: Final = GAP + rb"0{0,9}(\d{1,9})"
HEADS: Final = {
    kind: re.compile(b"P%d" % kind + NUMBER * (2 if kind in (1, 4) else 3) + rb"\s") for kind in range(1, 7)
}
"""The header of each of P1 to P6; one white-space character ends it, and the levels follow."""
PLAIN: Final = (1, 2, 3)
"""Formats whose levels are decimal digits."""
DIGITS: Final = re.compile(rb"[\s\d]*")


def lean_netpbm(data: bytes, check: Callable[[int, int], None]) -> bytes:
    """Return the file without comments.

    `check` is called with width and height in pixels and raises if they are too large. Raises `Refused` if
    the largest level is not 255, there are comments among plain levels, or the length of raw levels does not
    fit the size.
    """
    kind = data[1] - ord("0")
    head = HEADS[kind].match(data)
    if head is None:
        raise damaged("Netpbm")
    width, height, *top = map(int, head.groups())
    check(width, height)
    if top and top[0] != 255:
        raise Refused(f"has levels up to {top[0]:,}, not 255", SAVE_ANEW)
    lean = b"P%d\n%d %d\n" % (kind, width, height) + b"255\n" * len(top)
    if kind in PLAIN:
        if not DIGITS.fullmatch(data, head.end()):
            raise Refused("has comments amid its levels, or is damaged", SAVE_ANEW)
        return lean + data[head.end() :]
    row = (width + 7) // 8 if kind == 4 else width * (3 if kind == 6 else 1)
    end = head.end() + row * height
    if len(data) < end:
        raise damaged("Netpbm")
    if data[end:].strip():
        raise Refused("has more than one picture", "save one of them as a PNG")
    return lean + data[head.end() : end]


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


@dataclass(frozen=True)
class Screened:
    """The bytes to decode, and what was learnt from the rest of the file.

    `grid` is that of its lossy blocks. `words` are EXIF and XMP if they were removed. `turn`, and the `size`
    in pixels after cropping at the right and the bottom, are set if the container states them.
    """

    data: bytes
    grid: Grid | None = None
    words: tuple[bytes, bytes] | None = None
    turn: Turn | None = None
    size: tuple[int, int] | None = None


def screened(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    """Return what a decoder may see of a file of format `name`; appends to `notes`; raises `Refused`."""
    return CHECKS[name](data, max_pixels, notes)


def check_pixels(width: int, height: int, max_pixels: int) -> None:
    """Raise `Refused` for a size in pixels that is empty or beyond the limit."""
    if width < 1 or height < 1:
        raise Refused("has no pixels", COPY_AGAIN)
    if width * height > max_pixels:
        raise Refused(
            f"has {width:,} × {height:,} pixels, more than the limit of {max_pixels:,}",
            "make it smaller, or raise {max_pixels}",
            LIMIT,
        )


def _png(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    header = png_header(data)
    if {b"fdAT", b"fcTL"} & header.names:
        raise animation(header.frames)
    if not header.whole and b"IHDR" in header.names and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        check_pixels(width, height, max_pixels)
    if not header.whole:
        raise damaged("PNG")
    return Screened(header.data)


def _webp(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    header = webp_header(data)
    check_pixels(header.width, header.height, max_pixels)
    if header.frames:
        raise animation(header.frames)
    return Screened(data, WEBP_GRID if header.lossy else None)


def _jpeg(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    lean = lean_jpeg(data)
    return Screened(lean.data, words=(lean.exif, lean.xmp))


def _tiff(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    check_tiff(data)
    return Screened(data)


def _bmp(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(data)


def _gif(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(lean_gif(data, lambda width, height: check_pixels(width, height, max_pixels)))


def _netpbm(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(lean_netpbm(data, lambda width, height: check_pixels(width, height, max_pixels)))


def _heif(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    lean = lean_heif(data, name, lambda width, height: check_pixels(width, height, max_pixels))
    if lean.depth > 8:
        notes.append(f"{lean.depth}-bit colour was rounded to 8 bits")
    return Screened(lean.data, lean.grid, turn=lean.turn, size=lean.size)


CHECKS: Final[dict[str, Callable[[bytes, int, list[str]], Screened]]] = {
    "PNG": _png,
    "WEBP": _webp,
    "JPEG": _jpeg,
    "TIFF": _tiff,
    "BMP": _bmp,
    "GIF": _gif,
    "Netpbm": _netpbm,
    "HEIC": partial(_heif, "HEIC"),
    "AVIF": partial(_heif, "AVIF"),
}

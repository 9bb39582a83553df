"""Screening: checks of a file's bytes before a decoder sees them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dpveil.core.photo import Grid
from dpveil.io.containers import WEBP_GRID, png_header, webp_header
from dpveil.io.heif import stated
from dpveil.io.jpeg import lean_jpeg
from dpveil.io.orientation import Turn
from dpveil.io.refused import COPY_AGAIN, LIMIT, Refused, animation, damaged


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


def _plain(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(data)


def _heif(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    found = stated(data, name)
    check_pixels(*found.size, max_pixels)
    if found.depth > 8:
        notes.append(f"{found.depth}-bit colour was rounded to 8 bits")
    return Screened(data, found.grid, turn=found.turn, size=found.size)


CHECKS: Final[dict[str, Callable[[bytes, int, list[str]], Screened]]] = {
    "PNG": _png,
    "WEBP": _webp,
    "JPEG": _jpeg,
    "TIFF": _plain,
    "BMP": _plain,
    "GIF": _plain,
    "Netpbm": _plain,
    "HEIC": partial(_heif, "HEIC"),
    "AVIF": partial(_heif, "AVIF"),
}

"""The orientation in EXIF or XMP, read without trusting counts and offsets (EXIF 2.32, tag 0x0112).

No other metadata are used. Pillow would load every tag, at a cost that the file determines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

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

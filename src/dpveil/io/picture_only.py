"""Whether a file is one picture and nothing else, by an allow-list of the names of its parts.

Metadata, thumbnails and second pictures are parts of other names. That a part has no room for hidden bytes is
not promised (docs: limits).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from dpveil.io.jumbf import plain, split

JFIF: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
"""The first bytes of a JPEG: JFIF 1.01, square pixels, no thumbnail."""
JPEG_TABLES: Final = frozenset({0xDB, 0xC0, 0xC4})
"""Markers of quantisation tables, the baseline frame header, and Huffman tables."""
TIFF_TAGS: Final = frozenset({256, 257, 258, 259, 262, 273, 277, 278, 279, 284})
"""Tags of size, bits, compression, colours, strips and layout (TIFF 6.0 §8)."""


def only_picture(data: bytes, format: str, *, manifest: bool = False) -> bool:  # noqa: A002  the field's word
    """Return whether a file has the parts of a picture that `encode` writes, and no others.

    `format` is a name of `FORMATS`; False for any other. With `manifest` the file must hold a C2PA manifest
    as well, made of the boxes that dpveil writes; what they say is not looked at.
    """
    try:
        if manifest:
            data, boxes = split(data, format)
            if not plain(boxes):
                return False
        return format in FORMATS and FORMATS[format](data)
    except (IndexError, ValueError, struct.error):
        return False  # truncated


def _png(data: bytes) -> bool:
    names, at = list[bytes](), 8
    while at < len(data):
        names.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    first, *middle, last = names
    return (first, last, {*middle}) == (b"IHDR", b"IEND", {b"IDAT"}) and at == len(data)


def _jpeg(data: bytes) -> bool:
    at = len(JFIF)
    while data[at] == 0xFF and data[at + 1] in JPEG_TABLES:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = re.compile(rb"\xff[^\0]").search(data, at + 2)
    ends = end is not None and end[0] == b"\xff\xd9" and end.end() == len(data)
    return data.startswith(JFIF) and data[at : at + 2] == b"\xff\xda" and ends


def _webp(data: bytes) -> bool:
    size, length = (int.from_bytes(data[at : at + 4], "little") for at in (4, 16))
    return data[12:16] == b"VP8L" and len(data) == 8 + size == 20 + length + length % 2


def _tiff(data: bytes) -> bool:
    order = "<" if data.startswith(b"II*\0") else ">"
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    entries = [struct.unpack_from(f"{order}HHI", data, at + 2 + 12 * number) for number in range(count)]
    (following,) = struct.unpack_from(f"{order}I", data, at + 2 + 12 * count)
    return not following and {tag for tag, _, _ in entries} <= TIFF_TAGS


def _bmp(data: bytes) -> bool:
    size, _, offset, head, width, height, _, depth = struct.unpack_from("<IIIIiiHH", data, 2)
    start = 1078 if depth == 8 else 54
    pixels: int = height * ((width * depth + 31) // 32 * 4)
    return depth in (8, 24) and head == 40 and offset == start and size == len(data) == start + pixels


FORMATS: Final[dict[str, Callable[[bytes], bool]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
    "tiff": _tiff,
    "bmp": _bmp,
}
"""The check of each format that `encode` writes."""

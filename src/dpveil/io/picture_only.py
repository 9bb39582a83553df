"""Whether a file is one picture and nothing else, by an allow-list of the names of its parts.

Metadata, thumbnails and second pictures are parts of other names. That a part has no room for hidden bytes is
not promised (docs: limits).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

JFIF: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
"""The first bytes of a JPEG: JFIF 1.01, square pixels, no thumbnail."""
NAMES: Final = {
    "png": re.compile(rb"IHDR(?P<manifest>caBX)?(?:IDAT)+IEND"),
    "jpeg": re.compile(rb"(?P<manifest>\xeb)?[\xdb\xc0\xc4]+\xda\xd9"),
    "webp": re.compile(rb"VP8L(?P<manifest>C2PA)?"),
    "tiff": re.compile(rb"(?:\x01[\x00-\x03\x06\x11\x15-\x17\x1c])+", re.DOTALL),
    "bmp": re.compile(rb"BM"),
}
"""Parts of what `encode` writes: PNG's and WebP's chunks; JPEG's markers, of tables, frame header, one scan
and the end; and TIFF's tags (TIFF 6.0 §8). A C2PA manifest is one more."""


def only_picture(data: bytes, format: str, *, manifest: bool = False) -> bool:  # noqa: A002  the field's word
    """Return whether a file has the parts of a picture that `encode` writes, and no others.

    `format` is a name of `NAMES`; False for any other. With `manifest` the file must hold a C2PA manifest as
    well, which is not looked into.
    """
    if format not in NAMES:
        return False
    try:
        found = NAMES[format].fullmatch(PARTS[format](data))
    except (IndexError, ValueError, struct.error):
        return False  # truncated, or more follows
    return found is not None and (found.groupdict().get("manifest") is not None) == manifest


def _png(data: bytes) -> bytes:
    names, at = list[bytes](), 8
    while at < len(data):
        names.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return _whole(data, at, b"".join(names))


def _jpeg(data: bytes) -> bytes:
    codes, at = b"", len(JFIF)
    if not data.startswith(JFIF):
        raise ValueError("no JFIF header")
    while codes[-1:] != b"\xda":
        codes += data[at + 1 : at + 2] if data[at] == 0xFF else b"\0"
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = re.compile(rb"\xff[^\0]").search(data, at)
    return b"" if end is None else _whole(data, end.end(), codes + end[0][1:])


def _webp(data: bytes) -> bytes:
    names, at = b"", 12
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        names += data[at : at + 4]
        at += 8 + length + length % 2
    return _whole(data, 8 + int.from_bytes(data[4:8], "little"), _whole(data, at, names))


def _tiff(data: bytes) -> bytes:
    order = "<" if data.startswith(b"II*\0") else ">"
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    tags = [struct.unpack_from(f"{order}H", data, at + 2 + 12 * number)[0] for number in range(count)]
    (following,) = struct.unpack_from(f"{order}I", data, at + 2 + 12 * count)
    return b"" if following else struct.pack(f">{count}H", *tags)


def _bmp(data: bytes) -> bytes:
    size, _, offset, head, width, height, _, depth = struct.unpack_from("<IIIIiiHH", data, 2)
    start = 1078 if depth == 8 else 54
    pixels = height * ((width * depth + 31) // 32 * 4)
    usual = depth in (8, 24) and head == 40 and offset == start and size == start + pixels
    return _whole(data, size, data[:2]) if usual else b""


def _whole(data: bytes, end: int, names: bytes) -> bytes:
    if end != len(data):
        raise ValueError("truncated, or more follows")
    return names


PARTS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
    "tiff": _tiff,
    "bmp": _bmp,
}
"""What returns the names of the parts of a file of each format."""

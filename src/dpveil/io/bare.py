"""Checks, before decoding, that a file is a single picture with the layout that `encode` writes."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from typing import Final

from dpveil.io.bare_tiff import bare_tiff
from dpveil.io.containers import MOST_CHUNKS
from dpveil.io.ended import jpeg_ends
from dpveil.io.inflating import filled, most_coded
from dpveil.io.jumbf import plain, split

SIGNED: Final = 8
"""Length of PNG's signature in bytes."""
JPEG_HEAD: Final = 700
"""Most bytes before the entropy-coded data of a baseline JPEG; `encode` writes 623."""
JPEG_SEGMENTS: Final = frozenset({0xDB, 0xC0, 0xC4})
"""Markers of quantisation tables, the baseline frame header, and Huffman tables."""
JFIF: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
"""The first bytes of a JPEG: JFIF 1.01, square pixels, no thumbnail."""
PER_METRE: Final = 3780
"""Pixels per metre that `encode` states in a BMP."""
GREY_RAMP: Final = b"".join(bytes((level, level, level, 0)) for level in range(256))
"""The palette of a grey BMP."""


def bare(data: bytes, format: str, *, manifest: bool = False) -> bool:  # noqa: A002  the field's word
    """Return whether a file holds one picture and nothing else: no text, profile, thumbnail, second picture,
    transparency or trailing byte. The streams of PNG and TIFF are inflated, and have to be their rows and
    nothing else; that of a JPEG has to end with its last block, and where that of a WebP ends is not looked
    at (`webp_ends`). Data hidden in the levels, or in how they are compressed, are not detected.

    `format` is a name of `FORMATS`; False for any other. With `manifest` the file must hold a C2PA manifest
    as well, made of the boxes that dpveil writes; what they say is not looked at.
    """
    try:
        if manifest:
            data, boxes = split(data, format)
            if not plain(boxes):
                return False
        return BARE[format](data) if format in BARE else False
    except (IndexError, ValueError, struct.error):
        return False  # truncated


def _png(data: bytes) -> bool:
    names, streams, at = list[bytes](), list[bytes](), SIGNED
    while at + 12 <= len(data) and len(names) < MOST_CHUNKS["PNG"]:
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        named = data[at + 4 : end]
        if zlib.crc32(named) != int.from_bytes(data[end : end + 4], "big"):
            return False
        names.append(named[:4])
        streams.append(named[4:])
        at = end + 4
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", streams[0])
    plain = depth == 8 and colour in (0, 2) and not any(rest)
    first, *middle, last = names
    ends = (first, last) == (b"IHDR", b"IEND") and not streams[-1] and at == len(data)
    if not plain or not ends or {*middle} != {b"IDAT"} or not all(streams[1:-1]):
        return False
    return filled(streams[1:-1], height * (1 + width * (3 if colour else 1)))


def _jpeg(data: bytes) -> bool:
    at = 20
    while data[at] == 0xFF and data[at + 1] in JPEG_SEGMENTS and at < JPEG_HEAD:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    start = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = re.compile(rb"\xff[^\0]").search(data, start)
    scan = data[at : at + 2] == b"\xff\xda" and start <= JPEG_HEAD
    ends = data.endswith(b"\xff\xd9") and end is not None and end.end() == len(data)
    return data.startswith(JFIF) and scan and ends and jpeg_ends(data)


def _webp(data: bytes) -> bool:
    size, length = (int.from_bytes(data[at : at + 4], "little") for at in (4, 16))
    stated = int.from_bytes(data[21:25], "little")
    width, height, opaque = 1 + (stated & 0x3FFF), 1 + (stated >> 14 & 0x3FFF), not stated >> 28
    whole = len(data) == 8 + size == 20 + length + length % 2 and not any(data[20 + length :])
    return data[12:16] == b"VP8L" and opaque and whole and length <= most_coded(3 * width * height)


def _bmp(data: bytes) -> bool:
    size, reserved, offset, head, width, height, planes, depth, *rest = struct.unpack_from(
        "<IIIIiiHHIIiiII", data, 2
    )
    palette = data[54:1078] == GREY_RAMP if depth == 8 else depth == 24
    start, colours = (1078, 256) if depth == 8 else (54, 0)
    used = width * depth // 8
    row = (used + 3) // 4 * 4
    pixels = row * max(0, height)
    found = (reserved, offset, head, planes, size, *rest)
    stated = found == (0, start, 40, 1, len(data), 0, pixels, PER_METRE, PER_METRE, colours, colours)
    whole = palette and stated and len(data) == start + pixels
    return whole and not any(any(data[start + pad :: row]) for pad in range(used, row))


BARE: Final[dict[str, Callable[[bytes], bool]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
    "tiff": bare_tiff,
    "bmp": _bmp,
}
"""The check of each format that `encode` writes."""

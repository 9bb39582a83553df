"""Checks, before decoding, that a file is a single picture with the layout that `encode` writes."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from typing import Final

from dpveil.io.containers import MOST_CHUNKS
from dpveil.io.jumbf import plain, split

SIGNED: Final = 8
"""Length of PNG's signature, and of TIFF's header, in bytes."""
JPEG_HEAD: Final = 700
"""Most bytes before the entropy-coded data of a baseline JPEG; `encode` writes 623."""
JPEG_SEGMENTS: Final = frozenset({0xDB, 0xC0, 0xC4})
"""Markers of quantisation tables, the baseline frame header, and Huffman tables."""
JFIF: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
"""The first bytes of a JFIF file."""
TIFF_TAGS: Final = frozenset({256, 257, 258, 259, 262, 273, 277, 278, 279, 284})
"""Tags that describe how the pixels are stored: the only ones that `encode` writes."""
TIFF_KINDS: Final = {3: "H", 4: "I", 16: "Q"}
"""TIFF's unsigned integer types as format characters of `struct`."""
MOST_STRIPS: Final = 1 << 17
"""Most strips: each holds 64 kB or a row, so 2^31 pixels have fewer."""
STRIPS: Final = 273
"""The tag StripOffsets."""
STRIP_BYTES: Final = 279
"""The tag StripByteCounts."""
PIECE: Final = 1 << 20
"""Bytes that are inflated at a time."""
TIFF_PADDING: Final = 8
"""Most bytes of padding in the whole file."""
GREY_RAMP: Final = b"".join(bytes((level, level, level, 0)) for level in range(256))
"""The palette of a grey BMP."""


def bare(data: bytes, format: str, *, manifest: bool = False) -> bool:  # noqa: A002  the field's word
    """Return whether a file holds one picture and nothing else: no text, profile, thumbnail, second picture,
    transparency or trailing byte. The stream of a PNG is inflated, and has to be its rows and
    nothing else; data hidden in how it or another format is compressed, or in the levels, are not detected.

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
    names: list[bytes] = []
    at = SIGNED
    while at + 12 <= len(data) and len(names) < MOST_CHUNKS["PNG"]:
        names.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    depth, colour, *rest = data[24:29]
    first, *middle, last = names
    plain = depth == 8 and colour in (0, 2) and not any(rest) and data[8:12] == b"\0\0\0\r"
    ends = (first, last) == (b"IHDR", b"IEND") and data[-12:-8] == bytes(4)
    return plain and ends and {*middle} == {b"IDAT"} and at == len(data) and _is_filled(data, len(middle))


def _is_filled(data: bytes, chunks: int) -> bool:
    """Whether the one stream in the chunks of a PNG has all rows of its picture, and no byte more."""
    width, height, _, colour = struct.unpack_from(">IIBB", data, 16)
    left = height * (1 + width * (3 if colour else 1))
    inflating, at = zlib.decompressobj(), SIGNED + 25
    try:
        for _ in range(chunks):
            size = int.from_bytes(data[at : at + 4], "big")
            part = data[at + 8 : at + 8 + size]
            while part and not inflating.eof:
                left -= len(inflating.decompress(part, min(PIECE, left + 1)))
                if left < 0:
                    return False
                part = inflating.unconsumed_tail
            if part:
                return False
            at += 12 + size
    except zlib.error:
        return False
    return inflating.eof and not inflating.unused_data and left == 0


def _jpeg(data: bytes) -> bool:
    at = 20
    while data[at] == 0xFF and data[at + 1] in JPEG_SEGMENTS and at < JPEG_HEAD:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    start = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = re.compile(rb"\xff[^\0]").search(data, start)
    scan = data[at : at + 2] == b"\xff\xda" and start <= JPEG_HEAD
    ends = data.endswith(b"\xff\xd9") and end is not None and end.end() == len(data)
    return data.startswith(JFIF) and scan and ends


def _webp(data: bytes) -> bool:
    size, length = (int.from_bytes(data[at : at + 4], "little") for at in (4, 16))
    opaque = not data[24] & 0x10
    return data[12:16] == b"VP8L" and opaque and len(data) == 8 + size == 20 + length + length % 2


def _bmp(data: bytes) -> bool:
    size, reserved, offset, head, width, height, planes, depth, packed = struct.unpack_from(
        "<IIIIiiHHI", data, 2
    )
    palette = data[54:1078] == GREY_RAMP if depth == 8 else depth == 24
    start = 1078 if depth == 8 else 54
    pixels = (width * depth // 8 + 3) // 4 * 4 * max(0, height)
    found = (reserved, offset, head, planes, packed, size)
    return palette and found == (0, start, 40, 1, 0, len(data)) and len(data) == start + pixels


def _tiff(data: bytes) -> bool:
    """Whether the header, one directory, the values stored outside it, and the strips are the whole file."""
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return False
    order = "<" if data.startswith(b"II") else ">"
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    tags: dict[int, tuple[int, ...]] = {}
    parts = [(0, SIGNED), (at, 2 + 12 * count + 4)]
    for entry in range(at + 2, at + 2 + 12 * min(count, len(TIFF_TAGS) + 1), 12):
        tag, kind, number = struct.unpack_from(f"{order}HHI", data, entry)
        if tag not in TIFF_TAGS or tag in tags or kind not in TIFF_KINDS or number > MOST_STRIPS:
            return False
        letter = TIFF_KINDS[kind]
        size, place = number * struct.calcsize(f"{order}{letter}"), entry + 8
        if size > 4:
            (place,) = struct.unpack_from(f"{order}I", data, place)
            parts.append((place, size))
        tags[tag] = struct.unpack_from(f"{order}{number}{letter}", data, place)
    parts += zip(tags.get(STRIPS, ()), tags.get(STRIP_BYTES, ()), strict=True)
    (following,) = struct.unpack_from(f"{order}I", data, at + 2 + 12 * count)
    return following == 0 and len(tags) == count and _tile(parts, len(data))


def _tile(parts: list[tuple[int, int]], length: int) -> bool:
    """Whether parts (start and size in bytes) fill a file of this length without overlap, except padding."""
    end = padding = 0
    for start, size in sorted(parts):
        if start < end:
            return False
        padding += start - end
        end = start + size
    return end == length and padding <= TIFF_PADDING


BARE: Final[dict[str, Callable[[bytes], bool]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
    "tiff": _tiff,
    "bmp": _bmp,
}
"""The check of each format that `encode` writes."""

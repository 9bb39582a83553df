"""Whether a TIFF is the one picture that `encode` writes, and nothing else (TIFF 6.0 §2, §3)."""

from __future__ import annotations

import struct
from typing import Final

from dpveil.io.inflating import filled

HEADER: Final = 8
"""Length of the header in bytes."""
WIDTH, HEIGHT, BITS, ROWS = 256, 257, 258, 278
STRIPS: Final = 273
"""The tag StripOffsets."""
STRIP_BYTES: Final = 279
"""The tag StripByteCounts."""
FREE: Final = (WIDTH, HEIGHT, STRIPS, ROWS, STRIP_BYTES)
"""Tags that every file has, with values of its own."""
GREY: Final = {BITS: (8,), 259: (8,), 262: (1,), 284: (1,)}
"""The other tags of a grey picture, and their values."""
COLOUR: Final = GREY | {BITS: (8, 8, 8), 262: (2,), 277: (3,)}
"""The same of one in colour."""
MOST_TAGS: Final = len(FREE) + len(COLOUR)
KINDS: Final = {3: "H", 4: "I", 16: "Q"}
"""TIFF's unsigned integer types as format characters of `struct`."""
MOST_STRIPS: Final = 1 << 17
"""Most strips: each holds 64 kB or a row, so 2^31 pixels have fewer."""
PADDING: Final = 8
"""Most bytes of padding in the whole file, all of them zero."""


def bare_tiff(data: bytes) -> bool:
    """Return whether header, one directory, the values stored outside of it, and strips are the whole file.

    Each strip is inflated, and has to be its rows and nothing else. Raises `IndexError` or `struct.error`
    for truncated files.
    """
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return False
    order = "<" if data.startswith(b"II") else ">"
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    (following,) = struct.unpack_from(f"{order}I", data, at + 2 + 12 * count)
    tags: dict[int, tuple[int, ...]] = {}
    parts = [(0, HEADER), (at, 2 + 12 * count + 4)]
    for entry in range(at + 2, at + 2 + 12 * min(count, MOST_TAGS + 1), 12):
        tag, kind, number = struct.unpack_from(f"{order}HHI", data, entry)
        if tag in tags or kind not in KINDS or number > MOST_STRIPS:
            return False
        letter = KINDS[kind]
        size, place = number * struct.calcsize(f"{order}{letter}"), entry + 8
        if size > 4:
            (place,) = struct.unpack_from(f"{order}I", data, place)
            parts.append((place, size))
        elif any(data[place + size : place + 4]):
            return False
        tags[tag] = struct.unpack_from(f"{order}{number}{letter}", data, place)
    fixed = {tag: values for tag, values in tags.items() if tag not in FREE}
    if following or len(tags) != count or fixed not in (GREY, COLOUR) or len(tags) - len(fixed) < len(FREE):
        return False
    strips = list(zip(tags[STRIPS], tags[STRIP_BYTES], strict=True))
    return _tile(data, parts + strips) and _rows(data, tags, strips)


def _rows(data: bytes, tags: dict[int, tuple[int, ...]], strips: list[tuple[int, int]]) -> bool:
    """Whether the strips are all rows of the picture, and no byte more."""
    (width,), (height,), (rows,) = tags[WIDTH], tags[HEIGHT], tags[ROWS]
    row = width * len(tags[BITS])
    if not rows or len(strips) != -(-height // rows):
        return False
    starts = range(0, height, rows)
    return all(
        filled([data[at : at + size]], row * min(rows, height - start))
        for start, (at, size) in zip(starts, strips, strict=True)
    )


def _tile(data: bytes, parts: list[tuple[int, int]]) -> bool:
    """Whether parts (start and size in bytes) fill a file without overlap, except some zeros."""
    end = padding = 0
    for start, size in sorted(parts):
        if start < end or start - end > PADDING or any(data[end:start]):
            return False
        padding += start - end
        end = start + size
    return end == len(data) and padding <= PADDING

"""TIFF before decoding: limits on directories, strips and tiles for the image's size (TIFF 6.0 §2, §15).

With tags that share their values, millions of strips, or tiles far larger than the photo, a small file could
cost gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from dpveil.io.refused import damaged, overloaded

SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
"""Bytes of one value of each type; values of other types are never read."""

WHOLE: Final = frozenset({1, 3, 4, 13, 16})
"""Types of unsigned integers."""
WIDTH, HEIGHT, SAMPLES, STRIPS, TILES = 256, 257, 277, 273, 324
TILE_WIDTH, TILE_HEIGHT = 322, 323
DIRECTORIES: Final = (34665, 34853, 40965)
"""Tags that point to further directories, which Pillow loads too: EXIF, GPS, interoperability."""

MOST_TAGS: Final = 4096
"""Most tags of one directory."""
MOST_PARTS: Final = 2**14
"""Strips or tiles that are always allowed, besides one for every `PIXELS_PER_PART` samples."""
PIXELS_PER_PART: Final = 32
"""A strip or tile costs Pillow some 260 bytes: about 8 for each of so many samples."""
TILE_PIXELS: Final = 2**20
"""Pixels that a tile may have in any case; it may also be as large as the photo."""


class Tag(NamedTuple):
    """An entry of a directory: number of values, their size in bytes, and the first if it is an integer."""

    values: int
    size: int
    first: int


@dataclass(frozen=True)
class Reader:
    """Reads numbers and directories of a file: byte order "<" or ">", and whether it is BigTIFF."""

    data: bytes
    order: str
    big: bool

    def number(self, at: int, size: int) -> int:
        """Return the unsigned integer of `size` bytes at the offset `at`; of fewer at the end of the file."""
        part = self.data[at : at + size]
        return int.from_bytes(part, "little" if self.order == "<" else "big")

    def tags(self, at: int) -> Iterator[tuple[int, Tag]]:
        """Yield tag and entry of the directory at the offset `at`; raises `Refused` for too many."""
        word, head, entry = (8, 8, 20) if self.big else (4, 2, 12)
        count = self.number(at, head)
        if count > MOST_TAGS:
            raise overloaded(f"{count:,} tags")
        for start in range(at + head, at + head + count * entry, entry):
            kind, values = self.number(start + 2, 2), self.number(start + 4, word)
            size = SIZES.get(kind, 0) * values
            inline = size <= word and kind in WHOLE
            value = self.number(start + 4 + word, SIZES[kind]) if inline and values else 0
            if not inline and size > word and self.number(start + 4 + word, word) + size > len(self.data):
                size = 0  # beyond the end of the file, so never read
            yield self.number(start, 2), Tag(values, size, value)


def check_tiff(data: bytes) -> None:
    """Raise `Refused` if decoding this TIFF would cost far more than the pixels that it declares."""
    reader = Reader(data, "<" if data[:2] == b"II" else ">", data[2:4] in (b"+\0", b"\0+"))
    first: dict[int, Tag] = {}
    total = 0
    for tag, entry in reader.tags(reader.number(8, 8) if reader.big else reader.number(4, 4)):
        if tag in first and tag in (WIDTH, HEIGHT, SAMPLES, STRIPS, TILES, TILE_WIDTH, TILE_HEIGHT):
            raise damaged("TIFF")
        first.setdefault(tag, entry)
        total += entry.size
    total += _further(reader, first)
    if total > len(data):
        raise overloaded("tags that share their values")
    check_parts(first)


def _further(reader: Reader, first: dict[int, Tag]) -> int:
    """Return the size in bytes of all values in the directories to which the first one points."""
    total = 0
    known = dict(first)
    for pointer in DIRECTORIES:
        if pointer in known and known[pointer].first:
            found = list(reader.tags(known[pointer].first))
            total += sum(entry.size for _, entry in found)
            known = {**dict(found), **known}
    return total


def check_parts(first: dict[int, Tag]) -> None:
    """Raise `Refused` for more strips or tiles, or larger tiles, than the pixels of these tags need."""
    nothing, one = Tag(0, 0, 0), Tag(1, 2, 1)
    width, height = (first.get(tag, nothing).first for tag in (WIDTH, HEIGHT))
    samples = width * height * max(1, first.get(SAMPLES, one).first)
    parts = max(first.get(tag, nothing).values for tag in (STRIPS, TILES))
    if parts > MOST_PARTS + samples // PIXELS_PER_PART:
        raise overloaded(f"{parts:,} strips or tiles")
    tile = first.get(TILE_WIDTH, nothing).first * first.get(TILE_HEIGHT, nothing).first
    if tile > max(TILE_PIXELS, width * height):
        raise overloaded(f"tiles of {tile:,} pixels")

"""The boxes of HEIC and AVIF files: items, their types, and where their bytes are (ISO 23008-12, 14496-12).

Every count is limited, and rare ways of storing items are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dpveil.io.refused import animation, damaged, overloaded

MOST_BOXES: Final = 20_000
"""Most boxes at one level; a phone's 200-megapixel photo has some 900 items."""
MOST_ENTRIES: Final = 70_000
"""Most references, and most property associations: a grid has at most 65 536 tiles."""
LONGEST: Final = 2**31
"""Largest file in bytes: the new file has offsets of four bytes."""
MOST_EXTENTS: Final = 64
"""Most extents of one item."""


class Box(NamedTuple):
    """One box: its type, and the byte offsets at which its body starts and ends."""

    kind: bytes
    start: int
    end: int


@dataclass
class Reading:
    """Reads `data` from the offset `at` on; raises `Refused` beyond `end`. `name` is the file's format."""

    data: bytes
    at: int
    end: int
    name: str

    def number(self, size: int) -> int:
        """Return the next `size` bytes as a big-endian unsigned integer."""
        return int.from_bytes(self.take(size), "big")

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size > self.end - self.at:
            raise damaged(self.name)
        self.at += size
        return self.data[self.at - size : self.at]


@dataclass
class Item:
    """A coded picture, a grid of pictures, or metadata.

    `parts` are its extents, as offset and length in bytes; `in_meta` says that offsets count from the idat
    box. `properties` are type and body, in the order in which they apply; `references` are type and numbers.
    """

    kind: bytes = b""
    in_meta: bool = False
    parts: tuple[tuple[int, int], ...] = ()
    properties: list[tuple[bytes, bytes]] = field(default_factory=list)
    references: list[tuple[bytes, tuple[int, ...]]] = field(default_factory=list)


@dataclass
class Items:
    """The items of a file of format `name`, by number, and the number of the primary picture.

    `idat` is the byte range of the idat box; `taken` counts the bytes of contents returned so far.
    """

    data: bytes
    name: str
    primary: int = -1
    every: dict[int, Item] = field(default_factory=dict)
    idat: tuple[int, int] = (0, 0)
    taken: int = 0

    def contents(self, item: Item) -> bytes:
        """Return the bytes of `item`; raises `Refused` if some are missing, or if items share too many."""
        start, end = self.idat if item.in_meta else (0, len(self.data))
        for at, length in item.parts:
            if at > end - start or length > end - start - at:
                raise damaged(self.name)
        self.taken += sum(length for _, length in item.parts)
        if self.taken > 2 * len(self.data):
            raise overloaded("pictures that share their bytes")
        return b"".join(self.data[start + at : start + at + length] for at, length in item.parts)


def boxes(data: bytes, start: int, end: int, name: str) -> Iterator[Box]:
    """Yield the boxes between the offsets `start` and `end`; raises `Refused` if they do not fit exactly."""
    at = start
    for _ in range(MOST_BOXES):
        if at == end:
            return
        reading = Reading(data, at, end, name)
        size, kind = reading.number(4), reading.take(4)
        size = reading.number(8) if size == 1 else end - at if size == 0 else size
        if not reading.at - at <= size <= end - at:
            raise damaged(name)
        yield Box(kind, reading.at, at + size)
        at += size
    raise overloaded(f"more than {MOST_BOXES:,} boxes")


def items_of(data: bytes, name: str) -> Items:
    """Return the items of a file of format `name`; raises `Refused` for a malformed file and a sequence."""
    if len(data) > LONGEST:
        raise overloaded(f"{len(data):,} bytes")
    top = list(boxes(data, 0, len(data), name))
    films = [box for box in top if box.kind in (b"moov", b"moof")]
    if films:
        raise animation(max(_frames(data, film, name) for film in films))
    metas = [box for box in top if box.kind == b"meta"]
    if len(metas) != 1:
        raise damaged(name)
    parts: dict[bytes, Reading] = {}
    for box in boxes(data, metas[0].start + 4, metas[0].end, name):
        if box.kind in parts:
            raise damaged(name)
        parts[box.kind] = Reading(data, box.start, box.end, name)
    if not {b"hdlr", b"pitm", b"iinf", b"iloc", b"iprp"} <= parts.keys():
        raise damaged(name)
    found = Items(data, name)
    if b"idat" in parts:
        found.idat = (parts[b"idat"].at, parts[b"idat"].end)
    version = _version(parts[b"pitm"])
    found.primary = parts[b"pitm"].number(4 if version else 2)
    _read_kinds(found, parts[b"iinf"])
    _read_places(found, parts[b"iloc"])
    _read_properties(found, parts[b"iprp"])
    if b"iref" in parts:
        _read_references(found, parts[b"iref"])
    return found


def _frames(data: bytes, film: Box, name: str) -> int:
    """Return the number of frames in the longest track of the box `film`."""
    inside = [film]
    for kind in (b"trak", b"mdia", b"minf", b"stbl", b"stsz"):
        inside = [
            box for outer in inside for box in boxes(data, outer.start, outer.end, name) if box.kind == kind
        ]
    return max((Reading(data, box.start + 8, box.end, name).number(4) for box in inside), default=0)


def _version(reading: Reading) -> int:
    """Return the version of a full box, and skip its flags."""
    return reading.number(4) >> 24


def _count(reading: Reading, size: int) -> int:
    count = reading.number(size)
    if count > MOST_ENTRIES:
        raise overloaded(f"{count:,} entries in a table")
    return count


def _read_kinds(found: Items, reading: Reading) -> None:
    count = _count(reading, 4 if _version(reading) else 2)
    entries = list(boxes(found.data, reading.at, reading.end, found.name))
    if count != len(entries):
        raise damaged(found.name)
    for box in entries:
        entry = Reading(found.data, box.start, box.end, found.name)
        version = _version(entry)
        number, protection = entry.number(4 if version == 3 else 2), entry.number(2)
        if box.kind != b"infe" or version not in (2, 3) or protection or number in found.every:
            raise damaged(found.name)
        found.every[number] = Item(entry.take(4))


def _read_places(found: Items, reading: Reading) -> None:
    version, sizes = _version(reading), reading.number(2)
    offset, length, base, index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    wide = 4 if version == 2 else 2
    if version > 2 or {offset, length, base, index} - {0, 4, 8}:
        raise damaged(found.name)
    for _ in range(_count(reading, wide)):
        number, method = reading.number(wide), reading.number(2) & 15 if version else 0
        source, first = reading.number(2), reading.number(base)
        extents = reading.number(2)
        if extents > MOST_EXTENTS:
            raise overloaded(f"a picture in {extents:,} parts")
        skipped = index if version else 0
        parts = []
        for _ in range(extents):
            reading.take(skipped)
            parts.append((first + reading.number(offset), reading.number(length)))
        item = found.every.get(number)
        if item is None or item.parts:
            raise damaged(found.name)
        if source == 0 and method in (0, 1):  # other items get no extents, so that using them is refused
            item.parts, item.in_meta = tuple(parts), method == 1


def _read_properties(found: Items, reading: Reading) -> None:
    inside = list(boxes(found.data, reading.at, reading.end, found.name))
    if [box.kind for box in inside[:1]] != [b"ipco"] or any(box.kind != b"ipma" for box in inside[1:]):
        raise damaged(found.name)
    inner = boxes(found.data, inside[0].start, inside[0].end, found.name)
    stored = [(box.kind, found.data[box.start : box.end]) for box in inner]
    for box in inside[1:]:
        _associate(found, stored, Reading(found.data, box.start, box.end, found.name))


def _associate(found: Items, stored: list[tuple[bytes, bytes]], reading: Reading) -> None:
    head = reading.number(4)
    wide, long = 4 if head >> 24 else 2, head & 1
    total = 0
    for _ in range(_count(reading, 4)):
        item = found.every.get(reading.number(wide))
        many = reading.number(1)
        total += many
        if item is None or item.properties or total > MOST_ENTRIES:
            raise damaged(found.name)
        for _ in range(many):
            index = reading.number(1 + long) & (0x7FFF if long else 0x7F)
            if index > len(stored):
                raise damaged(found.name)
            if index:
                item.properties.append(stored[index - 1])


def _read_references(found: Items, reading: Reading) -> None:
    wide = 4 if _version(reading) else 2
    total = 0
    for box in boxes(found.data, reading.at, reading.end, found.name):
        entry = Reading(found.data, box.start, box.end, found.name)
        item, many = found.every.get(entry.number(wide)), entry.number(2)
        total += many
        if item is None or total > MOST_ENTRIES:
            raise damaged(found.name)
        item.references.append((box.kind, tuple(entry.number(wide) for _ in range(many))))

"""Pages of TIFF files: each as a file with no other one (TIFF 6.0 §2, §8: NewSubfileType)."""

from __future__ import annotations

import struct
from typing import BinaryIO, Final, Literal, NamedTuple

from dpveil.io.reading import most_bytes
from dpveil.io.refused import Refused, damaged, overloaded
from dpveil.io.screening import check_pixels
from dpveil.io.tiff import HEIGHT, MOST_TAGS, SIZES, STRIPS, TILES, WHOLE, WIDTH, Tag, check_parts

SUBFILE: Final = 254
"""The tag NewSubfileType."""
NO_PAGE: Final = 0b101
"""Its bits of a smaller copy of a page and of a mask for one, which are no pages."""
MOST: Final = 1 << 13
"""Most directories of one file."""
MOST_TOGETHER: Final = 1 << 17
"""Most tags of all directories together, as these may lie on one another."""
LENGTHS: Final = {STRIPS: 279, TILES: 325}
"""The tags that tell how many bytes each strip or tile has."""
SHOWN: Final = frozenset(
    {WIDTH, HEIGHT, 258, 259, 262, 266, STRIPS, 274, 277, 278, 279, 284, 292, 293, 317, 320, 322, 323}
    | {TILES, 325, 338, 339, 529, 530, 531, 532, 34675}
)
"""Tags that tell how a page looks: its pixels, their compression and colours, and which way is up."""


class _Entry(NamedTuple):
    tag: int
    kind: int
    values: int
    field: bytes

    @property
    def size(self) -> int:
        """The bytes of its values; 0 for types that are never read."""
        return SIZES.get(self.kind, 0) * self.values


class _Directories:
    """The directories of an open file of `size` bytes; raises `Refused` if it is no TIFF."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size
        head = self.part(0, 16)
        if head[:2] not in (b"II", b"MM") or head[2:4] not in (b"*\0", b"\0*", b"+\0", b"\0+"):
            raise Refused("is no TIFF", "name a PDF or TIFF")
        self.big = head[2:4] in (b"+\0", b"\0+")
        self.order: Literal["little", "big"] = "little" if head[:2] == b"II" else "big"
        self.word, self.counting = (8, 8) if self.big else (4, 2)
        self.entry = struct.Struct(f"{'<' if head[:2] == b'II' else '>'}HH{'Q8s' if self.big else 'I4s'}")
        self.head = head[: self.word]
        self.start = self.number(head[self.word : 2 * self.word])

    def part(self, at: int, size: int) -> bytes:
        """Return bytes of the file; fewer at its end."""
        start = min(at, self.size)
        self._file.seek(start)
        return self._file.read(min(size, self.size - start))

    def number(self, told: bytes) -> int:
        return int.from_bytes(told, self.order)

    def told(self, number: int) -> bytes:
        """Return an offset, or a number of bytes, as the file tells it."""
        return number.to_bytes(self.word, self.order)

    def directory(self, at: int) -> tuple[list[_Entry], int]:
        """Return the entries of the directory at an offset, and where the next one is."""
        count = self.number(self.part(at, self.counting))
        if count > MOST_TAGS:
            raise overloaded(f"{count:,} tags")
        size = count * self.entry.size
        told = self.part(at + self.counting, size + self.word)
        whole = told[: min(len(told) // self.entry.size * self.entry.size, size)]
        return [_Entry(*each) for each in self.entry.iter_unpack(whole)], self.number(told[size:])

    def first(self, entry: _Entry) -> int:
        """Return the first value of an entry if it is an integer that lies in it, or 0."""
        inline = entry.kind in WHOLE and 0 < entry.size <= self.word
        return self.number(entry.field[: SIZES[entry.kind]]) if inline else 0

    def values(self, entry: _Entry) -> bytes:
        """Return the bytes of the values of an entry."""
        inside = entry.size <= self.word
        return entry.field[: entry.size] if inside else self.part(self.number(entry.field), entry.size)

    def numbers(self, entry: _Entry) -> list[int]:
        """Return the values of an entry as unsigned integers."""
        values, size = self.values(entry), SIZES[entry.kind]
        return [self.number(values[at : at + size]) for at in range(0, len(values), size)]


def tiff_pages(file: BinaryIO, size: int) -> list[int]:
    """Return where the directory of each page is in a TIFF of `size` bytes; raises `Refused`.

    Smaller copies of pages, such as thumbnails, and masks are left out.
    """
    found, seen, tags = list[int](), set[int](), 0
    directories = _Directories(file, size)
    at = directories.start
    while at:
        if at in seen or len(seen) >= MOST or at >= size:
            raise damaged("TIFF")
        seen.add(at)
        entries, following = directories.directory(at)
        tags += len(entries)
        if tags > MOST_TOGETHER:
            raise overloaded(f"more than {MOST_TOGETHER:,} tags")
        if not any(directories.first(entry) & NO_PAGE for entry in entries if entry.tag == SUBFILE):
            found.append(at)
        at = following
    return found


def tiff_page(file: BinaryIO, size: int, at: int, max_pixels: int) -> bytes:
    """Return a TIFF of nothing but the page whose directory is at the offset `at` of one of `size` bytes.

    It has the tags that tell how the page looks, and its strips or tiles. Raises `Refused` for a page of more
    than `max_pixels`, or of far more bytes than its pixels need.
    """
    whole = _Directories(file, size)
    entries = [entry for entry in whole.directory(at)[0] if entry.tag in SHOWN and entry.size]
    tags = {entry.tag: Tag(entry.values, entry.size, whole.first(entry)) for entry in reversed(entries)}
    width, height = (tags[tag].first if tag in tags else 0 for tag in (WIDTH, HEIGHT))
    check_pixels(width, height, max_pixels)
    check_parts(tags)
    return _Alone(whole, entries, most_bytes(width * height)).contents()


class _Alone:
    """A file of one page, made of `entries` of a directory of another one, and at most `most` bytes.

    Raises `Refused` if it would have more.
    """

    def __init__(self, whole: _Directories, entries: list[_Entry], most: int) -> None:
        self._whole, self._entries, self._left = whole, entries, most
        self._end = 2 * whole.word + whole.counting + whole.entry.size * len(entries) + whole.word
        self._parts = list[bytes]()

    def contents(self) -> bytes:
        """Return its bytes."""
        whole = self._whole
        self._take(sum(entry.size for entry in self._entries))
        told = b"".join(map(self._entry, self._entries))
        count = len(self._entries).to_bytes(whole.counting, whole.order)
        return b"".join(
            [whole.head, whole.told(2 * whole.word), count, told, bytes(whole.word), *self._parts]
        )

    def _entry(self, entry: _Entry) -> bytes:
        """Return an entry of its directory, and put what that leads to."""
        whole, kind, count = self._whole, entry.kind, entry.values
        values = whole.values(entry)
        if entry.tag in LENGTHS and kind in WHOLE:
            kind, starts = (16 if whole.big else 4), self._strips(entry)
            count, values = len(starts), b"".join(map(whole.told, starts))
        field = whole.told(self._put(values)) if len(values) > whole.word else values.ljust(whole.word, b"\0")
        return whole.entry.pack(entry.tag, kind, count, field)

    def _strips(self, entry: _Entry) -> list[int]:
        """Put all strips or tiles, and return where they are."""
        told = [each for each in self._entries if each.tag == LENGTHS[entry.tag] and each.kind in WHOLE]
        places = self._whole.numbers(entry)
        if told:
            lengths = self._whole.numbers(told[0])
        else:  # some writers leave it out where there is one
            lengths = [max(0, min(self._whole.size - places[0], self._left))] if len(places) == 1 else []
        if len(lengths) != len(places):
            raise damaged("TIFF")
        self._take(sum(lengths))
        return [self._put(self._whole.part(*each)) for each in zip(places, lengths, strict=True)]

    def _put(self, contents: bytes) -> int:
        """Put bytes behind all others, at an even place, and return that."""
        at = self._end
        self._parts.append(contents + bytes(len(contents) % 2))
        self._end += len(self._parts[-1])
        return at

    def _take(self, size: int) -> None:
        if size > self._left:
            raise overloaded("a page of much larger tags and strips")
        self._left -= size

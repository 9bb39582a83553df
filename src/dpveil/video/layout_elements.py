"""Whether a Matroska or WebM file is laid out as `join` writes it (RFC 8794, RFC 9559)."""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dpveil.video.containers import MOST_FRAMES, number
from dpveil.video.source import Source
from dpveil.video.strange import Strange

FILE: Final = 0
"""Stands for the element that the file itself would be."""
HEAD, SEGMENT, CLUSTER, TRACK, TAG, SEEK, CUE = 0x1A45DFA3, 0x18538067, 0x1F43B675, 0xAE, 0x7373, 0x4DBB, 0xBB
INFO, TRACKS, CUES, SEEKS, TAGS = 0x1549A966, 0x1654AE6B, 0x1C53BB6B, 0x114D9B74, 0x1254C367
BLOCK, GROUP, GROUPED, LENGTH, REFERENCE, DISCARDED = 0xA3, 0xA0, 0xA1, 0x9B, 0xFB, 0x75A2
TIME, CUE_TIME, CUE_TRACK, CUE_CLUSTER, CUE_PLACE = 0xE7, 0xB3, 0xF7, 0xF1, 0xF0
CHECKSUM, VOID, PADDING = 0xBF, 0xEC, 128
ANY: Final = 1 << 62
CHILDREN: Final[dict[int, dict[int, int]]] = {
    FILE: dict.fromkeys((HEAD, SEGMENT), ANY),
    HEAD: {0x4286: 1, 0x42F7: 1, 0x42F2: 1, 0x42F3: 1, 0x4282: 8, 0x4287: 1, 0x4285: 1},
    SEGMENT: {VOID: PADDING, **dict.fromkeys((INFO, TRACKS, CUES, SEEKS, TAGS, CLUSTER), ANY)},
    SEEKS: {CHECKSUM: 4, SEEK: ANY},
    SEEK: {0x53AB: 4, 0x53AC: 8},
    INFO: {CHECKSUM: 4, 0x2AD7B1: 4, 0x4D80: 4, 0x5741: 4, 0x4489: 8},
    TRACKS: {CHECKSUM: 4, TRACK: ANY},
    TRACK: {
        **{0xD7: 1, 0x73C5: 8, 0x9C: 1, 0x22B59C: 3, 0x88: 1, 0x86: 15, 0x83: 1, 0x23E383: 8, 0x55EE: 1},
        **{0x56AA: 4, 0x56BB: 4, 0x63A2: 300, 0xE0: ANY, 0xE1: ANY, VOID: PADDING},
    },
    0xE0: {0xB0: 3, 0xBA: 3, 0x9A: 1, 0x54B2: 1, 0x55B0: ANY},
    0x55B0: {0x55B1: 1, 0x55B7: 1, 0x55B8: 1, 0x55B9: 1, 0x55BA: 1, 0x55BB: 1},
    0xE1: {0x9F: 1, 0xB5: 8, 0x6264: 1},
    TAGS: {CHECKSUM: 4, TAG: ANY},
    TAG: {0x63C0: ANY, 0x67C8: ANY},
    0x63C0: {0x63C5: 8},
    0x67C8: {0x45A3: 8, 0x4487: 19},
    CLUSTER: {CHECKSUM: 4, TIME: 8, BLOCK: ANY, GROUP: ANY},
    GROUP: {GROUPED: ANY, LENGTH: 8, REFERENCE: 8, DISCARDED: 4},
    CUES: {CHECKSUM: 4, CUE: ANY},
    CUE: {CUE_TIME: 8, 0xB7: ANY},
    0xB7: {CUE_TRACK: 1, CUE_CLUSTER: 8, CUE_PLACE: 8},
}
"""What each element may hold, and most bytes of it; 0x63A2 is what a decoder needs to begin."""
MOST_ELEMENTS: Final = 10_000_000
"""Most elements of a file that are looked at."""
REPEATED: Final = {**dict.fromkeys((CLUSTER, BLOCK, GROUP, CUE), MOST_ELEMENTS), TRACK: 2, TAG: 2, SEEK: 4}
"""How often elements may be in one other, where that is more than once."""
RESERVED: Final = (SEGMENT, TRACK, VOID)
"""Elements whose size has more bytes than it needs."""
PICTURES, SOUND, KEY = 0x81, 0x82, 0x80
"""The first bytes of a block of either track, and the flag of one that depends on no other."""
OTHER: Final = "a part of another kind"
Part = tuple[int, int, int, int]
"""An identifier, where its element begins, and where its body begins and ends."""


def in_elements(source: Source) -> int:
    """Return the number of coded frames, those of the first track; raises as `layout.coded_frames`."""
    blocks, top = _Blocks(source), []
    for count, part in enumerate(_elements(source, FILE, 0, source.size)):
        if count > MOST_ELEMENTS:
            raise Strange(f"more than {MOST_ELEMENTS:,} parts")
        name, _, start, end = part
        if name in CHILDREN[FILE]:
            top.append(name)
        elif name == VOID and any(source.read(start, end - start)):
            raise Strange("padding")
        blocks.add(part)
        if name == SEGMENT:
            blocks.base = start
    if top != [HEAD, SEGMENT]:
        raise Strange("its parts")
    return blocks.whole()


@dataclass
class _Blocks:
    """What the blocks that were added say of frames: times, and where those are that depend on no other."""

    source: Source
    base: int = 0
    frames: int = 0
    last: int = -1
    length: int | None = None
    time: int | None = 0
    empty: bool = False
    cluster: tuple[int, int] = (0, 0)
    keys: array[int] = field(default_factory=lambda: array("Q"))
    cues: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, part: Part) -> None:
        """Add an element; raises `Strange` for one that does not follow from those before."""
        name, place, start, end = part
        if name == CLUSTER:
            self._end()
            self.cluster, self.time, self.empty = (place - self.base, start), None, True
        elif name == TIME:
            self.time = _whole(self.source, start, end)
        elif name == BLOCK:
            self._block(place, start, end, {})
        elif name == GROUP:
            parts = {inner[0]: inner for inner in _elements(self.source, GROUP, start, end)}
            if GROUPED not in parts:
                raise Strange(OTHER)
            self._block(place, *parts[GROUPED][2:], parts)
        elif name in (CUE_TIME, CUE_CLUSTER, CUE_PLACE):
            self.cues.append(_whole(self.source, start, end))
        elif name == CUE_TRACK and self.source.read(start, 1) != b"\1":
            raise Strange("an index of another track")

    def whole(self) -> int:
        """Return the number of frames; raises `Strange` if the index is not that of their blocks."""
        self._end()
        if self.cues != self.keys:
            raise Strange("its index")
        return self.frames

    def _end(self) -> None:
        if self.empty:
            raise Strange("a cluster without frames")

    def _block(self, place: int, start: int, end: int, parts: dict[int, Part]) -> None:
        head = self.source.read(start, 4)
        flags = (0,) if parts else (0, KEY)
        if end - start <= 4 or head[0] not in (PICTURES, SOUND) or head[3] not in flags or self.time is None:
            raise Strange("a block of another kind")
        after = int.from_bytes(head[1:3], "big", signed=True)
        if self.empty and after and not (self.time == 0 and after < 0):
            raise Strange("a cluster that begins at another time")
        self.empty = False
        if head[0] == PICTURES:
            self._picture(place, self.time + after, head[3] == KEY, parts)

    def _picture(self, place: int, time: int, key: bool, parts: dict[int, Part]) -> None:
        length, reference = (
            _whole(self.source, *parts[name][2:], signed=name == REFERENCE) if name in parts else None
            for name in (LENGTH, REFERENCE)
        )
        if time <= self.last or DISCARDED in parts or self.frames >= MOST_FRAMES:
            raise Strange("frames that are not shown")
        if self.frames and self.length not in (None, time - self.last):
            raise Strange("frames that are shown for another time")
        if reference not in (None, self.last - time):
            raise Strange("frames that depend on others")
        if key or (parts and reference is None):
            self.keys.extend((time, self.cluster[0], place - self.cluster[1]))
        self.frames, self.last, self.length = self.frames + 1, time, length


def _elements(source: Source, parent: int, at: int, end: int) -> Iterator[Part]:
    """Yield the elements within one of the kind `parent`, and those within these, but for `GROUP`."""
    seen: Counter[int] = Counter()
    while at < end:
        part = name, _, start, stop = _element(source, at, end)
        seen[name] += 1
        if name not in CHILDREN[parent] or seen[name] > REPEATED.get(name, 1):
            raise Strange(OTHER)
        if stop - start > CHILDREN[parent][name]:
            raise Strange(f"{stop - start:,} bytes of element {name:X}")
        if name == CHECKSUM and (len(seen) > 1 or _sum(source, stop, end) != source.read(start, 4)[::-1]):
            raise Strange("a checksum of other bytes")
        yield part
        if name in CHILDREN and name != GROUP:
            yield from _elements(source, name, start, stop)
        at = stop


def _element(source: Source, at: int, end: int) -> Part:
    head = source.read(at, 12)
    width = 9 - head[0].bit_length() if head else 9
    wide, size = number(head[width:])
    start = at + width + wide
    if width > 4 or not wide or size is None or start + size > end:
        raise Strange("a part that does not fit")
    name = int.from_bytes(head[:width], "big")
    if wide > 1 and size < (1 << 7 * (wide - 1)) - 1 and name not in RESERVED:
        raise Strange("a size that is longer than it has to be")
    return name, at, start, start + size


def _sum(source: Source, at: int, end: int) -> bytes:
    """Return the CRC-32 of the bytes from `at` to `end`."""
    found = 0
    while at < end:
        piece = source.read(at, min(1 << 20, end - at))
        if not piece:
            break
        found, at = zlib.crc32(piece, found), at + len(piece)
    return found.to_bytes(4, "big")


def _whole(source: Source, start: int, end: int, *, signed: bool = False) -> int:
    """Return the number in an element; raises `Strange` for one that has more bytes than it needs."""
    value = int.from_bytes(source.read(start, end - start), "big", signed=signed)
    needed = max(1, ((value + (value < 0)).bit_length() + signed + 7) // 8)
    if needed != end - start:
        raise Strange("a number that is longer than it has to be")
    return value

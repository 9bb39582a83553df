"""Which container a clip is, by its first bytes, and whether its file is whole and honest about its tables.

FFmpeg's guess is never asked for: a playlist, or anything else that names other files, is no clip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from dpveil.errors import ClipError
from dpveil.video.source import BARE, Source

MOV, MATROSKA, AVI, TS, PS = "mov", "matroska", "avi", "mpegts", "mpeg"
NAMES: Final = {MOV: "mp4", MATROSKA: "matroska", AVI: "avi", TS: "mpegts", PS: "mpeg"}
"""FFmpeg's demuxers that may read a clip, and what the format is called in `Facts`."""
FIRST_BOXES: Final = frozenset((b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"))
"""Types of the first box of a MOV or MP4 file."""
CONTAINERS: Final = frozenset(
    (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"mvex", b"moof", b"traf")
)
MOST_BOXES: Final = 2_000_000
"""Most boxes of a MOV or MP4 file: those of a fragmented one are a few for each frame."""
MOST_FRAMES: Final = 2_000_000
"""Most frames of a clip: 18 hours at 30 a second."""
MOST_ENTRIES: Final = 50 * MOST_FRAMES
"""Most entries of a table of all tracks together: sound that is not compressed has one for each sample."""
MOST_FRAGMENTED: Final = 4 * MOST_FRAMES
"""Most samples of all fragments of a file together, of which FFmpeg keeps a list."""
EARLY: Final = "the file ends early"
COPY_AGAIN: Final = "copy it again from where it was made, or repair it by ffmpeg -i IN -c copy OUT.mp4"
KINDS: Final = "save it as MP4, MOV, Matroska, WebM, AVI or MPEG"
MOST_BYTES: Final = 1 << 40
"""Most bytes of a clip's file, all of which are hashed."""
MOST_ASIDE: Final = 64 << 20
"""Most bytes of what a file has beside pictures and sound, such as attachments: FFmpeg holds copies of it."""
ASIDE: Final = frozenset((b"ftyp", b"udta", b"meta", b"uuid", b"stsd", b"hdlr", b"dref"))
"""Boxes that FFmpeg reads whole."""
ID_SEGMENT, ID_CLUSTER, ID_VOID = 0x18538067, 0x1F43B675, 0xEC
OF_CLUSTERS: Final = frozenset((0xE7, 0xA7, 0xAB, 0xA3, 0xA0, 0xAF, 0x5854))
"""Elements of clusters, which are seen beside those that do not state their size."""
MOST_ELEMENTS: Final = 8 * MOST_FRAMES
"""Most elements of a Matroska segment that are looked at, without those within clusters that state a size."""


def container_of(source: Source) -> str:
    """Return FFmpeg's name of the clip's container; raises `ClipError` for any other file, or half of one."""
    head = source.read(0, 600)
    if not head:
        raise source.refused("the file is empty", COPY_AGAIN)
    if source.size > MOST_BYTES:
        raise source.refused(f"it has more than {MOST_BYTES:,} bytes", "cut it into parts")
    if head[4:8] in FIRST_BOXES:
        _check_boxes(source)
        return MOV
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        _check_elements(source, *segment(source))
        return MATROSKA
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        _check_riff(source)
        return AVI
    if any(head[at : at + 3 * step : step] == b"GGG" for step, at in ((188, 0), (192, 4))):
        return TS
    if head.startswith(b"\x00\x00\x01\xba"):
        return PS
    raise source.refused("it is not a clip in a format that dpveil reads", KINDS)


def early(source: Source) -> ClipError:
    """Return the error that the file ends early."""
    return source.refused(EARLY, COPY_AGAIN)


def damaged(source: Source, what: str = "its structure is damaged") -> ClipError:
    """Return the error that the file is damaged."""
    return source.refused(what, COPY_AGAIN)


def _check_boxes(source: Source) -> None:
    """Check that the boxes fit the file and each other, and that no table lists more than the file has."""
    found, entries, fragments, pictures, listed, aside = set(), 0, 0, False, 0, 0
    for count, (kind, start, end) in enumerate(boxes(source, 0, source.size)):
        found.add(kind)
        if count > MOST_BOXES:
            raise damaged(source, f"it has more than {MOST_BOXES:,} boxes")
        aside += end - start if kind in ASIDE or not any(kind) else 0
        if aside > MOST_ASIDE:
            raise _full(source)
        if kind == b"cmov":
            raise source.refused("its list of frames is compressed", COPY_AGAIN)
        if kind == b"trak":
            pictures, listed = False, 0
        elif kind == b"hdlr":
            pictures |= source.read(start + 8, 4) == b"vide"
        elif kind == b"stsz":
            listed = _samples(source, start, end)
            entries += listed
        elif kind == b"trun":
            fragments += _check_table(source, kind, start, end)
        elif kind in (b"stts", b"ctts", b"stss", b"stsc", b"stco", b"co64", b"elst"):
            _check_table(source, kind, start, end)
        if pictures and listed > MOST_FRAMES:
            raise source.refused(f"it has more than {MOST_FRAMES:,} frames", "cut it into parts")
        if entries > MOST_ENTRIES or fragments > min(source.size, MOST_FRAGMENTED):
            raise damaged(source, f"it lists more than {max(entries, fragments) - 1:,} samples")
    if b"moov" not in found:
        raise early(source)


def _full(source: Source) -> ClipError:
    """Return the error that the file has too much beside pictures and sound."""
    return source.refused(f"it has more than {MOST_ASIDE:,} bytes beside pictures and sound", BARE)


def boxes(
    source: Source, at: int, end: int, inside: Collection[bytes] = CONTAINERS, depth: int = 0
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type and the offsets of the body of each box, and of those within boxes of types `inside`."""
    while at < end:
        head = source.read(at, 16)
        size, kind, body = int.from_bytes(head[:4], "big"), head[4:8], at + 8
        if size == 1 and len(head) == 16:
            size, body = int.from_bytes(head[8:], "big"), at + 16
        if size == 0:
            if depth or end - at < 8:  # a zero may end a list of boxes: FFmpeg skips it, too
                return
            size = end - at
        if len(head) < 8 or body - at > size:
            raise early(source) if depth == 0 and len(head) < 8 else damaged(source)
        if size > end - at:
            raise early(source) if depth == 0 else damaged(source)
        yield kind, body, at + size
        if kind in inside:
            if depth > len(CONTAINERS):
                raise damaged(source)
            yield from boxes(source, body, at + size, inside, depth + 1)
        at += size


def _samples(source: Source, start: int, end: int) -> int:
    head = source.read(start, 12)
    size, count = int.from_bytes(head[4:8], "big"), int.from_bytes(head[8:12], "big")
    if len(head) < 12 or max(size, 1) * count > source.size or (size == 0 and count * 4 > end - start - 12):
        raise damaged(source, "its list of frames does not fit the file")
    return count


ENTRY: Final = {
    b"stts": 8,
    b"ctts": 8,
    b"stss": 4,
    b"stsc": 12,
    b"stco": 4,
    b"co64": 8,
    b"elst": 12,
    b"trun": 0,
}
"""Least bytes of an entry of a table."""


def _check_table(source: Source, kind: bytes, start: int, end: int) -> int:
    head = source.read(start, 8)
    count = int.from_bytes(head[4:8], "big")
    least = max(ENTRY[kind], 4 * (int.from_bytes(head[1:4], "big") >> 8 & 15).bit_count())
    if len(head) < 8 or count * least > end - start or count > source.size:
        raise damaged(source, "a table of its index does not fit the file")
    return count


def segment(source: Source) -> tuple[int, int]:
    """Return the offsets of the contents of a Matroska segment, which has to end within the file."""
    at = 4
    width, size = number(source.read(at, 12))
    at += width + (size or 0)
    while True:
        begun = source.read(at, 12)
        if len(begun) < 12:
            raise early(source)
        width, size = number(begun[4:])
        if int.from_bytes(begun[:4], "big") == ID_SEGMENT:
            break
        if begun[0] not in (0xEC, 0xBF):  # padding, or a checksum
            raise damaged(source)
        width, size = number(begun[1:])
        at += 1 + width + (size or 0)
    if width == 0:
        raise damaged(source)
    start = at + 4 + width
    if size is not None and start + size > source.size:
        raise early(source)
    return start, source.size if size is None else start + size


def _check_elements(source: Source, at: int, end: int) -> None:
    """Check that the elements of a Matroska segment fit, and that few bytes are no pictures and sound."""
    aside = 0
    for name, size in elements(source, at, end):
        if name not in (ID_CLUSTER, ID_VOID) and name not in OF_CLUSTERS:
            aside += size
        if aside > MOST_ASIDE:
            raise _full(source)


def elements(source: Source, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the name of each element of a Matroska segment, and the size of its contents (RFC 8794).

    A cluster that does not state its size, which is 0 then, ends where another one begins, or anything that
    is not within clusters.
    """
    count = 0
    while at < end:
        head = source.read(at, 12)
        wide = 9 - head[0].bit_length() if head else 9
        width, size = number(head[wide:])
        name = int.from_bytes(head[:wide], "big")
        count += 1
        if wide > 4 or (width == 0 and len(head) == 12) or (size is None and name != ID_CLUSTER):
            raise damaged(source)
        at += wide + width + (size or 0)
        if width == 0 or at > end:
            raise early(source)
        if count > MOST_ELEMENTS:
            raise damaged(source, f"it has more than {MOST_ELEMENTS:,} parts")
        yield name, size or 0


def number(data: bytes) -> tuple[int, int | None]:
    """Return the width of a variable-size integer and its value; None if it says that it is unknown."""
    width = 9 - data[0].bit_length() if data else 9
    if width > 8 or len(data) < width:
        return 0, 0
    value = int.from_bytes(data[:width], "big") & (1 << 7 * width) - 1
    return width, None if value == (1 << 7 * width) - 1 else value


def _check_riff(source: Source) -> None:
    """Check that the RIFF chunks of an AVI end within the file."""
    at = 0
    while at + 8 <= source.size:
        head = source.read(at, 8)
        if head[:4] not in (b"RIFF", b"JUNK"):
            break  # bytes after the last chunk, which no player reads
        at += 8 + int.from_bytes(head[4:], "little")
        at += at % 2
    if at > source.size + 1:
        raise early(source)

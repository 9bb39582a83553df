"""Whether a file is laid out as `join` writes it: parts of known kinds and sizes, with no room for others.

Only the container is looked at (ISO 14496-12, RFC 9559), not what is coded in pictures and sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpveil.video.containers import boxes, number
from dpveil.video.source import Source

INSIDE: Final = frozenset((b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"udta"))
BOXES: Final = {
    **{b"mvhd": 120, b"tkhd": 104, b"mdhd": 44, b"hdlr": 45, b"vmhd": 20, b"smhd": 16, b"dref": 28},
    **{b"elst": 56, b"sbgp": 64, b"sgpd": 32, b"meta": 53, b"stsd": 400},
}
"""Most bytes of boxes other than tables, with their headers."""
TABLES: Final = {b"stts": 8, b"stss": 4, b"stsc": 12, b"stco": 4, b"co64": 8}
"""Bytes of an entry of each table."""
ID_SEGMENT, ID_CLUSTER, ID_BLOCK, ID_GROUPED, ID_VOID = 0x18538067, 0x1F43B675, 0xA3, 0xA1, 0xEC
MASTERS: Final = frozenset(
    {
        *(0x1A45DFA3, ID_SEGMENT, ID_CLUSTER, 0x1549A966, 0x1654AE6B, 0x1C53BB6B, 0x114D9B74, 0x1254C367),
        *(0x4DBB, 0x55B0, 0x7373, 0x63C0, 0x67C8, 0xAE, 0xE0, 0xE1, 0xA0, 0xBB, 0xB7),
    }
)
"""Elements that hold others."""
ELEMENTS: Final = {
    **dict.fromkeys((0x9C, 0x88, 0x83, 0xD7, 0x55EE, 0x54B2, 0x9A, 0x9F, 0x6264, 0x4286, 0x4285, 0x4287), 2),
    **dict.fromkeys((0x55B1, 0x55B7, 0x55B8, 0x55B9, 0x55BA, 0x55BB, 0x42F2, 0x42F3, 0x42F7, 0xFB), 3),
    **dict.fromkeys((0xBF, 0x53AB, 0x53AC, 0x2AD7B1, 0x4D80, 0x5741, 0x22B59C, 0x23E383, 0x56AA, 0x56BB), 8),
    **dict.fromkeys((0x73C5, 0x63C5, 0x4489, 0x4282, 0x45A3, 0xB0, 0xBA, 0xB3, 0xF0, 0xF1, 0xF7, 0xE7), 8),
    **dict.fromkeys((0xB5, 0x75A2, 0x9B), 8),
    **{0x4487: 19, 0x86: 15, 0x63A2: 300, ID_VOID: 128},
}
"""Most bytes of the body of each other element but blocks; 0x63A2 is what a decoder needs to begin."""
MOST_ELEMENTS: Final = 10_000_000
"""Most elements of a Matroska file that are looked at."""
LACED: Final = 0x06
"""The bits of a block's flags that say that it holds several frames."""


class Strange(Exception):
    """What in a file is not as dpveil writes it."""


def coded_frames(source: Source, matroska: bool) -> int:
    """Return the number of coded frames in a file that has nothing but these and sound.

    Takes time by the number of parts, at most `MOST_ELEMENTS`, and memory by the size of the file's tables.
    Raises `Strange` for any other layout than that of `join`, and `ClipError` for boxes that do not fit.
    """
    return _in_matroska(source) if matroska else _in_boxes(source)


def _in_boxes(source: Source) -> int:
    """Return the number of coded frames in an MP4 or MOV file."""
    outer = [(kind, start, end) for kind, start, end in boxes(source, 0, source.size, frozenset())]
    kinds = [kind for kind, *_ in outer]
    if [kind for kind in kinds if kind not in (b"free", b"wide")] != [b"ftyp", b"mdat", b"moov"]:
        raise Strange("its parts")
    if kinds.count(b"free") + kinds.count(b"wide") > 1 or outer[-1][2] != source.size:
        raise Strange("padding")
    tracks: list[dict[bytes, bytes]] = []
    for kind, start, end in outer:
        if kind in (b"free", b"wide", b"ftyp") and end - start > 32 * (kind == b"ftyp"):
            raise Strange("padding")
        if kind == b"moov":
            _read_tables(source, start, end, tracks)
    samples = [part for track in tracks for part in _chunks(track)]
    _, start, end = outer[kinds.index(b"mdat")]
    if not samples:
        raise Strange("its tables")
    at = start
    for begun, size in sorted(samples):
        if begun != at:
            raise Strange("bytes that no frame has")
        at += size
    if at != end:
        raise Strange("bytes that no frame has")
    return _frames(tracks)


def _frames(tracks: list[dict[bytes, bytes]]) -> int:
    """Return how many frames the one track of pictures has, beside which there is one of sound at most."""
    heads = [b"vide" if b"vmhd" in track else b"soun" if b"smhd" in track else b"" for track in tracks]
    if sorted(heads) not in ([b"vide"], [b"soun", b"vide"]):
        raise Strange("its tracks")
    return int.from_bytes(tracks[heads.index(b"vide")][b"stsz"][8:12], "big")


def _read_tables(source: Source, start: int, end: int, tracks: list[dict[bytes, bytes]]) -> None:
    """Append the tables of each track; raises `Strange` for boxes that `join` does not write."""
    for kind, begun, ended in boxes(source, start, end, INSIDE, 1):
        size = ended - begun
        if kind == b"trak":
            tracks.append({})
        if kind in INSIDE:
            continue
        if kind in BOXES:
            if size > BOXES[kind] - 8:
                raise Strange(f"{size:,} bytes of {kind.decode()}")
            if kind in (b"vmhd", b"smhd"):
                tracks[-1][kind] = b""
            continue
        if (kind not in TABLES and kind != b"stsz") or not tracks or kind in tracks[-1]:
            raise Strange("a part of another kind")
        body = source.read(begun, size)
        width = TABLES.get(kind) or (0 if any(body[4:8]) else 4)
        fixed = 8 if kind in TABLES else 12
        if len(body) != size or size != fixed + width * int.from_bytes(body[fixed - 4 : fixed], "big"):
            raise Strange("a table that is longer than its entries")
        tracks[-1][kind] = body


def _chunks(track: dict[bytes, bytes]) -> list[tuple[int, int]]:
    """Return where each chunk of frames begins, and its bytes."""
    try:
        wide = b"co64" in track
        places = np.frombuffer(track[b"co64" if wide else b"stco"][8:], ">u8" if wide else ">u4")
        per = np.frombuffer(track[b"stsc"][8:], ">u4").reshape(-1, 3).astype(np.int64)
        size, count = (int.from_bytes(track[b"stsz"][at : at + 4], "big") for at in (4, 8))
    except (KeyError, ValueError) as error:
        raise Strange("its tables") from error
    ends = np.append(per[1:, 0] - 1, len(places))
    runs = np.diff(np.concatenate([[0], ends]))
    if not len(places) or not len(per) or per[0, 0] != 1 or (runs <= 0).any() or ends[-1] != len(places):
        raise Strange("its tables")
    counts = np.repeat(per[:, 1], runs)
    if (counts <= 0).any() or int(counts.astype(object).sum()) != count:
        raise Strange("its tables")
    if size:
        sizes = [size * int(held) for held in counts]
    else:
        lengths = np.frombuffer(track[b"stsz"][12:], ">u4").astype(np.int64)
        sizes = np.add.reduceat(lengths, np.cumsum(counts) - counts).tolist()
    return list(zip(places.tolist(), sizes, strict=True))


def _in_matroska(source: Source) -> int:
    """Return the number of coded frames in a Matroska file, which are those of its first track."""
    frames, top = 0, []
    for count, (name, start, end, depth) in enumerate(_elements(source, 0, source.size)):
        if count > MOST_ELEMENTS:
            raise Strange(f"more than {MOST_ELEMENTS:,} parts")
        if depth == 0:
            top.append(name)
        if name in MASTERS:
            continue
        if name in (ID_BLOCK, ID_GROUPED):
            head = source.read(start, 4)
            if len(head) < 4 or head[0] not in (0x81, 0x82) or head[3] & LACED:
                raise Strange("a block of another kind")
            frames += head[0] == 0x81
        elif name not in ELEMENTS:
            raise Strange("a part of another kind")
        elif end - start > ELEMENTS[name]:
            raise Strange(f"{end - start:,} bytes of element {name:X}")
        elif name == ID_VOID and any(source.read(start, end - start)):
            raise Strange("padding")
    if top != [0x1A45DFA3, ID_SEGMENT]:
        raise Strange("its parts")
    return frames


def _elements(source: Source, at: int, end: int, depth: int = 0) -> Iterator[tuple[int, int, int, int]]:
    """Yield the identifier, the offsets of the body, and the depth of each element, and of those within."""
    while at < end:
        head = source.read(at, 12)
        width = 9 - head[0].bit_length() if head else 9
        wide, size = number(head[width:])
        start = at + width + wide
        if width > 4 or not wide or size is None or start + size > end or depth > 6:
            raise Strange("a part that does not fit")
        name = int.from_bytes(head[:width], "big")
        yield name, start, start + size, depth
        if name in MASTERS:
            yield from _elements(source, start, start + size, depth + 1)
        at = start + size

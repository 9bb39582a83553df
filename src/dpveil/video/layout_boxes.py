"""Whether an MP4 or MOV file is laid out as `join` writes it (ISO 14496-12)."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.video.containers import boxes
from dpveil.video.source import Source
from dpveil.video.strange import Strange

Track = dict[bytes, bytes]
"""The bodies of the boxes of a track."""

CHILDREN: Final = {
    b"moov": (b"mvhd", b"trak", b"udta"),
    b"trak": (b"tkhd", b"edts", b"mdia"),
    b"edts": (b"elst",),
    b"mdia": (b"mdhd", b"hdlr", b"minf"),
    b"minf": (b"vmhd", b"smhd", b"hdlr", b"dinf", b"stbl"),
    b"dinf": (b"dref",),
    b"stbl": (b"stsd", b"stts", b"stss", b"stsc", b"stsz", b"stco", b"co64", b"sgpd", b"sbgp"),
    b"udta": (b"meta",),
}
"""What each box may hold, once each; but a track of pictures, and one of sound."""
MOST: Final = {
    **{b"mvhd": 112, b"tkhd": 96, b"mdhd": 36, b"hdlr": 37, b"vmhd": 12, b"smhd": 8, b"dref": 20},
    **{b"elst": 48, b"sbgp": 56, b"sgpd": 24, b"meta": 45, b"stsd": 392},
}
"""Most bytes of the bodies of boxes other than tables."""
HANDLERS: Final = (
    bytes(8) + b"vide" + bytes(12) + b"VideoHandler\0",
    bytes(8) + b"soun" + bytes(12) + b"SoundHandler\0",
    bytes(4) + b"mhlrvide" + bytes(12) + b"\x0cVideoHandler",
    bytes(4) + b"mhlrsoun" + bytes(12) + b"\x0cSoundHandler",
    bytes(4) + b"dhlrurl " + bytes(12) + b"\x0bDataHandler",
)
FIXED: Final = {
    b"hdlr": HANDLERS,
    b"vmhd": (b"\0\0\0\1" + bytes(8),),
    b"smhd": (bytes(8),),
    b"dref": (bytes(7) + b"\1\0\0\0\x0curl \0\0\0\1",),
    b"meta": (bytes(7) + b"!hdlr" + bytes(8) + b"mdirappl" + bytes(12) + b"\x08ilst",),
}
"""Bodies that are the same in every file."""
TABLES: Final = {b"stts": 8, b"stss": 4, b"stsc": 12, b"stsz": 4, b"stco": 4, b"co64": 8}
"""Bytes of an entry of each table."""
MOST_ENTRIES: Final = 8_000_000
"""Most entries of a table: 47 hours of sound."""
CODED: Final = frozenset(
    {
        *(b"avcC", b"vpcC", b"esds", b"colr", b"pasp", b"btrt"),
        *(b"wave", b"chan", b"dac3", b"dec3", b"dOps", b"dfLa", b"alac"),
    }
)
"""Boxes that tell how pictures or sound are coded."""
PICTURES, SOUNDS = 86, {b"\0\0": 36, b"\0\1": 52}
"""Bytes that describe pictures, and sound by the version of their description, before such boxes."""
TABLE: Final = "its tables"


def in_boxes(source: Source) -> int:
    """Return the number of coded frames in an MP4 or MOV file; raises as `layout.coded_frames`."""
    outer = list(boxes(source, 0, source.size, frozenset()))
    kinds = [kind for kind, *_ in outer]
    if [kind for kind in kinds if kind not in (b"free", b"wide")] != [b"ftyp", b"mdat", b"moov"]:
        raise Strange("its parts")
    if kinds.count(b"free") + kinds.count(b"wide") > 1 or outer[-1][2] != source.size:
        raise Strange("padding")
    tracks: list[Track] = [{}]
    for kind, start, end in outer:
        if kind in (b"free", b"wide", b"ftyp") and end - start > 32 * (kind == b"ftyp"):
            raise Strange("padding")
        if kind == b"moov":
            _read(source, kind, start, end, tracks)
    head, *tracks = tracks
    frames = _frames(head, tracks)
    _, start, end = outer[kinds.index(b"mdat")]
    _check_full(start, end, [_chunks(track, source.size) for track in tracks])
    return frames


def _read(source: Source, parent: bytes, start: int, end: int, tracks: list[Track]) -> None:
    """Add what is within a box to the last of `tracks`; raises `Strange` for what `join` does not write."""
    seen, at = set(), start
    for kind, begun, ended in boxes(source, start, end, frozenset(), 1):
        if kind == b"trak" and parent == b"moov" and len(tracks) <= 2:
            tracks.append({})
        elif kind not in CHILDREN[parent] or kind in seen:
            raise Strange("a part of another kind")
        seen.add(kind)
        if kind in CHILDREN:
            _read(source, kind, begun, ended, tracks)
        else:
            tracks[-1][kind] = _body(source, kind, begun, ended - begun)
        at = ended
    if at != end:
        raise Strange("bytes behind its parts")


def _body(source: Source, kind: bytes, start: int, size: int) -> bytes:
    if kind in MOST:
        body = source.read(start, min(size, MOST[kind] + 1))
        if size > MOST[kind] or body not in FIXED.get(kind, (body,)):
            raise Strange(f"{size:,} bytes of {kind.decode()}")
        return body
    fixed = 12 if kind == b"stsz" else 8
    head = source.read(start, fixed)
    count = int.from_bytes(head[-4:], "big")
    width = 0 if kind == b"stsz" and any(head[4:8]) else TABLES[kind]
    if head[:4] != bytes(4) or size != fixed + width * count or width * count > width * MOST_ENTRIES:
        raise Strange("a table that is longer than its entries, or than any")
    return source.read(start, size)


def _frames(head: Track, tracks: list[Track]) -> int:
    """Return how many frames the one track of pictures has, beside which there is one of sound at most."""
    heads = [b"vide" if b"vmhd" in track else b"soun" if b"smhd" in track else b"" for track in tracks]
    if sorted(heads) not in ([b"vide"], [b"soun", b"vide"]):
        raise Strange("its tracks")
    try:
        counts = [_check_track(head, track) for track in tracks]
    except (KeyError, IndexError, ValueError) as error:
        raise Strange(TABLE) from error
    return counts[heads.index(b"vide")]


def _check_track(head: Track, track: Track) -> int:
    """Return the number of a track's frames; raises `Strange` unless each is shown, at its own time."""
    pictures = b"vmhd" in track
    _check_coded(track[b"stsd"], pictures)
    count = int.from_bytes(track[b"stsz"][8:12], "big")
    runs, lengths = np.frombuffer(track[b"stts"][8:], ">u4").astype(np.int64).reshape(-1, 2).T
    if (runs <= 0).any() or runs.sum() != count or (lengths[1:] == lengths[:-1]).any():
        raise Strange(TABLE)
    keys = np.frombuffer(track.get(b"stss", b"")[8:], ">u4").astype(np.int64)
    if (np.diff(keys, prepend=0) <= 0).any() or (keys > count).any() or (b"stss" in track and not pictures):
        raise Strange(TABLE)
    if pictures:
        ticks, unit = int((runs * lengths).sum()), _unit(track[b"mdhd"])
        if (lengths <= 0).any() or abs(_shown(track[b"elst"]) * unit - ticks * _unit(head[b"mvhd"])) > unit:
            raise Strange("frames that are not shown")
    return count


def _unit(head: bytes) -> int:
    """Return how many units a second has, of times that `mvhd` or `mdhd` states."""
    at = 20 if head[0] else 12
    return int.from_bytes(head[at : at + 4], "big")


def _shown(edits: bytes) -> int:
    """Return for how long the one edit of a track shows it, from its beginning on."""
    width = 8 if edits[0] else 4
    length, rest = edits[8 : 8 + width], edits[8 + width :]
    if edits[1:8] != bytes(6) + b"\1" or rest != bytes(width) + b"\0\1\0\0":
        raise Strange("an edit that hides frames")
    return int.from_bytes(length, "big")


def _check_coded(body: bytes, pictures: bool) -> None:
    """Raise `Strange` unless there is one description, which has parts of known kinds, each once."""
    at = 8 + (PICTURES if pictures else SOUNDS[body[24:26]])
    seen = set()
    if body[:8] != bytes(7) + b"\1" or int.from_bytes(body[8:12], "big") != len(body) - 8 or at > len(body):
        raise Strange("several descriptions of a track")
    while at < len(body):
        size, kind = int.from_bytes(body[at : at + 4], "big"), body[at + 4 : at + 8]
        if size < 8 or size > len(body) - at or kind not in CODED or kind in seen:
            raise Strange("a description of another kind")
        seen.add(kind)
        at += size


def _chunks(track: Track, most: int) -> tuple[Int64[np.ndarray, " chunks"], Int64[np.ndarray, " chunks"]]:
    """Return where each chunk of frames begins in a file of `most` bytes, and its bytes."""
    try:
        (places,) = (np.frombuffer(track[kind][8:], f">u{TABLES[kind]}") for kind in _places(track))
        per = np.frombuffer(track[b"stsc"][8:], ">u4").reshape(-1, 3).astype(np.int64)
        size, count = (int.from_bytes(track[b"stsz"][at : at + 4], "big") for at in (4, 8))
    except (KeyError, ValueError) as error:
        raise Strange(TABLE) from error
    if not len(places) or not len(per) or (places > most).any() or per[0, 0] != 1 or (per[:, 2] != 1).any():
        raise Strange(TABLE)
    ends = np.append(per[1:, 0] - 1, len(places))
    runs = np.diff(ends, prepend=0)
    if (runs <= 0).any() or ends[-1] != len(places) or (per[1:, 1] == per[:-1, 1]).any():
        raise Strange(TABLE)
    counts = np.repeat(per[:, 1], runs)
    if (counts <= 0).any() or int(counts.sum()) != count or size * count > most:
        raise Strange(TABLE)
    if size:
        return places.astype(np.int64), size * counts
    lengths = np.frombuffer(track[b"stsz"][12:], ">u4").astype(np.int64)
    if (lengths <= 0).any():
        raise Strange("frames without bytes")
    return places.astype(np.int64), np.add.reduceat(lengths, np.cumsum(counts) - counts)


def _places(track: Track) -> list[bytes]:
    """Return the kinds of the tables of places that a track has, of which one is right."""
    return [kind for kind in (b"stco", b"co64") if kind in track]


def _check_full(
    start: int,
    end: int,
    chunks: list[tuple[Int64[np.ndarray, " chunks"], Int64[np.ndarray, " chunks"]]],
) -> None:
    """Raise `Strange` unless `chunks` fill the bytes from `start` to `end`, each of them once."""
    places = np.concatenate([begun for begun, _ in chunks])
    order = np.argsort(places, kind="stable")
    ends = (places + np.concatenate([size for _, size in chunks]))[order]
    if (places[order] != np.concatenate([[start], ends[:-1]])).any() or ends[-1] != end:
        raise Strange("bytes that no frame has")

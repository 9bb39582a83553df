"""Whether the compressed pixels of a JPEG or WebP end where their last byte does."""

from __future__ import annotations

from io import BytesIO
from typing import Final

import numpy as np

from dpveil.io import jpeg_bits
from dpveil.io.decoders import opener
from dpveil.io.jumbf import split
from dpveil.io.quiet import quiet_pillow
from dpveil.noise import backend

SEGMENTS_AT: Final = 20
"""Where the segments of a JPEG begin, after that of JFIF."""
FRAME, TABLES, SCAN = 0xC0, 0xC4, 0xDA
"""Markers of the frame header, of Huffman tables and of the scan header."""
WHOLE_SCAN: Final = b"\x00\x3f\x00"
"""How the scan header of a baseline JPEG ends."""
LOOK_UPS: Final = 50
"""Look-ups of plain code that take as long as the interpreter takes for a byte of a scan."""


def jpeg_ends(data: bytes) -> bool:
    """Return whether the scan of a baseline JPEG whose layout `bare` knows is its blocks and no more.

    Its components are not subsampled, and have as many blocks. What is left of the last byte is ones. Raises
    `IndexError` or `ValueError` for malformed segments.
    """
    frame, tables, at = b"", dict[int, np.ndarray](), SEGMENTS_AT
    while data[at + 1] != SCAN:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == FRAME:
            frame = data[at + 4 : end]
        if data[at + 1] == TABLES:
            tables |= _tables(data[at + 4 : end])
        at = end
    start = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    header = data[at + 4 : start]
    count = header[0]
    sampled = all(both == 0x11 for both in frame[7::3])
    if not sampled or frame[5] != count or frame[6::3] != header[1:-3:2] or header[-3:] != WHOLE_SCAN:
        return False
    chosen = [place for both in header[2:-3:2] for place in (both >> 4, 16 + (both & 15))]
    if len(chosen) != 2 * count or len(frame) != 6 + 3 * count or not {*chosen} <= tables.keys():
        return False
    height, width = int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big")
    return _fills(data[start:-2], [tables[place] for place in chosen], -(-width // 8) * -(-height // 8))


def _tables(segment: bytes) -> dict[int, np.ndarray]:
    """Return the Huffman tables in a segment, as `jpeg_bits` takes them, by class and number.

    Raises `ValueError` for those that are none. Source: ITU-T T.81 §B.2.4.2, §C.2.
    """
    found, at = dict[int, np.ndarray](), 0
    while at < len(segment):
        counts = segment[at + 1 : at + 17]
        symbols = segment[at + 17 : at + 17 + sum(counts)]
        lengths = [length for length, count in enumerate(counts, 1) for _ in range(count)]
        spans = [1 << 16 - length for length in lengths]
        if len(symbols) != len(lengths) or sum(spans) > 1 << 16:
            raise ValueError("no Huffman table")
        entries = np.array([256 * length for length in lengths], np.uint16) + np.frombuffer(symbols, np.uint8)
        found[segment[at]] = np.zeros(1 << 16, np.uint16)
        found[segment[at]][: sum(spans)] = np.repeat(entries, spans)
        at += 17 + len(symbols)
    return found


def _fills(scan: bytes, tables: list[np.ndarray], blocks: int) -> bool:
    """Whether a scan is as long as so many blocks of each component are, up to ones in its last byte."""
    plain = np.frombuffer(scan.replace(b"\xff\0", b"\xff") + bytes(jpeg_bits.BEYOND), np.uint8)
    size = 8 * (len(plain) - jpeg_bits.BEYOND)
    components = len(tables) // 2
    loops = backend.loops((jpeg_bits,), LOOK_UPS * len(plain))
    bits = int(loops.bits_of(plain, np.stack(tables), components, components * blocks))
    ones = (1 << size - bits) - 1 if 0 <= size - bits < 8 else 0
    return bits > 0 and size - bits < 8 and int(plain[size // 8 - 1]) & ones == ones


def webp_ends(data: bytes) -> bool:
    """Return whether a lossless WebP, of which `bare` knows the layout, ends with its pixels, save one byte.

    It is decoded without its last byte, which has to fail. Chunks have an even number of bytes, and libwebp
    reads that of an odd one to its end: so of an even one, two bytes are left out.
    """
    picture, _ = split(data, "webp")
    length = int.from_bytes(picture[16:20], "little")
    length -= 1 if length % 2 else 2
    chunk = b"VP8L" + length.to_bytes(4, "little") + picture[20 : 20 + length]
    cut = b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk
    try:
        with quiet_pillow(), opener("WEBP")(BytesIO(cut)) as image:
            image.load()
    except MemoryError:
        return False
    except Exception:  # noqa: BLE001  a parser given hostile bytes may raise anything
        return True
    return False

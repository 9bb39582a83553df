"""What the bytes of a file show before decoding: format, size, animation, blocks and truncation."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dpveil.core.photo import Grid
from dpveil.io.heif import brand_name
from dpveil.io.refused import damaged, overloaded

MAGIC: Final[tuple[tuple[bytes, bytes, str], ...]] = (
    (b"\xff\xd8\xff", b"", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", b"", "PNG"),
    (b"RIFF", b"WEBP", "WEBP"),
    (b"II*\0", b"", "TIFF"),
    (b"MM\0*", b"", "TIFF"),
    (b"II+\0", b"", "TIFF"),
    (b"MM\0+", b"", "TIFF"),
    (b"BM", b"", "BMP"),
    (b"GIF87a", b"", "GIF"),
    (b"GIF89a", b"", "GIF"),
)
"""The first bytes, bytes 8 to 12 where they matter, and the format; HEIC, AVIF and Netpbm are read too."""

CLIP: Final = "a video, or a picture in a video's container"
PDF: Final = "a PDF"
JXL: Final = "a JPEG XL file"
FOREIGN: Final[tuple[tuple[int, bytes, str], ...]] = (
    (4, b"ftyp", CLIP),
    (0, b"%PDF", PDF),
    (0, b"8BPS", "a Photoshop file"),
    (0, b"<svg", "an SVG drawing"),
    (0, b"<?xml", "an XML file"),
    (0, b"\x00\x00\x01\x00", "an icon"),
    (0, b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 file"),
    (0, b"\xff\x0a", JXL),
    (0, b"\x00\x00\x00\x0cJXL ", JXL),
    (0, b"P", "a PAM or floating-point Netpbm file"),
)
"""Offset, bytes there, and kind of the files that are recognised and not read."""
NETPBM: Final = b"123456"
"""The second byte of the Netpbm formats that are read: PBM, PGM and PPM."""
OTHER_NETPBM: Final = b"7Ff"
"""The second byte of the others: PAM and PFM."""


def format_name(head: bytes) -> str | None:
    """Return the format of a file with these first bytes, or None if it is not one that is read."""
    for start, inner, name in MAGIC:
        if head.startswith(start) and head[8 : 8 + len(inner)] == inner:
            return name
    return "Netpbm" if _netpbm(head, NETPBM) else brand_name(head)


def _netpbm(head: bytes, kinds: bytes) -> bool:
    return head[:1] == b"P" and head[1:2] in [bytes([kind]) for kind in kinds] and head[2:3].isspace()


def foreign_name(head: bytes) -> str | None:
    """Return the kind of a file that is not read, such as "a PDF", or None if it is not recognised."""
    for offset, mark, name in FOREIGN:
        if head[offset:].startswith(mark):
            if mark == b"P" and not _netpbm(head, OTHER_NETPBM):
                continue
            return name
    return None


def jpeg_grid(components: list[tuple[int, int, int, int]]) -> Grid:
    """Return the MCU grid of a JPEG from its frame header.

    Each component is (identifier, horizontal and vertical sampling factor, quantisation table). A single
    component is never interleaved, so its blocks are 8 × 8 whatever its factors (ITU-T T.81 §A.2.2). The
    grid's margin of one pixel is the reach of chroma upsampling across a block's edge (docs: limits).
    """
    if len(components) == 1:
        return Grid(8, 8)
    return Grid(8 * max(c[1] for c in components), 8 * max(c[2] for c in components))


WEBP_GRID: Final = Grid(16, 16, margin=8, codec="WebP")
"""Macroblocks of lossy WebP; loop filter and chroma reach 8 pixels beyond them, prediction has no limit."""


@dataclass(frozen=True)
class WebP:
    """What the chunks of a WebP file state: canvas size in pixels, whether it is lossy, number of frames.

    `frames` is 0 for a still picture.
    """

    width: int
    height: int
    lossy: bool
    frames: int


MOST_CHUNKS: Final = {"PNG": 300_000, "WebP": 1_000}
"""Most chunks of a file: PNG encoders write chunks of 8 kB or more, and a still WebP has a handful."""


def webp_header(data: bytes) -> WebP:
    """Return what the RIFF chunks of a WebP file state; raises `Refused` if malformed or truncated."""
    if len(data) < 12 or 8 + int.from_bytes(data[4:8], "little") > len(data):
        raise damaged("WebP")
    size: tuple[int, int] | None = None
    names = set()
    frames = 0
    for count, (name, start, length) in enumerate(_riff_chunks(data)):
        frames += name == b"ANMF"
        if count - frames > MOST_CHUNKS["WebP"]:
            raise overloaded(f"more than {MOST_CHUNKS['WebP']:,} chunks")
        names.add(name)
        size = size or _webp_size(name, data[start : start + min(length, 16)])
    if size is None:
        raise damaged("WebP")
    return WebP(*size, lossy=b"VP8 " in names, frames=max(frames, b"ANIM" in names))


def _riff_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    at = 12
    end = 8 + int.from_bytes(data[4:8], "little")
    while at + 8 <= end:
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], at + 8, length
        at += 8 + length + length % 2


def _webp_size(name: bytes, body: bytes) -> tuple[int, int] | None:
    if name == b"VP8X" and len(body) >= 10:
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if name == b"VP8 " and len(body) >= 10 and body[3:6] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", body[6:10])
        return width & 0x3FFF, height & 0x3FFF
    if name == b"VP8L" and len(body) >= 5 and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


TEXTS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt"})
"""PNG's text chunks."""
TURNING: Final = (b"XML:com.adobe.xmp\0", b"Raw profile type exif\0")
"""Keywords of the only text chunks that are kept: they may hold the orientation."""


@dataclass(frozen=True)
class Png:
    """A PNG: the names of its chunks, whether it is complete up to IEND, the bytes to decode, and the number
    of an animation's frames.
    """

    names: frozenset[bytes]
    whole: bool
    data: bytes
    frames: int


def png_header(data: bytes) -> Png:
    """Return what the chunks of a PNG state, and the file without text chunks, which Pillow would unpack.

    Raises `Refused` for more chunks than any encoder writes (`MOST_CHUNKS`).
    """
    names: set[bytes] = set()
    seen: set[bytes] = set()
    kept: list[bytes] = []
    at = start = 8
    frames = 0
    for _ in range(MOST_CHUNKS["PNG"]):
        if at + 12 > len(data) or b"IEND" in names:
            break
        name, head = data[at + 4 : at + 8], data[at + 8 : at + 40]
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        names.add(name)
        frames += name == b"fcTL"
        if name in TEXTS:
            word = next((word for word in TURNING if head.startswith(word)), b"")
            if not word or word in seen:
                kept.append(data[start:at])
                start = end
            seen.add(word)
        at = end
    else:
        raise overloaded(f"more than {MOST_CHUNKS['PNG']:,} chunks")
    lean = b"".join([data[:8], *kept, data[start:]]) if kept else data
    return Png(frozenset(names), b"IEND" in names and at <= len(data), lean, frames)

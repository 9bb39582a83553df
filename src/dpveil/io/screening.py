"""What a file says of itself before it is decoded: its format, its size, and what decoders would not tell."""

from __future__ import annotations

import re
import struct
from typing import Final

from dpveil.core.photo import BlockGrid
from dpveil.io.unreadable import COPY_AGAIN, LIMIT, SAVE_ANEW, Refused, damage_refusal, overload_refusal

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
BRANDS: Final = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys(
    (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "HEIC"
)
"""The format of each brand in the file type box of HEIF (ISO 23008-12)."""
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
    (0, b"P7", "a PAM file"),
)
"""Offset, bytes there, and kind of the files that are recognised and not read."""
CLIP_HEADS: Final = ((0, b"\x1aE\xdf\xa3"), (8, b"AVI "), (0, b"\x00\x00\x01\xba"))
"""Offset and bytes at the start of Matroska, AVI and MPEG files; those of MP4 are told from pictures."""
CLIP_BRANDS: Final = (*b"isom iso2 iso4 iso5 iso6 mp41 mp42 avc1".split(), b"M4V ", b"qt  ")
"""Brands of MP4 and MOV files that are clips, where those of HEIC and AVIF are pictures."""
NETPBM: Final = re.compile(rb"P[1-6]\s")  # how PBM, PGM and PPM begin


def format_name(head: bytes) -> str | None:
    """Return the format of a file with these first bytes, or None if it is not one that is read."""
    for start, inner, name in MAGIC:
        if head.startswith(start) and head[8 : 8 + len(inner)] == inner:
            return name
    if NETPBM.match(head):
        return "Netpbm"
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))]
    return next((BRANDS[brand] for brand in brands if brand in BRANDS), None)


def is_clip_head(head: bytes) -> bool:
    """Whether a file that begins so is a clip."""
    if head[4:8] == b"ftyp":
        return head[8:12] in CLIP_BRANDS
    return any(head[start : start + len(text)] == text for start, text in CLIP_HEADS)


def foreign_name(head: bytes) -> str | None:
    """Return the kind of a file that is not read, such as "a PDF", or None if it is not recognised."""
    return next((name for offset, mark, name in FOREIGN if head[offset:].startswith(mark)), None)


def check_pixels(width: int, height: int, max_pixels: int) -> None:
    """Raise `Refused` for a size in pixels that is empty or beyond the limit."""
    if width < 1 or height < 1:
        raise Refused("has no pixels", COPY_AGAIN)
    if width * height > max_pixels:
        raise Refused(
            f"has {width:,} × {height:,} pixels, more than the limit of {max_pixels:,}",
            "make it smaller, or raise {max_pixels}",
            LIMIT,
        )


WEBP_GRID: Final = BlockGrid(16, 16, margin=8, codec="WebP")
"""Macroblocks of lossy WebP; loop filter and chroma reach 8 pixels beyond them, prediction has no limit."""
HEIF_GRIDS: Final = {
    name: BlockGrid(1, 1, margin=side + 16, codec=name) for name, side in (("HEIC", 32), ("AVIF", 64))
}
"""How far a pixel reaches at most in one step: across the largest transform of H.265 or AV1, anywhere,
and by 16 pixels of in-loop filters and chroma. Prediction, which goes on from there, has no limit."""
BRIGHT: Final = re.compile(rb"colrnclx..\0[\x10\x12]", re.DOTALL)
"""A colour box with a transfer function of high dynamic range: PQ or HLG (ITU-T H.273)."""


def screen(name: str, data: bytes, max_pixels: int) -> BlockGrid | None:
    """Return the grid of lossy blocks, except of a JPEG; raises `Refused` for what may not be decoded."""
    if name == "JPEG":
        _check_jpeg(data)
    if name == "WEBP":  # libwebp takes memory for the whole canvas as soon as a file is opened
        check_pixels(*_webp_size(data), max_pixels)
        return WEBP_GRID if b"VP8 " in data else None  # lossless files are in VP8L chunks alone
    if name not in HEIF_GRIDS:
        return None
    at, header = 0, b""
    while at < len(data):  # libheif makes a picture of what is left of a truncated file, too
        size = int.from_bytes(data[at : at + 4], "big")
        size = int.from_bytes(data[at + 8 : at + 16], "big") if size == 1 else size
        end = at + max(size, 8) if size else len(data)
        header += b"" if data[at + 4 : at + 8] == b"mdat" else data[at:end]
        at = end
    if at != len(data):
        raise damage_refusal(name)
    if BRIGHT.search(header):
        raise Refused("is of high dynamic range", "save it with standard range, or as an 8-bit PNG")
    if name == "AVIF" and b"clap" in header:  # which Pillow would not crop
        raise Refused("is cropped by its container", SAVE_ANEW)
    return HEIF_GRIDS[name]


def _webp_size(data: bytes) -> tuple[int, int]:
    """Return the width and height that the first chunk of a WebP states (RFC 9649 §2)."""
    name, body = data[12:16], data[20:30]
    if len(body) < 10:
        raise damage_refusal("WebP")
    if name == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if name == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", body[6:10])
    return width & 0x3FFF, height & 0x3FFF


MARKER: Final = re.compile(rb"\xff+([^\x00\xff\x01\xd0-\xd8])")
"""A JPEG's markers but those without a segment; 0xff00 is a stuffed byte of entropy-coded data."""
EOI, SOS = 0xD9, 0xDA
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of frame headers
PROGRESSIVE: Final = frozenset({0xC2, 0xC6})
ARITHMETIC: Final = 0xC9  # the first marker of a frame with arithmetic coding
UNSENT: Final = 16
"""Missing low bits of a coefficient before its first scan: more than any scan can leave out."""
MOST_SCANS: Final = 100
"""Most scans: progressive encoders write about ten; 100 scans of 100 megapixels take some seconds."""


def _check_jpeg(data: bytes) -> None:
    """Raise `Refused` for arithmetic coding, and for a progressive picture that is not complete.

    libjpeg estimates coefficients that were not transmitted from neighbouring blocks ("block smoothing"),
    which would spread a region's contents more than 16 pixels beyond its grid (docs: limits).
    """
    at, scans = 2, 0
    low: dict[int, list[int]] = {}  # by component: the low bits of each coefficient that are missing
    while (mark := MARKER.search(data, at)) is not None and mark[1][0] != EOI:
        code, start = mark[1][0], mark.end()
        at = start + max(2, int.from_bytes(data[start : start + 2], "big"))
        body = data[start + 2 : at]
        if code in FRAMES and code >= ARITHMETIC:
            raise Refused("is a JPEG with arithmetic coding, which few programs read", SAVE_ANEW)
        if code in FRAMES and code not in PROGRESSIVE:
            return
        if code in FRAMES:
            ids = body[6::3]
            low = {each: [UNSENT] * 64 for each in ids}
            if len(low) < len(ids):
                raise damage_refusal("JPEG")
        if code == SOS and len(body) >= 4:
            first, last, bits = body[-3:]
            for each in body[1:-3:2]:
                if each in low:
                    low[each][first : last + 1] = [bits % 16] * len(low[each][first : last + 1])
            scans += 1
            if scans > MOST_SCANS:
                raise overload_refusal(f"more than {MOST_SCANS} scans")
    if any(map(any, low.values())):
        raise damage_refusal("JPEG")


def jpeg_grid(components: list[tuple[int, int, int, int]]) -> BlockGrid:
    """Return the MCU grid of a JPEG from its frame header.

    Each component is (identifier, horizontal and vertical sampling factor, quantisation table). A single
    component is never interleaved, so its blocks are 8 × 8 whatever its factors (ITU-T T.81 §A.2.2). Where
    chroma is subsampled, the grid's margin of one pixel is the reach of its upsampling across a block's edge
    (docs: limits).
    """
    if len(components) == 1 or len({c[1:3] for c in components}) == 1:
        return BlockGrid(8, 8, margin=0)
    return BlockGrid(8 * max(c[1] for c in components), 8 * max(c[2] for c in components))

"""Screening: checks of a file's bytes before a decoder sees them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from dpveil.core.jpeg_blocks import Turn
from dpveil.core.photo import Grid
from dpveil.io.heif import brand_name, read_heif
from dpveil.io.unreadable import (
    COPY_AGAIN,
    LIMIT,
    SAVE_ANEW,
    Refused,
    animation,
    damage_refusal,
    overload_refusal,
)

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
    component is never interleaved, so its blocks are 8 × 8 whatever its factors (ITU-T T.81 §A.2.2). Where
    chroma is subsampled, the grid's margin of one pixel is the reach of its upsampling across a block's edge
    (docs: limits).
    """
    if len(components) == 1 or len({c[1:3] for c in components}) == 1:
        return Grid(8, 8, margin=0)
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
        raise damage_refusal("WebP")
    size: tuple[int, int] | None = None
    names = set()
    frames = 0
    for count, (name, start, length) in enumerate(_riff_chunks(data)):
        frames += name == b"ANMF"
        if count - frames > MOST_CHUNKS["WebP"]:
            raise overload_refusal(f"more than {MOST_CHUNKS['WebP']:,} chunks")
        names.add(name)
        size = size or _webp_size(name, data[start : start + min(length, 16)])
    if size is None:
        raise damage_refusal("WebP")
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
        raise overload_refusal(f"more than {MOST_CHUNKS['PNG']:,} chunks")
    lean = b"".join([data[:8], *kept, data[start:]]) if kept else data
    return Png(frozenset(names), b"IEND" in names and at <= len(data), lean, frames)


MARKER: Final = re.compile(rb"\xff+([^\x00\xff])")
AMID_DATA: Final = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
"""Markers that end entropy-coded data: not 0xff00, which is a stuffed byte, and not restart markers."""

TEM, SOI, EOI, SOS = 0x01, 0xD8, 0xD9, 0xDA
ALONE: Final = frozenset({TEM, *range(0xD0, 0xD8)})
"""Markers without a segment: TEM and the restart markers."""
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of frame headers."""
PROGRESSIVE: Final = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
"""Markers of progressive frame headers."""
ARITHMETIC: Final = 0xC9
"""The first marker of a frame with arithmetic coding."""
DROPPED: Final = frozenset({0xE1, *range(0xE3, 0xEE), 0xEF, *range(0xF0, 0xFF)})
"""Segments that are removed: EXIF and XMP (read here), makers' and Photoshop's segments, and comments."""

MOST_SEGMENTS: Final = 20_000
"""Most segments before the first scan, and most markers after it."""
MOST_PROFILE_SEGMENTS: Final = 255
"""Most segments of an ICC profile, which counts them in one byte; further ones are removed."""
LONGEST_SCAN_HEADER: Final = 12
"""Bytes of a scan header: the number of components, two bytes for each of up to four, and three more."""

UNSENT: Final = 16
"""Missing low bits of a coefficient before its first scan: more than any scan can leave out."""

MOST_SCANS: Final = 100
"""Most scans: progressive encoders write about ten; 100 scans of 100 megapixels take some seconds."""

EXIF: Final = b"Exif\0\0"
XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
PROFILE: Final = b"ICC_PROFILE\0"


@dataclass
class Jpeg:
    """The bytes to decode, and the contents of the first EXIF and XMP segments."""

    data: bytes = b""
    exif: bytes = b""
    xmp: bytes = b""


def lean_jpeg(data: bytes) -> Jpeg:
    """Return the file up to the end of its first picture, without segments that decoding does not need.

    Raises `Refused` if segments are malformed, there is not exactly one frame header, a progressive picture
    is incomplete, or there are more scans or segments than any camera writes.
    """
    found, kept, frames, profiles, at = Jpeg(), [data[:2]], 0, 0, 2
    missing = MissingBits(())
    for _ in range(MOST_SEGMENTS):
        mark = MARKER.search(data, at)
        if mark is None or mark[1][0] in (SOI, EOI):
            raise damage_refusal("JPEG")
        code, start = mark[1][0], mark.end()
        if code == SOS:
            break
        if code in ALONE:
            at = start
            continue
        at = start + int.from_bytes(data[start : start + 2], "big")
        body = data[start + 2 : at]
        if at < start + 2 or at > len(data):
            raise damage_refusal("JPEG")
        if code in FRAMES:
            frames += 1
            _check_frame(code, body)
            missing = MissingBits(body[6::3] if code in PROGRESSIVE else ())
        profiles += body.startswith(PROFILE)
        _note_words(code, body, found)
        if code not in DROPPED and (profiles <= MOST_PROFILE_SEGMENTS or not body.startswith(PROFILE)):
            kept += [b"\xff", mark[1], data[start:at]]
    else:
        raise overload_refusal(f"more than {MOST_SEGMENTS:,} segments")
    if frames != 1:
        raise damage_refusal("JPEG")
    found.data = b"".join([*kept, data[start - 2 : _end(data, start - 2, missing)]])
    return found


def _check_frame(code: int, body: bytes) -> None:
    """Raise `Refused` if a frame header is malformed or of arithmetic coding, or a factor is not 1 to 4."""
    if code >= ARITHMETIC:
        raise Refused("is a JPEG with arithmetic coding, which few programs read", SAVE_ANEW)
    if len(body) < 9 or len(body) != 6 + 3 * body[5]:
        raise damage_refusal("JPEG")
    if any(not 1 <= factor <= 4 for both in body[7::3] for factor in divmod(both, 16)):
        raise damage_refusal("JPEG")


def _note_words(code: int, body: bytes, found: Jpeg) -> None:
    if code == 0xE1 and body.startswith(EXIF) and not found.exif:
        found.exif = body
    elif code == 0xE1 and body.startswith(XMP) and not found.xmp:
        found.xmp = body[len(XMP) :]


class MissingBits:
    """The coefficient bits of a progressive picture that its scans have not transmitted yet.

    libjpeg estimates missing coefficients from neighbouring blocks ("block smoothing"), which would spread a
    region's contents more than 16 pixels beyond its grid: incomplete pictures are refused (docs: limits).
    Raises `Refused` for components that share an identifier.
    """

    def __init__(self, components: Iterable[int]) -> None:
        ids = tuple(components)
        if len(set(ids)) < len(ids):
            raise damage_refusal("JPEG")
        self._low = {each: [UNSENT] * 64 for each in ids}

    def note(self, header: bytes) -> None:
        """Note a scan; `header` starts at its number of components. Raises `Refused` if it is truncated."""
        end = 1 + 2 * int.from_bytes(header[:1])
        ids, band = header[1:end:2], header[end : end + 3]
        if len(band) < 3:
            raise damage_refusal("JPEG")
        first, last, bits = band
        for low in (self._low[each] for each in ids if each in self._low):
            low[first : last + 1] = [bits % 16] * len(low[first : last + 1])

    def check(self) -> None:
        """Raise `Refused` if a coefficient, or some of its low bits, were never transmitted."""
        if any(map(any, self._low.values())):
            raise damage_refusal("JPEG")


def _end(data: bytes, at: int, missing: MissingBits) -> int:
    """Return the offset at which the picture ends whose first scan is at `at`; the rest is not decoded."""
    scans = 0
    for _ in range(MOST_SEGMENTS):
        mark = AMID_DATA.search(data, at)
        if mark is None or mark[1][0] == EOI:
            missing.check()
            return len(data) if mark is None else mark.end()
        code, start = mark[1][0], mark.end()
        if code == SOS:
            missing.note(data[start + 2 : start + 2 + LONGEST_SCAN_HEADER])
            scans += 1
        if scans > MOST_SCANS:
            raise overload_refusal(f"more than {MOST_SCANS} scans")
        alone = code in ALONE or code == SOI
        at = start if alone else start + max(2, int.from_bytes(data[start : start + 2], "big"))
    raise overload_refusal(f"more than {MOST_SEGMENTS:,} segments")


@dataclass(frozen=True)
class Screened:
    """The bytes to decode, and what was learnt from the rest of the file.

    `grid` is that of its lossy blocks. `words` are EXIF and XMP if they were removed. `turn`, and the `size`
    in pixels after cropping at the right and the bottom, are set if the container states them.
    """

    data: bytes
    grid: Grid | None = None
    words: tuple[bytes, bytes] | None = None
    turn: Turn | None = None
    size: tuple[int, int] | None = None


def screen(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    """Return what a decoder may see of a file of format `name`; appends to `notes`; raises `Refused`."""
    return CHECKS[name](data, max_pixels, notes)


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


def _png(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    header = png_header(data)
    if {b"fdAT", b"fcTL"} & header.names:
        raise animation(header.frames)
    if not header.whole and b"IHDR" in header.names and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        check_pixels(width, height, max_pixels)
    if not header.whole:
        raise damage_refusal("PNG")
    return Screened(header.data)


def _webp(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    header = webp_header(data)
    check_pixels(header.width, header.height, max_pixels)
    if header.frames:
        raise animation(header.frames)
    return Screened(data, WEBP_GRID if header.lossy else None)


def _jpeg(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    lean = lean_jpeg(data)
    return Screened(lean.data, words=(lean.exif, lean.xmp))


def _accept_unchecked(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(data)


def _heif(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    found = read_heif(data, name)
    check_pixels(*found.size, max_pixels)
    if found.depth > 8:
        notes.append(f"{found.depth}-bit colour was rounded to 8 bits")
    return Screened(data, found.grid, turn=found.turn, size=found.size)


CHECKS: Final[dict[str, Callable[[bytes, int, list[str]], Screened]]] = {
    "PNG": _png,
    "WEBP": _webp,
    "JPEG": _jpeg,
    "TIFF": _accept_unchecked,
    "BMP": _accept_unchecked,
    "GIF": _accept_unchecked,
    "Netpbm": _accept_unchecked,
    "HEIC": partial(_heif, "HEIC"),
    "AVIF": partial(_heif, "AVIF"),
}

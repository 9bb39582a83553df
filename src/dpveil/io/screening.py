"""Screening: checks of a file's bytes before a decoder sees them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dpveil.core.photo import Grid
from dpveil.io.containers import WEBP_GRID, png_header, webp_header
from dpveil.io.heif import stated
from dpveil.io.orientation import Turn
from dpveil.io.refused import COPY_AGAIN, LIMIT, Refused, animation, damaged, overloaded

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
            raise damaged("JPEG")
        code, start = mark[1][0], mark.end()
        if code == SOS:
            break
        if code in ALONE:
            at = start
            continue
        at = start + int.from_bytes(data[start : start + 2], "big")
        body = data[start + 2 : at]
        if at < start + 2 or at > len(data):
            raise damaged("JPEG")
        if code in FRAMES:
            frames += 1
            _check_frame(body)
            missing = MissingBits(body[6::3] if code in PROGRESSIVE else ())
        profiles += body.startswith(PROFILE)
        _note_words(code, body, found)
        if code not in DROPPED and (profiles <= MOST_PROFILE_SEGMENTS or not body.startswith(PROFILE)):
            kept += [b"\xff", mark[1], data[start:at]]
    else:
        raise overloaded(f"more than {MOST_SEGMENTS:,} segments")
    if frames != 1:
        raise damaged("JPEG")
    found.data = b"".join([*kept, data[start - 2 : _end(data, start - 2, missing)]])
    return found


def _check_frame(body: bytes) -> None:
    """Raise `Refused` if a frame header is malformed or a sampling factor is not 1 to 4."""
    if len(body) < 9 or len(body) != 6 + 3 * body[5]:
        raise damaged("JPEG")
    if any(not 1 <= factor <= 4 for both in body[7::3] for factor in divmod(both, 16)):
        raise damaged("JPEG")


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
            raise damaged("JPEG")
        self._low = {each: [UNSENT] * 64 for each in ids}

    def note(self, header: bytes) -> None:
        """Note a scan; `header` starts at its number of components. Raises `Refused` if it is truncated."""
        end = 1 + 2 * int.from_bytes(header[:1])
        ids, band = header[1:end:2], header[end : end + 3]
        if len(band) < 3:
            raise damaged("JPEG")
        first, last, bits = band
        for low in (self._low[each] for each in ids if each in self._low):
            low[first : last + 1] = [bits % 16] * len(low[first : last + 1])

    def check(self) -> None:
        """Raise `Refused` if a coefficient, or some of its low bits, were never transmitted."""
        if any(map(any, self._low.values())):
            raise damaged("JPEG")


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
            raise overloaded(f"more than {MOST_SCANS} scans")
        alone = code in ALONE or code == SOI
        at = start if alone else start + max(2, int.from_bytes(data[start : start + 2], "big"))
    raise overloaded(f"more than {MOST_SEGMENTS:,} segments")


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


def screened(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
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
        raise damaged("PNG")
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


def _plain(data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    return Screened(data)


def _heif(name: str, data: bytes, max_pixels: int, notes: list[str]) -> Screened:
    found = stated(data, name)
    check_pixels(*found.size, max_pixels)
    if found.depth > 8:
        notes.append(f"{found.depth}-bit colour was rounded to 8 bits")
    return Screened(data, found.grid, turn=found.turn, size=found.size)


CHECKS: Final[dict[str, Callable[[bytes, int, list[str]], Screened]]] = {
    "PNG": _png,
    "WEBP": _webp,
    "JPEG": _jpeg,
    "TIFF": _plain,
    "BMP": _plain,
    "GIF": _plain,
    "Netpbm": _plain,
    "HEIC": partial(_heif, "HEIC"),
    "AVIF": partial(_heif, "AVIF"),
}

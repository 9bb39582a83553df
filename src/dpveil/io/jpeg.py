"""JPEG before decoding: only the segments that a decoder needs, and no more scans than a photo has.

Pillow keeps every segment in memory, joins what is split in quadratic time, and libjpeg goes over all pixels
once for each scan: files of a few kilobytes could cost minutes and gigabytes (ITU-T T.81 §B).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dpveil.io.refused import damaged, overloaded

MARKER: Final = re.compile(rb"\xff+([^\x00\xff])")
AMID_DATA: Final = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
"""Markers among entropy-coded data, where 0xff00 is a byte and restart markers belong to the data."""

TEM, SOI, EOI, SOS = 0x01, 0xD8, 0xD9, 0xDA
ALONE: Final = frozenset({TEM, *range(0xD0, 0xD8)})
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
DROPPED: Final = frozenset({0xE1, *range(0xE3, 0xEE), 0xEF, *range(0xF0, 0xFF)})
"""EXIF and XMP (read here), makers' and Photoshop's segments, and comments."""

MOST_SEGMENTS: Final = 20_000
MOST_PROFILE_SEGMENTS: Final = 255
MOST_SCANS: Final = 100
"""Progressive encoders write about ten; with 100 a photo of 100 megapixels takes some seconds."""

EXIF: Final = b"Exif\0\0"
XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
PROFILE: Final = b"ICC_PROFILE\0"


@dataclass
class Jpeg:
    """The bytes to decode, and what the first EXIF and XMP segments hold."""

    data: bytes = b""
    exif: bytes = b""
    xmp: bytes = b""


def lean_jpeg(data: bytes) -> Jpeg:
    """Return the file up to the end of its first picture, without what nobody needs for decoding it.

    Raises `Refused` where the segments do not fit together, there is not exactly one frame header, or there
    are more scans or segments than any camera writes.
    """
    found, kept, frames, profiles, at = Jpeg(), [data[:2]], 0, 0, 2
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
        profiles += body.startswith(PROFILE)
        _note_words(code, body, found)
        if code not in DROPPED and (profiles <= MOST_PROFILE_SEGMENTS or not body.startswith(PROFILE)):
            kept += [b"\xff", mark[1], data[start:at]]
    else:
        raise overloaded(f"more than {MOST_SEGMENTS:,} segments")
    if frames != 1:
        raise damaged("JPEG")
    found.data = b"".join([*kept, data[start - 2 : _end(data, start - 2)]])
    return found


def _check_frame(body: bytes) -> None:
    """Refuse a frame header that does not describe the components it counts, or factors beyond 1 to 4."""
    if len(body) < 9 or len(body) != 6 + 3 * body[5]:
        raise damaged("JPEG")
    if any(not 1 <= factor <= 4 for both in body[7::3] for factor in divmod(both, 16)):
        raise damaged("JPEG")


def _note_words(code: int, body: bytes, found: Jpeg) -> None:
    if code == 0xE1 and body.startswith(EXIF) and not found.exif:
        found.exif = body
    elif code == 0xE1 and body.startswith(XMP) and not found.xmp:
        found.xmp = body[len(XMP) :]


def _end(data: bytes, at: int) -> int:
    """Return where the picture whose first scan is at `at` ends; what follows is never decoded."""
    scans = 0
    for _ in range(MOST_SEGMENTS):
        mark = AMID_DATA.search(data, at)
        if mark is None:
            return len(data)
        code, start = mark[1][0], mark.end()
        if code == EOI:
            return start
        scans += code == SOS
        if scans > MOST_SCANS:
            raise overloaded(f"more than {MOST_SCANS} scans")
        alone = code in ALONE or code == SOI
        at = start if alone else start + max(2, int.from_bytes(data[start : start + 2], "big"))
    raise overloaded(f"more than {MOST_SEGMENTS:,} segments")

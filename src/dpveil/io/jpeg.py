"""JPEG before decoding: keeps only the segments that a decoder needs, and limits the number of scans.

Pillow keeps every segment in memory, joins what is split in quadratic time, and libjpeg goes over all pixels
once for each scan: files of a few kilobytes could cost minutes and gigabytes (ITU-T T.81 §B).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dpveil.io.refused import damaged, overloaded

MARKER: Final = re.compile(rb"\xff+([^\x00\xff])")
AMID_DATA: Final = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
"""Markers among entropy-coded data, where 0xff00 is a byte and restart markers belong to the data."""

TEM, SOI, EOI, SOS = 0x01, 0xD8, 0xD9, 0xDA
ALONE: Final = frozenset({TEM, *range(0xD0, 0xD8)})
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
PROGRESSIVE: Final = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
DROPPED: Final = frozenset({0xE1, *range(0xE3, 0xEE), 0xEF, *range(0xF0, 0xFF)})
"""EXIF and XMP (read here), makers' and Photoshop's segments, and comments."""

MOST_SEGMENTS: Final = 20_000
MOST_PROFILE_SEGMENTS: Final = 255
LONGEST_SCAN_HEADER: Final = 12
"""Four components, two bytes each, their count before them, and the coefficients and bits behind."""

UNSENT: Final = 16
"""More than any number of low bits that a scan can leave out."""

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

    Raises `Refused` where the segments do not fit together, there is not exactly one frame header, a
    progressive picture is not sent to its last bit, or there are more scans or segments than any camera
    writes.
    """
    found, kept, frames, profiles, at = Jpeg(), [data[:2]], 0, 0, 2
    left = Left(())
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
            left = Left(body[6::3] if code in PROGRESSIVE else ())
        profiles += body.startswith(PROFILE)
        _note_words(code, body, found)
        if code not in DROPPED and (profiles <= MOST_PROFILE_SEGMENTS or not body.startswith(PROFILE)):
            kept += [b"\xff", mark[1], data[start:at]]
    else:
        raise overloaded(f"more than {MOST_SEGMENTS:,} segments")
    if frames != 1:
        raise damaged("JPEG")
    found.data = b"".join([*kept, data[start - 2 : _end(data, start - 2, left)]])
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


class Left:
    """The bits of a progressive picture that its scans have not sent yet.

    libjpeg makes up what was never sent from blocks around ("block smoothing"), which would carry a region's
    contents over 16 pixels beyond its grid: such a file is refused (docs: limits).
    """

    def __init__(self, components: Iterable[int]) -> None:
        ids = tuple(components)
        if len(set(ids)) < len(ids):
            raise damaged("JPEG")
        self._low = {each: [UNSENT] * 64 for each in ids}

    def note(self, header: bytes) -> None:
        """Note the scan whose header, from its count of components on, begins with `header`."""
        end = 1 + 2 * int.from_bytes(header[:1])
        ids, band = header[1:end:2], header[end : end + 3]
        if len(band) < 3:
            raise damaged("JPEG")
        first, last, bits = band
        for low in (self._low[each] for each in ids if each in self._low):
            low[first : last + 1] = [bits % 16] * len(low[first : last + 1])

    def check(self) -> None:
        """Raise `Refused` where a coefficient, or its lowest bits, were never sent."""
        if any(map(any, self._low.values())):
            raise damaged("JPEG")


def _end(data: bytes, at: int, left: Left) -> int:
    """Return where the picture whose first scan is at `at` ends; what follows is never decoded."""
    scans = 0
    for _ in range(MOST_SEGMENTS):
        mark = AMID_DATA.search(data, at)
        if mark is None or mark[1][0] == EOI:
            left.check()
            return len(data) if mark is None else mark.end()
        code, start = mark[1][0], mark.end()
        if code == SOS:
            left.note(data[start + 2 : start + 2 + LONGEST_SCAN_HEADER])
            scans += 1
        if scans > MOST_SCANS:
            raise overloaded(f"more than {MOST_SCANS} scans")
        alone = code in ALONE or code == SOI
        at = start if alone else start + max(2, int.from_bytes(data[start : start + 2], "big"))
    raise overloaded(f"more than {MOST_SEGMENTS:,} segments")

"""PDF files of pictures: one layout, in which nothing has room but the pixels (ISO 32000-1 §7, §8.9.5).

A page is one picture that fills it. Its stream is that of a PNG as `encode` writes it, unchanged (§7.4.4.4
has PNG's predictors), so that the PNG can be had again byte for byte. All else follows from the sizes of the
pictures and streams and the resolution: no text, font, metadata, date, identifier, outline, label, thumbnail,
annotation, form, attachment, script or layer.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HEAD: Final = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
CHUNK: Final = 8192
"""Bytes of each part of a PNG's stream but the last, as OpenCV's libpng writes them."""
COLOURS: Final = {1: (b"/DeviceGray", 0), 3: (b"/DeviceRGB", 2)}
"""What PDF and PNG call grey and colour, by channels."""
DPI: Final = range(36, 1201)
"""Resolutions in which pages are drawn and written, in pixels per inch."""


@dataclass(frozen=True)
class Sheet:
    """A page: width and height of its picture in pixels, its channels, and the bytes of its stream."""

    width: int
    height: int
    channels: int
    size: int

    @property
    def raw(self) -> int:
        """The bytes of its rows."""
        return self.height * (1 + self.width * self.channels)


def pieces(sheets: Sequence[Sheet], dpi: int) -> Iterator[bytes]:
    """Yield what is before, between and after the streams of the pages: one piece more than there are pages.

    A page is as large as its picture is in this resolution, in hundredths of a point.
    """
    kids = b" ".join(b"%d 0 R" % (3 + 3 * number) for number in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(sheets), kids),
    ]
    piece, at, starts = [HEAD], len(HEAD), []
    for number, told in enumerate(objects, 1):
        starts.append(at)
        piece.append(b"%d 0 obj\n%s\nendobj\n" % (number, told))
        at += len(piece[-1])
    for number, sheet in enumerate(sheets):
        for place, told in enumerate(_page(sheet, 3 + 3 * number, dpi), 3 + 3 * number):
            starts.append(at)
            piece.append(b"%d 0 obj\n%s" % (place, told))
            at += len(piece[-1])
        yield b"".join(piece)
        piece = [b"\nendstream\nendobj\n"]
        at += sheet.size + len(piece[0])
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    count = len(starts) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n" % (count, table, count)
    yield b"".join([*piece, end, b"startxref\n%d\n%%%%EOF\n" % at])


def _page(sheet: Sheet, number: int, dpi: int) -> tuple[bytes, bytes, bytes]:
    """Return a page, what it shows, and its picture up to the stream."""
    side = [
        b"%d.%02d" % divmod((pixels * 7200 + dpi // 2) // dpi, 100) for pixels in (sheet.width, sheet.height)
    ]
    shown = b"%s 0 0 %s 0 0 cm /P Do" % (side[0], side[1])
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %s %s] /Resources << /XObject << /P %d 0 R >> >>"
        b" /Contents %d 0 R >>\nendobj\n"
    ) % (side[0], side[1], number + 2, number + 1)
    told = b"<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(shown), shown)
    picture = (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace %s /BitsPerComponent 8"
        b" /Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors %d /Columns %d >>"
        b" /Length %d >>\nstream\n"
    ) % (
        *(sheet.width, sheet.height, COLOURS[sheet.channels][0]),
        *(sheet.channels, sheet.width, sheet.size),
    )
    return page, told, picture


def png_of(sheet: Sheet, stream: bytes) -> bytes:
    """Return the PNG of a page's stream."""
    colour = COLOURS[sheet.channels][1]
    header = struct.pack(">IIBBBBB", sheet.width, sheet.height, 8, colour, 0, 0, 0)
    parts = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    chunks = [(b"IHDR", header), *((b"IDAT", part) for part in parts), (b"IEND", b"")]
    return SIGNATURE + b"".join(map(_chunk, chunks))


def _chunk(chunk: tuple[bytes, bytes]) -> bytes:
    named = b"".join(chunk)
    return struct.pack(">I", len(chunk[1])) + named + struct.pack(">I", zlib.crc32(named))


def stream_of(png: bytes) -> bytes:
    """Return the stream of a PNG as `encode` writes it; raises `ValueError` for any other.

    >>> import numpy as np
    >>> from dpveil.io.writing import encode
    >>> png = encode(np.zeros((2, 3, 3), np.uint8), "png")
    >>> png_of(Sheet(3, 2, 3, len(stream_of(png))), stream_of(png)) == png
    True
    """
    width, height, _, colour = struct.unpack(">IIBB", png[16:26])
    channels = {told: number for number, (_, told) in COLOURS.items()}.get(colour, 3)
    parts, at = [], 33
    while png[at + 4 : at + 8] == b"IDAT":
        size = int.from_bytes(png[at : at + 4], "big")
        parts.append(png[at + 8 : at + 8 + size])
        at += 12 + size
    stream = b"".join(parts)
    if png_of(Sheet(width, height, channels, len(stream)), stream) != png:
        raise ValueError("the picture holds more than its pixels")
    return stream

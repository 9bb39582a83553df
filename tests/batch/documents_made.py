"""PDF and TIFF files made by hand, with a marker in every place that a reader does not draw."""

from __future__ import annotations

import struct
import zlib

MARKER = b"LEAKMARKER"
WIDE = "LEAKMARKER".encode("utf-16-be")
Objects = dict[int, bytes]
SIDES = (144, 72)
"""Width and height of the marked page, in points."""


def stream(told: bytes, contents: bytes, *, packed: bool = False) -> bytes:
    body = zlib.compress(contents) if packed else contents
    more = b" /Filter /FlateDecode" if packed else b""
    return b"<< %s%s /Length %d >>\nstream\n%s\nendstream" % (told, more, len(body), body)


def pdf(objects: Objects, trailer: bytes = b"", before: bytes = b"") -> bytes:
    """Return a file of these objects, of which 1 is the catalog; what is `before` them is no part of it."""
    made = bytearray(b"%PDF-1.7\n" + before)
    starts = {}
    for number, told in objects.items():
        starts[number] = len(made)
        made += b"%d 0 obj\n%s\nendobj\n" % (number, told)
    at, size = len(made), max(objects) + 1
    made += b"xref\n0 1\n0000000000 65535 f \n"
    for number, start in starts.items():
        made += b"%d 1\n%010d 00000 n \n" % (number, start)
    made += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, at)
    return bytes(made)


def box(colour: bytes, told: bytes = b"") -> bytes:
    """Return what an annotation of 20 × 20 points looks like."""
    return stream(b"/Type /XObject /Subtype /Form /BBox [0 0 20 20] " + told, colour + b" rg 0 0 20 20 re f")


SHOWN = (
    b"1 0.5 0 rg 10 40 20 20 re f\n"  # orange, on the page
    b"/OC /Hidden BDC 1 0 0 rg 100 40 20 20 re f EMC\n"  # red, in a layer that is off
    b"BT /F 12 Tf 3 Tr 10 10 Td (LEAKMARKER) Tj ET\n"  # a text layer
)


def marked(pages: int = 1) -> bytes:
    """Return a PDF whose pages show orange, green (an annotation) and blue (a form field), on white."""
    catalog = (
        b"<< /Type /Catalog /Pages 2 0 R /Metadata 20 0 R /Outlines 21 0 R /AcroForm 23 0 R"
        b" /Lang (LEAKMARKER) /OpenAction << /S /JavaScript /JS (app.alert('LEAKMARKER')) >>"
        b" /Names << /EmbeddedFiles << /Names [(LEAKMARKER) 24 0 R] >>"
        b" /JavaScript << /Names [(LEAKMARKER) << /S /JavaScript /JS (LEAKMARKER) >>] >> >>"
        b" /PageLabels << /Nums [0 << /P (LEAKMARKER) >>] >> /PieceInfo << /LEAKMARKER << >> >>"
        b" /OCProperties << /OCGs [26 0 R] /D << /OFF [26 0 R] /Order [26 0 R] >> >> >>"
    )
    first = 40
    kids = b" ".join(b"%d 0 R" % (first + number) for number in range(pages))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 144 72] /Contents 4 0 R /Annots [27 0 R 29 0 R 31 0 R]"
        b" /Thumb 25 0 R /Metadata 20 0 R /AA << /O << /S /JavaScript /JS (LEAKMARKER) >> >>"
        b" /Resources << /Font << /F 32 0 R >> /Properties << /Hidden 26 0 R >> >> >>"
    )
    objects = {
        1: catalog,
        2: b"<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, kids),
        4: stream(b"", SHOWN, packed=True),
        19: b"<< /Title (LEAKMARKER) /Author <FEFF%s> >>" % WIDE.hex().encode(),
        20: stream(b"/Type /Metadata /Subtype /XML", b"<x:xmpmeta>LEAKMARKER</x:xmpmeta>"),
        21: b"<< /Type /Outlines /First 22 0 R /Last 22 0 R /Count 1 >>",
        22: b"<< /Title (LEAKMARKER) /Parent 21 0 R >>",
        23: b"<< /Fields [29 0 R] >>",
        24: b"<< /Type /Filespec /F (LEAKMARKER) /EF << /F 33 0 R >> >>",
        25: stream(b"/Width 10 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8", MARKER, packed=True),
        26: b"<< /Type /OCG /Name (LEAKMARKER) >>",
        27: b"<< /Type /Annot /Subtype /FreeText /Rect [40 40 60 60] /Contents (LEAKMARKER) /F 4"
        b" /AP << /N 28 0 R >> >>",
        28: box(b"0 1 0"),
        29: b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (LEAKMARKER) /V (LEAKMARKER) /Rect [70 40 90 60]"
        b" /F 4 /AP << /N 30 0 R >> >>",
        30: box(b"0 0 1"),
        31: b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /Border [0 0 0]"
        b" /A << /S /URI /URI (http://192.0.2.1/LEAKMARKER) >> >>",
        32: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        33: stream(b"/Type /EmbeddedFile", MARKER, packed=True),
        **{first + number: page for number in range(pages)},
    }
    leftover = b"4 0 obj\n%s\nendobj\n" % stream(b"", b"BT (LEAKMARKER) Tj ET")
    return pdf(objects, b"/Info 19 0 R", leftover)


def sized(width: str, height: str, more: str = "") -> bytes:
    """Return a PDF of one empty page of this size in points."""
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] {more} >>"
    return pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            3: page.encode(),
        }
    )


def encrypted() -> bytes:
    """Return a PDF that no empty password opens."""
    more = b"/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <%s> /U <%s> >> /ID [<00> <00>]"
    page = sized("72", "72")
    return page.replace(b"/Root 1 0 R", b"/Root 1 0 R " + more % (b"ab" * 32, b"cd" * 32))


def tiff(levels: list[int], side: int = 16, kinds: tuple[int, ...] = ()) -> bytes:
    """Return a TIFF of grey pages of these levels, each with a marker; `kinds` are their NewSubfileType."""
    made = bytearray(b"II*\0\0\0\0\0")
    last = 4
    for number, level in enumerate(levels):
        text, pixels = len(made), len(made) + len(MARKER)
        made += MARKER + bytes([level]) * side * side
        tags = [
            (254, 4, 1, kinds[number] if kinds else 0),
            *((256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)),
            *((270, 2, len(MARKER), text), (273, 4, 1, pixels), (277, 3, 1, 1), (278, 4, 1, side)),
            *((279, 4, 1, side * side), (305, 2, len(MARKER), text), (700, 1, len(MARKER), text)),
        ]
        made += bytes(len(made) % 2)
        made[last : last + 4] = struct.pack("<I", len(made))
        made += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
        last = len(made)
        made += bytes(4)
    return bytes(made)

"""Pages of PDF and TIFF files as pictures, drawn in a process of its own, which a damaged file may end."""

from __future__ import annotations

import math
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import ImageFile

from dpveil.core.photo import BlockGrid, Photo
from dpveil.io.decoding import WHY_ENDED, as_answer, check_kind, decode_answer, load_levels, open_picture
from dpveil.io.folders import PDF
from dpveil.io.screening import check_pixels
from dpveil.io.unreadable import COPY_AGAIN, Refused, Unread, overload_refusal
from dpveil.io.untrusted_files import without_blocking
from dpveil.processes import Channel, Ended, Pool, answer

PDF_HEAD: Final = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
COLOURS: Final = {1: (b"/DeviceGray", 0), 3: (b"/DeviceRGB", 2)}
"""What PDF and PNG call grey and colour, by channels."""
DPI: Final = range(36, 1201)  # resolutions in which pages are drawn and written, in pixels per inch


@dataclass(frozen=True)
class Sheet:
    """A page: width and height of its picture in pixels, its channels, and the bytes of its stream."""

    width: int
    height: int
    channels: int
    size: int


def pieces(sheets: Sequence[Sheet], dpi: int) -> Iterator[bytes]:
    """Yield what is before, between and after the streams of the pages: one piece more than there are pages.

    A page is one picture that fills it, and its stream is that of a PNG, unchanged, as PDF knows PNG's
    predictors (ISO 32000-1 §7.4.4.4). All else follows from the sizes of pictures and streams and from the
    resolution, so nothing has room but the pixels: there is no text, font, metadata, date, identifier,
    thumbnail, annotation, form, attachment, script or layer.
    A page is as large as its picture is in this resolution, in hundredths of a point.
    """
    kids = b" ".join(b"%d 0 R" % (3 + 3 * number) for number in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(sheets), kids),
    ]
    piece, at, starts = [PDF_HEAD], len(PDF_HEAD), []
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
    ) % (*(sheet.width, sheet.height, COLOURS[sheet.channels][0]), *(sheet.channels, sheet.width, sheet.size))
    return page, told, picture


def stream_of(png: bytes) -> bytes:
    """Return the stream of a PNG as `encode` writes it; raises `ValueError` for one that holds more."""
    parts, at = [], 33
    while png[at + 4 : at + 8] == b"IDAT":
        size = int.from_bytes(png[at : at + 4], "big")
        parts.append(png[at + 8 : at + 8 + size])
        at += 12 + size
    if png[at + 4 : at + 8] != b"IEND":
        raise ValueError("the picture holds more than its pixels")
    return b"".join(parts)


SECONDS: Final = 120  # time to open a document, or to draw a page
POOL: Final = Pool("dpveil.io.document:serve", memory=1 << 33, seconds=SECONDS)
"""The processes, with 8 GiB each: a document may have one, and pages are drawn beside it."""
MOST_PAGES: Final = 1 << 13  # of a TIFF that are looked for
POINTS: Final = 72  # points in an inch, the unit of a PDF page's size (ISO 32000-1 §8.3.2.3)
SUBFILE, NO_PAGE = 254, 0b101
"""TIFF's tag NewSubfileType, and its bits of a smaller copy of a page and of a mask, which are no pages."""
CHANGED: Final = ("has changed since the run began", "run it again")
MISSING: Final = ("is drawn by pypdfium2, which is not installed", "pip install 'dpveil[documents]'")
ENCRYPTED: Final = ("is encrypted", "save a copy of it without a password")
DAMAGED: Final = ("is damaged, or no PDF that can be drawn", COPY_AGAIN)
CHILD_ENDED: Final = ("ends the process that draws it", "print it to a new PDF in a viewer, and release that")
Stamp = tuple[int, int]
"""A file's size in bytes and the time of its last change in ns."""


class Document:
    """The pages of the file at `path` while it has this `stamp`; threads may share it. Raises `Refused`."""

    def __init__(self, path: Path, stamp: Stamp) -> None:
        if path.suffix.lower() == PDF and find_spec("pypdfium2") is None:
            raise Unread(*MISSING)
        self._which = [str(Path.cwd() / path), *stamp]
        self._pages, self._lock = 0, threading.Lock()

    @property
    def pages(self) -> int:
        with self._lock:
            if not self._pages:
                told, _ = self._ask([], 0)
                if "refused" in told:
                    raise Refused(*told["refused"])
                self._pages = told["pages"]
        return self._pages

    def draw(self, page: int, dpi: int, most: int) -> Photo:
        """Return the page with this index, from 0, of at most so many pixels; a PDF's always in RGB."""
        with self._lock:
            return decode_answer(*self._ask([page, dpi, most], 3 * most), most)

    def _ask(self, what: list[int], most: int) -> tuple[Any, list[np.ndarray]]:
        try:
            return POOL.ask([self._which, *what], most=most)
        except Ended as error:
            raise Refused(*WHY_ENDED.get(error.why, CHILD_ENDED)) from error


# In the process


def serve(channel: Channel) -> None:
    answer(channel, lambda _: _answer)


def _answer(asked: list[Any]) -> tuple[Any, ...]:
    (path, *stamp), *what = asked
    if what:
        return as_answer(lambda: _open_pages(path, tuple(stamp)).draw(*what))
    try:
        return ({"pages": _open_pages(path, tuple(stamp)).count()},)
    except Refused as refusal:
        return ({"refused": [refusal.problem, refusal.remedy, refusal.arguments]},)


def _open_pages(path: str, stamp: Stamp) -> _Pdf | _Tiff:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise Refused(f"cannot be read ({error.strerror})", "check the name") from error
    if not stat.S_ISREG(status.st_mode) or (status.st_size, status.st_mtime_ns) != stamp:
        raise Refused(*CHANGED)
    return _cached_pages(path, stamp)


@lru_cache(maxsize=1)
def _cached_pages(path: str, stamp: Stamp) -> _Pdf | _Tiff:
    return (_Pdf if path.lower().endswith(PDF) else _Tiff)(path)


class _Pdf:
    """By PDFium, with forms as they are filled in. Nothing in it is run: no script, no action, no link."""

    def __init__(self, path: str) -> None:
        import pypdfium2
        from pypdfium2 import raw

        with open(path, "rb", opener=without_blocking) as file:
            contents = file.read()
        try:
            self.document: Any = pypdfium2.PdfDocument(contents)
            self.document.init_forms()
        except pypdfium2.PdfiumError as error:
            password = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD
            raise Refused(*(ENCRYPTED if password else DAMAGED)) from error

    def count(self) -> int:
        return len(self.document)

    def draw(self, page: int, dpi: int, most: int) -> Photo:
        import pypdfium2
        from pypdfium2 import raw

        try:
            with closing(self.document[page]) as found:
                pictures = found.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=15)
                few = any(map(_has_few_colours, pictures))
                points = found.get_size()
                if not all(math.isfinite(side) and side > 0 for side in points):
                    raise ValueError("the page has no size")
                # rounded up as PDFium is asked to draw them
                width, height = (math.ceil(side * (dpi / POINTS)) for side in points)
                check_pixels(width, height, most)
                levels = _render_page(found, dpi)
        except (pypdfium2.PdfiumError, ValueError, OverflowError, IndexError) as error:
            raise Refused(*DAMAGED) from error
        return Photo(levels, BlockGrid.without_blocks("palette" if few else "PDF"), ())


def _render_page(page: Any, dpi: int) -> np.ndarray:
    bitmap = page.render(
        scale=dpi / POINTS,
        fill_color=(255, 255, 255, 255),
        draw_annots=True,
        may_draw_forms=True,
        maybe_alpha=False,
        grayscale=False,
        prefer_bgrx=False,
        rev_byteorder=True,
    )
    if bitmap.n_channels != 3:
        raise ValueError("the page is not drawn as RGB")
    rows = np.frombuffer(bitmap.buffer, np.uint8)[: bitmap.height * bitmap.stride]
    levels = rows.reshape(bitmap.height, bitmap.stride)[:, : 3 * bitmap.width]
    return levels.reshape(bitmap.height, bitmap.width, 3).copy()


def _has_few_colours(image: Any) -> bool:
    from pypdfium2 import raw

    found = raw.FPDF_IMAGEOBJ_METADATA()
    if not raw.FPDFImageObj_GetImageMetadata(image.raw, image.page.raw, found):
        return True  # unknown
    indexed = found.colorspace == raw.FPDF_COLORSPACE_INDEXED
    return bool(indexed or found.bits_per_pixel < 8)


class _Tiff:
    """By Pillow: frames but smaller copies and masks are pages (TIFF 6.0 §8)."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb", opener=without_blocking) as file:
            if file.read(4) not in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
                raise Refused("is no TIFF", "name a PDF or TIFF")
        self.image = self._fresh()
        self.frames: list[int] = []
        for frame in range(MOST_PAGES + 1):
            try:
                self.image.seek(frame)
            except EOFError:
                break
            except Exception as error:  # a parser given hostile bytes may raise anything
                raise Refused("is a truncated or damaged TIFF file", COPY_AGAIN) from error
            subfile = self.image.tag_v2.get(SUBFILE, 0)  # type: ignore[attr-defined]
            if not (subfile if isinstance(subfile, int) else 0) & NO_PAGE:
                self.frames.append(frame)
        else:
            raise overload_refusal(f"more than {MOST_PAGES:,} pages")

    def _fresh(self) -> ImageFile.ImageFile:
        return open_picture("TIFF", open(self.path, "rb", opener=without_blocking))

    def count(self) -> int:
        return len(self.frames)

    def draw(self, page: int, dpi: int, most: int) -> Photo:
        if not self.image.fp or self.image.tell() == self.frames[page]:
            self.image = self._fresh()  # a picture is decoded once
        try:
            self.image.seek(self.frames[page])
        except Exception as error:  # as above
            raise Refused("is a truncated or damaged TIFF file", COPY_AGAIN) from error
        check_pixels(*self.image.size, most)
        grid = check_kind(self.image, None)
        levels, notes = load_levels(self.image, "TIFF", 255)
        return Photo(levels, grid, tuple(notes))

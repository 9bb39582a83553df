"""Pages of PDF and TIFF files as photos: which there are, and each of them, drawn when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.state import Stamp
from dpveil.core.photo import Photo
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter
from dpveil.io.document import PDF, Document
from dpveil.io.pdf_written import DPI
from dpveil.io.received import opened
from dpveil.io.refused import Refused
from dpveil.io.tar import Member
from dpveil.release.documents import MOST_PAGES, page_name

TIFFS: Final = frozenset({".tif", ".tiff"})
MOST_FILE: Final = 1 << 30
"""Largest document in bytes."""
RANGE: Final = re.compile(r"([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?")


@dataclass(frozen=True)
class Scan:
    """How documents are read: pixels per inch, and which `pages`, as pairs of the first and the last.

    All are read if there are no pairs. Raises `InvalidParameter`.
    """

    dpi: int = 200
    pages: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.dpi not in DPI:
            raise InvalidParameter("dpi", self.dpi, f"is not from {DPI[0]} to {DPI[-1]}")

    @classmethod
    def of(cls, dpi: int | None, pages: str | None) -> Scan:
        """Return it for options, of which both may be left out; `pages` is such as "1-3,7".

        >>> Scan.of(None, "1-3,7").pages
        ((1, 3), (7, 7))
        """
        parts = [RANGE.fullmatch(part.strip()) for part in (pages or "").split(",")] if pages else []
        pairs = [(int(part[1]), int(part[2] or part[1])) for part in parts if part is not None]
        if len(pairs) < len(parts) or any(first > last for first, last in pairs) or len(pairs) > MOST_PAGES:
            raise InvalidParameter("pages", pages, "names no pages", hint="write such as 1-3,7")
        return cls(cls.dpi if dpi is None else dpi, tuple(pairs))

    def chosen(self, count: int) -> list[int]:
        """Return the numbers of the chosen pages of so many, in their order; raises `Refused`."""
        wrong = next((last for _, last in self.pages if last > count), None)
        if wrong is not None:
            raise Refused(f"has no page {wrong:,}, but {count:,}", "name pages that it has")
        pairs = self.pages or ((1, count),)
        if sum(last - first + 1 for first, last in pairs) > MOST_PAGES:
            raise Refused(f"has more than {MOST_PAGES:,} pages", "name fewer pages at a time")
        return sorted({number for first, last in pairs for number in range(first, last + 1)})


ALL: Final = Scan()
"""All pages, in the usual resolution."""


def is_document(path: Path) -> bool:
    """Whether a file is one of pages: a PDF, by its suffix, or a TIFF of several. No object by URL is one."""
    if isinstance(path, Url):
        return False
    return path.suffix.lower() == PDF or (may_be_document(path) and _several(path))


def may_be_document(path: Path) -> bool:
    """Whether a PDF can be made of a file, by its suffix."""
    return not isinstance(path, Url) and path.suffix.lower() in TIFFS | {PDF}


def _several(path: Path) -> bool:
    try:
        status = path.stat()
        return Document(path, (status.st_size, status.st_mtime_ns)).pages > 1
    except OSError:
        return False
    except Refused:
        return False  # reading it tells what is wrong


def pages_of(path: Path, scan: Scan) -> tuple[Stamp, Iterator[Member]]:
    """Return the stamp of a document, and its chosen pages.

    Each has a number that stands for the document's bytes, the resolution and the page. Raises `Refused`.
    """
    with opened(path) as (file, status):
        stamp = (status.st_size, status.st_mtime_ns)
        if status.st_size > MOST_FILE:
            raise Refused(f"has {status.st_size:,} bytes, and at most {MOST_FILE:,} are read", "split it")
        whole = digest(file)
    count = _opened(path, stamp).pages
    if count < 1:
        raise Refused("has no pages", "get an intact copy")
    return stamp, (
        Member(
            page_name(number),
            number,
            1 + stamp[0] // count,
            0,
            plain=True,
            digest=sha256(b"%s %d %d" % (whole, scan.dpi, number)).digest(),
        )
        for number in scan.chosen(count)
    )


def digest(file: BinaryIO) -> bytes:
    """Return the SHA-256 of the rest of a file."""
    hashed = sha256()
    while part := file.read(1 << 20):
        hashed.update(part)
    return hashed.digest()


def read_page(path: Path, stamp: Stamp, member: Member, dpi: int, name: str, max_pixels: int) -> Photo:
    """Return a page as a photo, always in colour if it is drawn, as its colours may be what is protected.

    Raises `Refused`.
    """
    found = _opened(path, stamp).draw(member.start - 1, dpi, max_pixels)
    return Photo(found.levels, found.grid, found.notes)


@lru_cache(maxsize=2)
def _opened(path: Path, stamp: Stamp) -> Document:
    return Document(path, stamp)

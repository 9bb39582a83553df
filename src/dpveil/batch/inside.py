"""Photos inside of archives: what lies in a shard, Parquet file or document, and where releases of it wait.

Releases are gathered in a hidden folder beside the shard that is to be written, where all is as in a run over
folders. Its files are named by hashes, as names in a shard come from anyone and never become paths.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from dpveil.batch.archives import ARCHIVES, RENAME, Archive, refusal_of
from dpveil.batch.state import Stamp, stage_of
from dpveil.core.photo import Photo
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter, PhotoError
from dpveil.io import FORMATS, most_bytes, read_bytes
from dpveil.io.document import PDF, Document
from dpveil.io.folders import STAGE, UNWRITTEN
from dpveil.io.names import shown
from dpveil.io.pdf_written import DPI
from dpveil.io.received import opened
from dpveil.io.refused import COPY_AGAIN, Refused
from dpveil.io.tar import Member
from dpveil.release.documents import MOST_PAGES, page_name
from dpveil.release.saving import SUFFIX, certificate_path

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


@dataclass(frozen=True)
class Shard:
    """One WebDataset shard, Parquet file or document: its `path` and stamp, and the `target` to be written.

    The `root` is the folder of all outputs. Of a document, `scan` says how it is read; if it is `loose`, its
    pages become files of their own, whose names begin with `target`, and nothing is gathered.
    """

    path: Path
    stamp: Stamp
    target: Path
    root: Path
    scan: Scan | None = None
    loose: bool = False

    @property
    def archive(self) -> Archive:
        """Its kind, by the suffix, unless it is a document."""
        return ARCHIVES[self.path.suffix.lower()]

    @property
    def called(self) -> str:
        """What its kind is called; of a document, that of its target."""
        return self.archive.called if self.scan is None else "PDF"

    @property
    def stage(self) -> Path:
        """The hidden folder that has such folders."""
        return (stage_of(self.root) if isinstance(self.root, Url) else self.root) / STAGE

    @property
    def folder(self) -> Path:
        """Where its releases are gathered."""
        return self.stage / _hash(self.target.relative_to(self.root).as_posix())

    def place(self, name: str) -> Path:
        """Where the release is gathered that is called `name` in the target."""
        return self.folder / f"{_hash(name)}.png"


@dataclass(frozen=True)
class Inside:
    """A photo in a shard, the `name` of its release in the target, and what it may have been called before.

    `problem` says why it is not read, if so, and `remedy` what helps.
    """

    shard: Shard
    member: Member
    label: str
    name: str
    others: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def source(self) -> Path:
        """How messages and reports call the photo; nothing is at this path."""
        return self.shard.path / self.label

    @property
    def target(self) -> Path:
        """How messages and reports call its release, if it is in a file of many: a page as its document."""
        return self.shard.target / self.name if self.shard.scan is None else self.shard.target

    @property
    def certificate(self) -> Path | None:
        """The file with the certificate of its release, if it is in a document."""
        return None if self.shard.scan is None else certificate_path(self.shard.target)

    @property
    def stamp(self) -> Stamp | None:
        """Size, and the time that the shard states for it, which stays when others are added.

        Of a row, which has no time, a number of 63 bits by its bytes.
        """
        member = self.member
        digest = hashlib.blake2b(member.digest, digest_size=8, person=b"dpveil.row")
        time = int.from_bytes(digest.digest()) >> 1 if member.digest else member.time * 10**9
        return None if self.problem else (member.size, time)

    def read(self, max_pixels: int) -> Photo:
        """Return the photo; raises `PhotoError`."""
        name, shard = shown(self.source), self.shard
        if shard.scan is None or self.problem:
            return read_bytes(self.contents(most_bytes(max_pixels)), name, max_pixels=max_pixels)
        try:
            return read_page(shard.path, shard.stamp, self.member, shard.scan.dpi, name, max_pixels)
        except Refused as refusal:
            raise self._refused(refusal) from None

    def contents(self, most: int) -> bytes:
        """Return its bytes; raises `PhotoError` if they are more than `most`, or the shard has changed."""
        try:
            if self.problem:
                raise Refused(self.problem, self.remedy)
            if self.member.size > most:
                problem = f"has {self.member.size:,} bytes, more than any photo within the limit of pixels"
                raise Refused(problem, "raise {max_pixels} if it is a photo", {"max_pixels": "max_pixels"})
            return self.shard.archive.read(self.shard.path, self.shard.stamp, self.member)
        except Refused as refusal:
            raise self._refused(refusal) from None

    def _refused(self, refusal: Refused) -> PhotoError:
        text = f"{shown(self.source)} {refusal.problem}"
        return PhotoError(text, hint=refusal.remedy, arguments=refusal.arguments)


def pages_inside(path: Path, target: Path, root: Path, scan: Scan, *, loose: bool) -> list[Inside]:
    """Return the pages of a document, in their order; of one that cannot be read, one with its `problem`.

    It is for the PDF `target`, or its pages are `loose` (`Shard`).
    """
    shard = Shard(path, (0, 0), target, root, scan, loose)
    try:
        stamp, members = pages_of(path, scan)
        found = list(members)
    except Refused as refusal:
        nothing = Member("", 0, 0, 0, plain=False)
        return [Inside(shard, nothing, "", "#", problem=refusal.problem, remedy=refusal.remedy)]
    shard = replace(shard, stamp=stamp)
    return [Inside(shard, member, PurePosixPath(member.name).stem, member.name) for member in found]


def inside(path: Path, target: Path, root: Path) -> list[Inside]:
    """Return the photos in the shard at `path`, in its order, whose releases are for the shard `target`.

    Left out are hidden files, files without the suffix of a picture or video, and releases with their
    certificates. What cannot be read has its `problem`, and so has a shard from where it is damaged. Writes
    nothing.
    """
    found, damage = list[Member](), None
    shard = Shard(path, (0, 0), target, root)
    try:
        with opened(path) as (file, status):
            shard = Shard(path, (status.st_size, status.st_mtime_ns), target, root)
            for member in shard.archive.listed(file, status.st_size):
                found.append(member)
    except Refused as refusal:
        rest = ", and what follows in it is not released" if found else ""
        damage = Refused(f"{refusal.problem}{rest}", refusal.remedy)
    photos = list(_named(shard, list(_photos(found, shard.archive.absent))))
    if damage is not None:
        photos.append(_bad(shard, Member("", 0, 0, 0, plain=False), "", "#", damage))
    return photos


def _photos(found: list[Member], absent: str) -> Iterator[tuple[int, str, Member, Refused | None]]:
    """Yield the number, name and problem of every photo; no name if it is the problem."""
    names = {member.name.removeprefix("./") for member in found}
    seen = set[str]()
    for number, member in enumerate(found, 1):
        name = member.name.removeprefix("./")
        suffix = PurePosixPath(name).suffix.lower()
        own = name.endswith(SUFFIX) or f"{name}{SUFFIX}" in names
        hidden = any(part[:1] == "." and part not in (".", "..") for part in name.split("/"))
        if suffix in UNWRITTEN.union(FORMATS) and not own and not hidden:
            unnamed = refusal_of(name, seen)
            problem = unnamed or (None if member.plain else Refused(absent, COPY_AGAIN))
            yield number, "" if unnamed else name, member, problem
            seen.add(name)


def _named(shard: Shard, photos: list[tuple[int, str, Member, Refused | None]]) -> Iterator[Inside]:
    """Yield the photos with the names of their releases: a.png for a.jpg, or a.jpg.png if several have it."""
    plain = [name for _, name, _, problem in photos if problem is None]
    many = Counter(map(_stem, plain))
    chosen = {name: _stem(name) if many[_stem(name)] == 1 else f"{name}.png" for name in plain}
    taken = Counter(chosen.values())
    for number, name, member, problem in photos:
        if problem is None and taken[chosen[name]] > 1:
            problem = Refused(f"would be called {chosen[name]}, as another", RENAME)
        if problem is not None:
            yield _bad(shard, member, name or f"#{number}", f"#{number}", problem)
            continue
        others = {_stem(name), f"{name}.png"} - taken.keys()
        yield Inside(shard, member, name, chosen[name], tuple(others))


def _bad(shard: Shard, member: Member, label: str, name: str, why: Refused) -> Inside:
    return Inside(shard, member, label, name, problem=why.problem, remedy=why.remedy)


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(".png"))


def _hash(name: str) -> str:
    return hashlib.blake2b(os.fsencode(name), digest_size=16, person=b"dpveil.shard").hexdigest()

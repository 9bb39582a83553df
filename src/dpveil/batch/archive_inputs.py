"""Photos inside of archives: what lies in a shard, Parquet file or document, and where releases of it wait.

Releases are gathered in a hidden folder beside the shard that is to be written, where all is as in a run over
folders. Its files are named by hashes, as names in a shard come from anyone and never become paths.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final
from weakref import finalize

from dpveil.batch.state import Stamp, stage_of
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.photo import Photo
from dpveil.core.urls import Status, Url
from dpveil.errors import CertificateError, InvalidParameter, PhotoError, UsageError
from dpveil.io import FORMATS, most_bytes, read_bytes
from dpveil.io.document import DPI, PDF, Document
from dpveil.io.folders import STAGE, UNWRITTEN
from dpveil.io.names import escape_text, released_suffix, show_path
from dpveil.io.parquet import (
    CERTIFICATE,
    COLUMNS,
    IMAGE,
    Rows,
    any_rows,
    column_names,
    read_columns,
    write_parquet,
)
from dpveil.io.parquet import ROW as ROW_NUMBER
from dpveil.io.screening import foreign_name, format_name
from dpveil.io.tar import Member, members, write_tar
from dpveil.io.unreadable import COPY_AGAIN, Refused
from dpveil.io.untrusted import open_untrusted, without_blocking
from dpveil.io.urls import opened_url, start_reading
from dpveil.release.documents import MOST_PAGES, page_name
from dpveil.release.saving import SUFFIX, Read, certificate_from, certificate_path

LONGEST: Final = 230
"""Most bytes of a photo's name in a shard, so that its release, and the certificate, can be unpacked."""
LONGEST_RELEASE: Final = LONGEST + len(".png")
"""The same of a release's name, which may be that of its photo and more."""
RENAME: Final = "give it a plain name"
ROW: Final = "{:09}.png"
"""What the release of a row is called; the first row is 0."""
LINK: Final = "is a link, a device or sparse, and no file"


def refusal_of(name: str, seen: Collection[str] = (), *, longest: int = LONGEST) -> Refused | None:
    """Return what is wrong with a name in a file, if anything; `seen` are those before it.

    It has at most so many bytes.
    """
    parts = name.split("/")
    if not name.isprintable() or len(name.encode("utf-8", "replace")) > longest or "\\" in name:
        return Refused(f"is called {escape_text(name)!r}, which is no plain name", RENAME)
    if any(part in ("", ".", "..") for part in parts):
        return Refused(f"is called {name!r}, which leads elsewhere", RENAME)
    if name in seen:
        return Refused(f"is called {name!r}, as another before it", "name it otherwise")
    return None


HEAD: Final = 64
"""First bytes of a member by which a picture is recognised."""
MOST_MEMBER: Final = 1 << 26
"""Most bytes of a member that goes along with a release."""
TWICE: Final = "has the name of another before it"
PICTURES: Final = UNWRITTEN.union(FORMATS)


def parse_columns(text: str | None) -> tuple[str, ...]:
    """Return what is kept of samples by an option such as "txt,label": suffixes of members, or columns.

    Pictures are released, and never kept: `InvalidParameter`.

    >>> parse_columns("txt, label")
    ('label', 'txt')
    """
    names = sorted({part.strip() for part in (text or "").split(",")} - {""})
    for name in names:
        own = name in (IMAGE, CERTIFICATE, ROW_NUMBER) or f".{name}".endswith(SUFFIX)
        if own or "/" in name or PurePosixPath(f"a.{name}").suffix.lower() in PICTURES:
            hint = "name suffixes of other files in a shard, such as txt, or other columns"
            raise InvalidParameter("keep_columns", name, "is that of a release", hint=hint)
    return tuple(names)


def _split_sample(name: str) -> tuple[str, str]:
    """Return the key and the suffix of a sample's member: up to the first dot, as WebDataset has it."""
    folder, slash, last = name.rpartition("/")
    stem, _, column = last.partition(".")
    return f"{folder}{slash}{stem}", column


def _stated_columns(read: Read) -> tuple[str, ...]:
    try:
        return certificate_from(read).columns
    except CertificateError:  # whoever verifies the release says what is wrong
        return ()


@dataclass(frozen=True)
class Held:
    """An image with the `name` and its certificate; one is None where it is not there.

    `problem` says why they are not looked at, if so.
    """

    name: str
    image: Read | None = None
    certificate: Read | None = None
    problem: str = ""


def held_members(file: BinaryIO, size: int) -> Iterator[Held]:
    """Yield what a .tar of `size` bytes holds, each as soon as image and certificate are known.

    Raises `Refused` where it is damaged; of what waits for its other part then, nothing is said.
    """
    seen = set[str]()
    waiting = dict[str, Member]()
    certified = defaultdict[str, list[Read]](list)
    for member in members(file, size):
        name = member.name.removeprefix("./")
        if member.folder:
            continue
        image = name.removesuffix(SUFFIX)
        unnamed = refusal_of(image, longest=LONGEST_RELEASE)
        problem = unnamed.problem if unnamed else TWICE if name in seen else "" if member.plain else LINK
        seen.add(name)
        if problem:
            yield Held(name, problem=problem)
        elif (other := waiting.pop(image, None)) is None:
            waiting[image] = member
        else:
            one, two = (other, member) if image != name else (member, other)
            certified[_split_sample(image)[0]].append(partial(_contents, file, two))
            yield Held(image, partial(_contents, file, one), partial(_contents, file, two))
    for image, member in waiting.items():
        key, column = _split_sample(image)
        if any(column in _stated_columns(certificate) for certificate in certified.get(key, ())):
            continue
        read = partial(_contents, file, member)
        beside = member.name.endswith(SUFFIX)
        yield Held(image, certificate=read) if beside else Held(image, read)


def held_rows(file: BinaryIO, size: int) -> Iterator[Held]:
    """Yield what a Parquet file of releases holds, row by row; raises `Refused` for any other, and damage."""
    del size
    seen = set[int]()
    for row, path, image, certificate, others in any_rows(file):
        if row is None or not 0 <= row < 10**9:  # the digits of `ROW`
            yield Held("#", problem=f"is a row of the number {row}")
            continue
        name = ROW.format(row)
        if row in seen:
            yield Held(name, problem=TWICE)
        elif path not in (None, name):
            yield Held(name, problem=f"has the path {escape_text(path or '')!r}, which is not its name")
        elif others and not {*others} <= {*_stated_columns(partial(_bounded, certificate or b""))}:
            yield Held(name, problem=f"has other columns than its certificate states, beside {IMAGE}")
        else:
            yield Held(
                name,
                None if image is None else partial(_bounded, image),
                None if certificate is None else partial(_bounded, certificate),
            )
        seen.add(row)


def _contents(file: BinaryIO, member: Member, most: int) -> bytes:
    _check(member.size, most)
    file.seek(member.start)
    return file.read(member.size)


def _bounded(contents: bytes, most: int) -> bytes:
    _check(len(contents), most)
    return contents


def _check(size: int, most: int) -> None:
    if size > most:
        raise Refused(f"has {size:,} bytes, and at most {most:,} are read", COPY_AGAIN)


CHANGED: Final = ("was in a file that has changed since the run began", "run it again")

Release = tuple[str, bytes, bytes]
"""Name, image and certificate."""
Columns = Any
"""What is kept of a file's samples: readers of members by name by key, or of a table with all rows."""


@dataclass(frozen=True)
class Archive:
    """One kind of file.

    `listed` yields what is in a file of so many bytes; `read` returns the contents of a member, if the file
    is still as stamped; `columns` what of its samples is to be kept, by these names; `held` yields what is in
    one of which nothing is known; and `write` writes one, with such columns. `absent` says why a member that
    is not `plain` has no contents. All raise `Refused`; `columns` also `UsageError`, and `write` `OSError`.
    """

    called: str
    absent: str
    listed: Callable[[BinaryIO, int], Iterator[Member]]
    read: Callable[[Path, Stamp, Member], bytes]
    columns: Callable[[Path, Stamp, Sequence[str]], Columns]
    held: Callable[[BinaryIO, int], Iterator[Held]]
    write: Callable[[BinaryIO, Iterable[Release], Columns | None], None]

    def releases(self, file: BinaryIO, size: int, most: int) -> Iterator[Release]:
        """Yield what is in a file of so many bytes, images of at most so many; refuses all but releases."""
        for held in self.held(file, size):
            if held.problem or held.image is None or held.certificate is None:
                problem = held.problem or "has no certificate, or no image"
                raise Refused(f"holds {show_path(held.name)}, which {problem}", "")
            yield held.name, held.image(most), held.certificate(MOST_BYTES)


def archive_of(path: Path) -> Archive | None:
    """Return the kind of file of a path, by its suffix; None if it is none of many photos."""
    return ARCHIVES.get(path.suffix.lower())


@contextmanager
def _open_unchanged(path: Path, stamp: Stamp) -> Iterator[BinaryIO]:
    with opened_url(path, ahead=0) if isinstance(path, Url) else open_untrusted(path) as (file, status):
        if (status.st_size, status.st_mtime_ns) != stamp:
            raise Refused(*CHANGED)
        yield file


def _read_member(path: Path, stamp: Stamp, member: Member) -> bytes:
    with _open_unchanged(path, stamp) as file:
        file.seek(member.start)
        return file.read(member.size)


def _member_columns(path: Path, stamp: Stamp, names: Sequence[str]) -> Columns:
    found = defaultdict[str, dict[str, Callable[[], bytes]]](dict)
    seen, kept = set[str](), list[Member]()
    with _open_unchanged(path, stamp) as file, suppress(Refused):  # of a damaged one, what is before
        for member in members(file, stamp[0]):
            name = member.name.removeprefix("./")
            key, column = _split_sample(name)
            if column in names and member.plain and refusal_of(name) is None:
                found[key][name] = partial(_read_member, path, stamp, member)
                seen.add(column)
                kept.append(member)
        for member in kept:
            file.seek(member.start)
            if _is_picture(file.read(HEAD)) or member.size > MOST_MEMBER:
                problem = f"{show_path(member.name)} is a picture, or has more than {MOST_MEMBER:,} bytes"
                raise UsageError(problem, hint="leave it out of {keep_columns}", arguments=COLUMNS)
    _check_columns(path, names, seen)
    return found


def _is_picture(head: bytes) -> bool:
    """Return whether a file with these first bytes is a picture, a clip or a PDF."""
    name = format_name(head)
    if name in ("BMP", "Netpbm"):  # texts may begin as these do
        return b"\0" in head
    return name is not None or foreign_name(head) not in (None, "an XML file")


def _check_columns(path: Path, names: Sequence[str], there: Collection[str]) -> None:
    """Raise `UsageError` for the name of what no sample of a file has, which may be mistyped."""
    for name in names:
        if name not in there:
            problem = f"{show_path(path)} has no {show_path(name)}"
            hint = "leave it out of {keep_columns}"
            raise UsageError(problem, hint=hint, arguments=COLUMNS)


def _write_members(file: BinaryIO, releases: Iterable[Release], columns: Columns | None) -> None:
    def files() -> Iterator[tuple[str, bytes]]:
        waiting = dict(columns or {})
        for name, image, text in releases:
            yield name, image
            yield f"{name}{SUFFIX}", text
            # several pictures of one sample have its other members once
            yield from ((each, read()) for each, read in waiting.pop(_split_sample(name)[0], {}).items())

    write_tar(file, files())


def _listed_rows(file: BinaryIO, size: int) -> Iterator[Member]:
    for row, image in enumerate(Rows(file)):
        held = image or b""
        yield Member(ROW.format(row), row, len(held), 0, image is not None, sha256(held).digest())


def _read_row(path: Path, stamp: Stamp, member: Member) -> bytes:
    with _open_unchanged(path, stamp):
        image = _rows(path, stamp).at(member.start)
    if image is None or len(image) != member.size:
        raise Refused(*CHANGED)
    return image


@lru_cache(maxsize=2)
def _rows(path: Path, stamp: Stamp) -> Rows:
    """Return the rows of a file, which stays open, as they are read one after another.

    Of two files, so that one may be begun while another is not quite done.
    """
    file, status = _kept_open(path)
    try:
        if (status.st_size, status.st_mtime_ns) != stamp:
            raise Refused(*CHANGED)
        rows = Rows(file)
    except BaseException:
        file.close()
        raise
    finalize(rows, file.close)
    return rows


def _kept_open(path: Path) -> tuple[BinaryIO, os.stat_result | Status]:
    if isinstance(path, Url):
        return start_reading(path)
    file = open(path, "rb", opener=without_blocking)  # noqa: SIM115  closed with the rows
    return file, os.fstat(file.fileno())


def _row_columns(path: Path, stamp: Stamp, names: Sequence[str]) -> Columns:
    with _open_unchanged(path, stamp) as file:
        _check_columns(path, names, column_names(file, names))

    def read() -> Any:
        with _open_unchanged(path, stamp) as file:
            return read_columns(file, names)

    return read


def _write_rows(file: BinaryIO, releases: Iterable[Release], columns: Columns | None) -> None:
    rows = ((int(PurePosixPath(name).stem), name, image, text) for name, image, text in releases)
    write_parquet(file, rows, columns and columns())


ARCHIVES: Final = {
    ".tar": Archive(
        *("shard", LINK, members, _read_member, _member_columns), held=held_members, write=_write_members
    ),
    ".parquet": Archive(
        *("Parquet file", "has no bytes of an image", _listed_rows, _read_row, _row_columns),
        held=held_rows,
        write=_write_rows,
    ),
}
"""Files of many photos, by suffix in lower case."""

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

    def page_numbers(self, count: int) -> list[int]:
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
    return path.suffix.lower() == PDF or (may_be_document(path) and _has_several_pages(path))


def may_be_document(path: Path) -> bool:
    """Whether a PDF can be made of a file, by its suffix."""
    return not isinstance(path, Url) and path.suffix.lower() in TIFFS | {PDF}


def _has_several_pages(path: Path) -> bool:
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
    with open_untrusted(path) as (file, status):
        stamp = (status.st_size, status.st_mtime_ns)
        if status.st_size > MOST_FILE:
            raise Refused(f"has {status.st_size:,} bytes, and at most {MOST_FILE:,} are read", "split it")
        whole = digest(file)
    count = _open_document(path, stamp).pages
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
        for number in scan.page_numbers(count)
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
    found = _open_document(path, stamp).draw(member.start - 1, dpi, max_pixels)
    return Photo(found.levels, found.grid, found.notes)


@lru_cache(maxsize=2)
def _open_document(path: Path, stamp: Stamp) -> Document:
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
    def kind_name(self) -> str:
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
        return self.folder / f"{_hash(name)}{PurePosixPath(name).suffix}"


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
        name, shard = show_path(self.source), self.shard
        if shard.scan is None or self.problem:
            return read_bytes(self.contents(most_bytes(max_pixels)), name, max_pixels=max_pixels)
        try:
            return read_page(shard.path, shard.stamp, self.member, shard.scan.dpi, name, max_pixels)
        except Refused as refusal:
            raise self._refusal_error(refusal) from None

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
            raise self._refusal_error(refusal) from None

    def _refusal_error(self, refusal: Refused) -> PhotoError:
        text = f"{show_path(self.source)} {refusal.problem}"
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


def photos_in_shard(path: Path, target: Path, root: Path) -> list[Inside]:
    """Return the photos in the shard at `path`, in its order, whose releases are for the shard `target`.

    Left out are hidden files, files without the suffix of a picture or video, and releases with their
    certificates. What cannot be read has its `problem`, and so has a shard from where it is damaged. Writes
    nothing.
    """
    found, damage = list[Member](), None
    shard = Shard(path, (0, 0), target, root)
    try:
        with open_untrusted(path) as (file, status):
            shard = Shard(path, (status.st_size, status.st_mtime_ns), target, root)
            for member in shard.archive.listed(file, status.st_size):
                found.append(member)
    except Refused as refusal:
        rest = ", and what follows in it is not released" if found else ""
        damage = Refused(f"{refusal.problem}{rest}", refusal.remedy)
    photos = list(_name_releases(shard, list(_photos(found, shard.archive.absent))))
    if damage is not None:
        photos.append(_problem_entry(shard, Member("", 0, 0, 0, plain=False), "", "#", damage))
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
        if suffix in PICTURES and not own and not hidden:
            unnamed = refusal_of(name, seen)
            problem = unnamed or (None if member.plain else Refused(absent, COPY_AGAIN))
            yield number, "" if unnamed else name, member, problem
            seen.add(name)


def _name_releases(shard: Shard, photos: list[tuple[int, str, Member, Refused | None]]) -> Iterator[Inside]:
    """Yield the photos with the names of their releases: a.jpg for a.jpg, and a.png for a.heic, or a.heic.png
    if several have it.
    """
    plain = [name for _, name, _, problem in photos if problem is None]
    many = Counter(map(_short, plain))
    full = {name: f"{name}{released_suffix(name)}" for name in plain}
    chosen = {n: _short(n) if _short(n) == n or many[_short(n)] == 1 else full[n] for n in plain}
    taken = Counter(chosen.values())
    for number, name, member, problem in photos:
        if problem is None and taken[chosen[name]] > 1:
            problem = Refused(f"would be called {chosen[name]}, as another", RENAME)
        if problem is not None:
            yield _problem_entry(shard, member, name or f"#{number}", f"#{number}", problem)
            continue
        others = {_short(name), full[name]} - taken.keys()
        yield Inside(shard, member, name, chosen[name], tuple(others))


def _problem_entry(shard: Shard, member: Member, label: str, name: str, why: Refused) -> Inside:
    return Inside(shard, member, label, name, problem=why.problem, remedy=why.remedy)


def _short(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(released_suffix(name)))


def _hash(name: str) -> str:
    return hashlib.blake2b(os.fsencode(name), digest_size=16, person=b"dpveil.shard").hexdigest()

"""Photos inside of archives: what lies in a shard, Parquet file or document, and where releases of it wait.

Releases are gathered in a hidden folder beside the shard that is to be written, where all is as in a run over
folders. Its files are named by hashes, as names in a shard come from anyone and never become paths.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from weakref import finalize

from dpveil.batch.state import Stamp, name_hash, stage_of
from dpveil.core.certificate import Certificate
from dpveil.core.photo import Photo
from dpveil.core.urls import Url
from dpveil.errors import CertificateError, InvalidParameter, UsageError
from dpveil.io.folders import PDF, STAGE, UNWRITTEN
from dpveil.io.names import FORMATS, escape_text, released_suffix, show_path
from dpveil.io.reading import most_bytes, photo_error, read_bytes
from dpveil.io.screening import foreign_name, format_name
from dpveil.io.unreadable import COPY_AGAIN, Refused
from dpveil.io.untrusted_files import open_untrusted, too_large, without_blocking
from dpveil.io.urls import opened_url, start_reading
from dpveil.release.saving import SUFFIX, Read, certificate_from

if TYPE_CHECKING:
    from dpveil.io.document import Document
    from dpveil.io.parquet import Rows

COLUMNS: Final = {"keep_columns": "columns"}  # an argument of errors
LONGEST_NAME: Final = 230
"""Most bytes of a photo's name in a shard, so that its release, and the certificate, can be unpacked."""
LONGEST_RELEASE: Final = LONGEST_NAME + len(".png")
"""The same of a release's name, which may be that of its photo and more."""
ROW: Final = "{:09}.png"  # what the release of a row is called; the first row is 0
LINK: Final = "is a link, a device or sparse, and no file"
LATEST: Final = (1 << 33) - 1  # latest time in seconds, as octal digits have it; later ones are told as this
TWICE: Final = "has the name of another before it"
CHANGED: Final = ("was in a file that has changed since the run began", "run it again")
PICTURES: Final = UNWRITTEN.union(FORMATS)
HEAD_BYTES: Final = 64  # first bytes of a member by which a picture is recognised
MEMBER_BYTES: Final = 1 << 26  # most bytes of a member that goes along with a release


def refusal_of(name: str, seen: Collection[str] = (), *, longest: int = LONGEST_NAME) -> Refused | None:
    """Return what is wrong with a name in a file, if anything; `seen` are those before it.

    It has at most so many bytes.
    """
    remedy = "give it a plain name"
    if not name.isprintable() or len(name.encode("utf-8", "replace")) > longest or "\\" in name:
        return Refused(f"is called {escape_text(name)!r}, which is no plain name", remedy)
    if any(part in ("", ".", "..") for part in name.split("/")):
        return Refused(f"is called {name!r}, which leads elsewhere", remedy)
    return Refused(f"is called {name!r}, as another before it", remedy) if name in seen else None


def release_names(photos: Iterable[PurePath], format_: str | None = None) -> dict[PurePath, PurePath]:
    """Return the names of releases: a.jpg of a.jpg, a.png of a.heic, or a.heic.png if that collides."""

    def key(
        path: PurePath,
    ) -> str:  # as a disk compares it that ignores case and normalisation (Unicode, D145)
        folded = unicodedata.normalize("NFD", path.as_posix()).casefold()
        return unicodedata.normalize("NFD", folded)

    full = {name: name.with_name(f"{name.name}{released_suffix(name, format_)}") for name in photos}
    names = {name: name.with_suffix(released_suffix(name, format_)) for name in full}
    while True:
        many = Counter(map(key, names.values()))
        many.update({key(parent) for name in names.values() for parent in name.parents})
        alike = [given for given, name in names.items() if many[key(name)] > 1 and name != full[given]]
        changed = [given for given in alike if names[given] != given] or alike  # its own name stays a photo's
        if not changed:
            return names
        names |= {given: full[given] for given in changed}


def parse_columns(text: str | None) -> tuple[str, ...]:
    """Return what is kept of samples by an option such as "txt,label": suffixes of members, or columns.

    Pictures are released, and never kept: `InvalidParameter`.

    >>> parse_columns("txt, label")
    ('label', 'txt')
    """
    if not text:
        return ()
    from dpveil.io.parquet import CERTIFICATE, IMAGE, ROW

    names = sorted({part.strip() for part in text.split(",")} - {""})
    for name in names:
        own = name in (IMAGE, CERTIFICATE, ROW) or f".{name}".endswith(SUFFIX)
        if own or "/" in name or PurePosixPath(f"a.{name}").suffix.lower() in PICTURES:
            hint = "name suffixes of other files in a shard, such as txt, or other columns"
            raise InvalidParameter("keep_columns", name, "is that of a release", hint=hint)
    return tuple(names)


@dataclass(frozen=True)
class Member:
    """A file in an archive: `size` bytes from byte `start`; `time` is in seconds.

    One that is not `plain` is no file; a `folder` has no contents. Of a row or page, `start` is its number,
    and `digest` stands for its contents.
    """

    name: str
    start: int
    size: int
    time: int
    plain: bool
    digest: bytes = b""
    folder: bool = False


@dataclass(frozen=True)
class FoundRelease:
    """An image with the `name` and its certificate; one is None where it is not there.

    `problem` says why they are not looked at, if so.
    """

    name: str
    image: Read | None = None
    certificate: Read | None = None
    problem: str = ""


Release = tuple[str, bytes, bytes]
"""Name, image and certificate."""
Columns = Any
"""What is kept of a file's samples: readers of members by name by key, or of a table with all rows."""


class Tar:
    """WebDataset shards: a sample is the members whose names are equal up to the first dot.

    `absent` says why a member that is not `plain` has no contents. All methods raise `Refused` for what
    cannot be read; `columns` also `UsageError` for names of what may not be kept.
    """

    called, absent = "shard", LINK

    def members(self, file: BinaryIO, size: int) -> Iterator[Member]:
        """Yield the members in their order, of which no contents are read, up to where it is damaged."""
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                while (found := archive.next()) is not None:
                    archive.members.clear()  # type: ignore[attr-defined]  # which would grow with each one
                    length = found.size if found.isreg() else 0
                    if found.size < 0 or found.offset_data + length > size:
                        raise Refused("ends early", COPY_AGAIN)
                    sparse = found.sparse is not None or "GNU.sparse" in str(found.pax_headers.keys())
                    time, plain = int(max(0, min(found.mtime, LATEST))), found.isreg() and not sparse
                    yield Member(found.name, found.offset_data, length, time, plain, folder=found.isdir())
                file.seek(archive.offset)
                if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile stops at damage, too
                    raise Refused("is damaged, or ends early", COPY_AGAIN)
        except (Refused, OSError):
            raise
        except Exception as error:  # a hostile file ends in errors of many kinds
            problem = "is damaged, ends early, or is not a .tar without compression"
            raise Refused(problem, COPY_AGAIN) from error

    def read(self, path: Path, stamp: Stamp, member: Member) -> bytes:
        with _open_unchanged(path, stamp) as file:
            file.seek(member.start)
            return file.read(member.size)

    def columns(self, path: Path, stamp: Stamp, names: Sequence[str]) -> Columns:
        """Return readers of the members with these suffixes, by their names, by the keys of samples."""
        found = defaultdict[str, dict[str, Callable[[], bytes]]](dict)
        seen, kept = set[str](), list[Member]()
        with _open_unchanged(path, stamp) as file, suppress(Refused):  # of a damaged one, what is before
            for member in self.members(file, stamp[0]):
                name = member.name.removeprefix("./")
                key, column = _split_sample(name)
                if column in names and member.plain and refusal_of(name) is None:
                    found[key][name] = partial(self.read, path, stamp, member)
                    seen.add(column)
                    kept.append(member)
            for member in kept:
                file.seek(member.start)
                name = format_name(head := file.read(HEAD_BYTES)) or foreign_name(head) or ""
                text = name in ("BMP", "Netpbm") and b"\0" not in head  # which may begin as these do
                picture = name not in ("", "an XML file") and not text
                if picture or member.size > MEMBER_BYTES:
                    problem = (
                        f"{show_path(member.name)} is a picture, or has more than {MEMBER_BYTES:,} bytes"
                    )
                    raise UsageError(problem, hint="leave it out of {keep_columns}", arguments=COLUMNS)
        _check_columns(path, names, seen)
        return found

    def held(self, file: BinaryIO, size: int) -> Iterator[FoundRelease]:
        """Yield each image with its certificate as soon as both are known, and then what lacks its other."""
        seen, waiting = set[str](), dict[str, Member]()
        certified = defaultdict[str, list[Read]](list)
        for member in self.members(file, size):
            name = member.name.removeprefix("./")
            if member.folder:
                continue
            image = name.removesuffix(SUFFIX)
            unnamed = refusal_of(image, longest=LONGEST_RELEASE)
            problem = unnamed.problem if unnamed else TWICE if name in seen else "" if member.plain else LINK
            seen.add(name)
            if problem:
                yield FoundRelease(name, problem=problem)
            elif (other := waiting.pop(image, None)) is None:
                waiting[image] = member
            else:
                one, two = (other, member) if image != name else (member, other)
                certified[_split_sample(image)[0]].append(partial(_contents, file, two))
                yield FoundRelease(image, partial(_contents, file, one), partial(_contents, file, two))
        for image, member in waiting.items():
            key, column = _split_sample(image)
            if not any(column in _stated_columns(certificate) for certificate in certified.get(key, ())):
                read = partial(_contents, file, member)
                beside = member.name.endswith(SUFFIX)
                yield FoundRelease(image, certificate=read) if beside else FoundRelease(image, read)

    def write(self, file: BinaryIO, releases: Iterable[Release], columns: Columns | None) -> None:
        """Write releases, each image before its certificate and the members that are kept of its sample."""
        waiting = dict(columns or {})
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as made:
            for name, image, text in releases:
                # several pictures of one sample have its other members once
                kept = waiting.pop(_split_sample(name)[0], {}).items()
                own = ((name, image), (f"{name}{SUFFIX}", text))
                for each, contents in chain(own, ((other, read()) for other, read in kept)):
                    member = tarfile.TarInfo(each)  # which states nothing else of it
                    member.size = len(contents)
                    made.addfile(member, BytesIO(contents))


class Parquet:
    """Parquet files with a column of images; the release of a row is called by its number."""

    called, absent = "Parquet file", "has no bytes of an image"

    def members(self, file: BinaryIO, size: int) -> Iterator[Member]:
        from dpveil.io.parquet import Rows

        for row, image in enumerate(Rows(file)):
            held = image or b""
            yield Member(ROW.format(row), row, len(held), 0, image is not None, sha256(held).digest())

    def read(self, path: Path, stamp: Stamp, member: Member) -> bytes:
        with _open_unchanged(path, stamp):
            image = _rows(path, stamp).at(member.start)
        if image is None or len(image) != member.size:
            raise Refused(*CHANGED)
        return image

    def columns(self, path: Path, stamp: Stamp, names: Sequence[str]) -> Columns:
        from dpveil.io.parquet import column_names, read_columns

        with _open_unchanged(path, stamp) as file:
            _check_columns(path, names, column_names(file, names))

        def read() -> Any:
            with _open_unchanged(path, stamp) as file:
                return read_columns(file, names)

        return read

    def held(self, file: BinaryIO, size: int) -> Iterator[FoundRelease]:
        """Yield the rows; raises `Refused` for any file that is none of releases."""
        from dpveil.io.parquet import IMAGE, any_rows

        seen = set[int]()
        for row, path, image, certificate, others in any_rows(file):
            if row is None or not 0 <= row < 10**9:  # the digits of `ROW`
                yield FoundRelease("#", problem=f"is a row of the number {row}")
                continue
            name = ROW.format(row)
            if row in seen:
                yield FoundRelease(name, problem=TWICE)
            elif path not in (None, name):
                problem = f"has the path {escape_text(path or '')!r}, which is not its name"
                yield FoundRelease(name, problem=problem)
            elif others and not {*others} <= {*_stated_columns(partial(_within_limit, certificate or b""))}:
                yield FoundRelease(
                    name, problem=f"has other columns than its certificate states, beside {IMAGE}"
                )
            else:
                first = None if image is None else partial(_within_limit, image)
                yield FoundRelease(
                    name, first, None if certificate is None else partial(_within_limit, certificate)
                )
            seen.add(row)

    def write(self, file: BinaryIO, releases: Iterable[Release], columns: Columns | None) -> None:
        from dpveil.io.parquet import write_parquet

        rows = ((int(PurePosixPath(name).stem), name, image, text) for name, image, text in releases)
        write_parquet(file, rows, columns and columns())


Archive = Tar | Parquet
ARCHIVES: Final[dict[str, Archive]] = {".tar": Tar(), ".parquet": Parquet()}
"""Files of many photos, by suffix in lower case."""


def archive_of(path: Path) -> Archive | None:
    """Return the kind of file of a path, by its suffix; None if it is none of many photos."""
    return ARCHIVES.get(path.suffix.lower())


def _split_sample(name: str) -> tuple[str, str]:
    """Return the key and the suffix of a sample's member: up to the first dot, as WebDataset has it."""
    folder, slash, last = name.rpartition("/")
    stem, _, column = last.partition(".")
    return f"{folder}{slash}{stem}", column


def _stated_columns(read: Read) -> tuple[str, ...]:
    try:
        return certificate_from(read, Certificate).columns
    except CertificateError:  # whoever verifies the release says what is wrong
        return ()


def _contents(file: BinaryIO, member: Member, most: int) -> bytes:
    if member.size > most:
        raise too_large(member.size, most)
    file.seek(member.start)
    return file.read(member.size)


def _within_limit(contents: bytes, most: int) -> bytes:
    if len(contents) > most:
        raise too_large(len(contents), most)
    return contents


@contextmanager
def _open_unchanged(path: Path, stamp: Stamp) -> Iterator[BinaryIO]:
    with opened_url(path, ahead=0) if isinstance(path, Url) else open_untrusted(path) as (file, status):
        if (status.st_size, status.st_mtime_ns) != stamp:
            raise Refused(*CHANGED)
        yield file


def _check_columns(path: Path, names: Sequence[str], there: Collection[str]) -> None:
    """Raise `UsageError` for the name of what no sample of a file has, which may be mistyped."""
    for name in names:
        if name not in there:
            problem = f"{show_path(path)} has no {show_path(name)}"
            raise UsageError(problem, hint="leave it out of {keep_columns}", arguments=COLUMNS)


@lru_cache(maxsize=2)
def _rows(path: Path, stamp: Stamp) -> Rows:
    from dpveil.io.parquet import Rows

    # The file stays open, as rows are read one after another; two, as the next is begun before one is done.
    if isinstance(path, Url):
        file, _ = start_reading(path)
    else:
        file = open(path, "rb", opener=without_blocking)  # noqa: SIM115  closed with the rows
    try:
        rows = Rows(file)
    except BaseException:
        file.close()
        raise
    finalize(rows, file.close)
    return rows


TIFFS: Final = frozenset({".tif", ".tiff"})
FILE_BYTES: Final = 1 << 30  # largest document in bytes
USUAL_DPI: Final = 200  # pixels per inch
RANGE: Final = re.compile(r"([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?")


@dataclass(frozen=True)
class PageSettings:
    """How documents are read: pixels per inch, and which `pages`, as pairs of the first and the last.

    All are read if there are no pairs. Raises `InvalidParameter`.
    """

    dpi: int = USUAL_DPI
    pages: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.dpi == USUAL_DPI:
            return
        from dpveil.io.document import DPI

        if self.dpi not in DPI:
            raise InvalidParameter("dpi", self.dpi, f"is not from {DPI[0]} to {DPI[-1]}")

    @classmethod
    def of(cls, dpi: int | None, pages: str | None) -> PageSettings:
        """Return it for options, of which both may be left out; `pages` is such as "1-3,7".

        >>> PageSettings.of(None, "1-3,7").pages
        ((1, 3), (7, 7))
        """
        if not pages:
            return cls(cls.dpi if dpi is None else dpi)
        from dpveil.release.document_certificate import MOST_PAGES

        parts = [RANGE.fullmatch(part.strip()) for part in pages.split(",")]
        pairs = [(int(part[1]), int(part[2] or part[1])) for part in parts if part is not None]
        if len(pairs) < len(parts) or any(first > last for first, last in pairs) or len(pairs) > MOST_PAGES:
            raise InvalidParameter("pages", pages, "names no pages", hint="write such as 1-3,7")
        return cls(cls.dpi if dpi is None else dpi, tuple(pairs))

    def page_numbers(self, count: int) -> list[int]:
        """Return the numbers of the chosen pages of so many, in their order; raises `Refused`."""
        from dpveil.release.document_certificate import MOST_PAGES

        wrong = next((last for _, last in self.pages if last > count), None)
        if wrong is not None:
            raise Refused(f"has no page {wrong:,}, but {count:,}", "name pages that it has")
        pairs = self.pages or ((1, count),)
        if sum(last - first + 1 for first, last in pairs) > MOST_PAGES:
            raise Refused(f"has more than {MOST_PAGES:,} pages", "name fewer pages at a time")
        return sorted({number for first, last in pairs for number in range(first, last + 1)})


ALL: Final = PageSettings()  # all pages, in the usual resolution


def may_be_document(path: Path) -> bool:
    """Whether a PDF can be made of a file, by its suffix. No object by URL is one."""
    return not isinstance(path, Url) and path.suffix.lower() in TIFFS | {PDF}


def is_document(path: Path) -> bool:
    """Whether a file is one of pages: a PDF, by its suffix, or a TIFF of several."""
    if not may_be_document(path) or path.suffix.lower() == PDF:
        return may_be_document(path)
    from dpveil.io.document import Document

    try:
        status = path.stat()
        return Document(path, (status.st_size, status.st_mtime_ns)).pages > 1
    except (OSError, Refused):
        return False  # reading it tells what is wrong


@lru_cache(maxsize=2)
def _open_document(path: Path, stamp: Stamp) -> Document:
    from dpveil.io.document import Document

    return Document(path, stamp)


@dataclass(frozen=True)
class Shard:
    """A WebDataset shard, Parquet file or document: its `path` and stamp, and the `target` to be written.

    The `root` is the folder of all outputs. Of a document, `scan` says how it is read.
    """

    path: Path
    stamp: Stamp
    target: Path
    root: Path
    scan: PageSettings | None = None

    @property
    def archive(self) -> Archive:
        """Its kind, by the suffix, unless it is a document."""
        return ARCHIVES[self.path.suffix.lower()]

    @property
    def stage(self) -> Path:
        return (stage_of(self.root) if isinstance(self.root, Url) else self.root) / STAGE

    @property
    def folder(self) -> Path:
        return self.stage / name_hash(self.target.relative_to(self.root).as_posix(), b"dpveil.shard")

    def place(self, name: str) -> Path:
        return self.folder / f"{name_hash(name, b'dpveil.shard')}{PurePosixPath(name).suffix}"


NOTHING: Final = Member("", 0, 0, 0, plain=False)


@dataclass(frozen=True)
class ArchivedPhoto:
    """A photo in a shard, and the `name` of its release in the target.

    `problem` says why it is not read, if so, and `remedy` what helps.
    """

    shard: Shard
    member: Member
    label: str
    name: str
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
    def stamp(self) -> Stamp | None:
        """Size, and the time that the shard states for it, which stays when others are added.

        Of a row, which has no time, a number of 63 bits by its bytes.
        """
        member = self.member
        digest = hashlib.blake2b(member.digest, digest_size=8, person=b"dpveil.row")
        time = int.from_bytes(digest.digest()) >> 1 if member.digest else member.time * 10**9
        return None if self.problem else (member.size, time)

    def read(self, max_pixels: int) -> Photo:
        """Return the photo; raises `PhotoError`, also if the shard has changed.

        A page is always in colour if it is drawn, as its colours may be what is protected.
        """
        shard, member, most = self.shard, self.member, most_bytes(max_pixels)
        try:
            if self.problem:
                raise Refused(self.problem, self.remedy)
            if shard.scan is not None:
                document = _open_document(shard.path, shard.stamp)
                return document.draw(member.start - 1, shard.scan.dpi, max_pixels)
            if member.size > most:
                problem = f"has {member.size:,} bytes, more than any photo within the limit of pixels"
                raise Refused(problem, "raise {max_pixels} if it is a photo", {"max_pixels": "max_pixels"})
            contents = shard.archive.read(shard.path, shard.stamp, member)
        except Refused as refusal:
            raise photo_error(self.source, refusal) from None
        return read_bytes(contents, show_path(self.source), max_pixels=max_pixels)


def pages_inside(path: Path, target: Path, root: Path, scan: PageSettings) -> list[ArchivedPhoto]:
    """Return a document's pages in order, for the PDF `target`; if unreadable, one with its `problem`."""
    from dpveil.release.document_certificate import page_name

    try:
        with open_untrusted(path) as (file, status):
            stamp = (status.st_size, status.st_mtime_ns)
            if status.st_size > FILE_BYTES:
                raise Refused(
                    f"has {status.st_size:,} bytes, and at most {FILE_BYTES:,} are read", "split it"
                )
            whole = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
        count = _open_document(path, stamp).pages
        if count < 1:
            raise Refused("has no pages", "get an intact copy")
        numbers = scan.page_numbers(count)
    except Refused as refusal:
        shard = Shard(path, (0, 0), target, root, scan)
        return [ArchivedPhoto(shard, NOTHING, "", "#", refusal.problem, refusal.remedy)]
    shard, inside = Shard(path, stamp, target, root, scan), []
    for number in numbers:
        name = page_name(number)
        # what stands for the page: the document's bytes, the resolution, and its number
        digest = sha256(b"%s %d %d" % (whole, scan.dpi, number)).digest()
        page = Member(name, number, 1 + stamp[0] // count, 0, plain=True, digest=digest)
        inside.append(ArchivedPhoto(shard, page, PurePosixPath(name).stem, name))
    return inside


def photos_in_shard(path: Path, target: Path, root: Path) -> list[ArchivedPhoto]:
    """Return the photos in the shard at `path`, in its order, whose releases are for the shard `target`.

    Left out are hidden files, files without the suffix of a picture or video, and releases with their
    certificates. What cannot be read has its `problem`, as a shard from where it is damaged. Writes nothing.
    """
    found, damage = list[Member](), None
    shard = Shard(path, (0, 0), target, root)
    try:
        with open_untrusted(path) as (file, status):
            shard = Shard(path, (status.st_size, status.st_mtime_ns), target, root)
            for member in shard.archive.members(file, status.st_size):
                found.append(member)
    except Refused as refusal:
        damage = refusal
    every = {member.name.removeprefix("./") for member in found}
    photos, names = list[ArchivedPhoto](), set[str]()
    for number, member in enumerate(found, 1):
        name = member.name.removeprefix("./")
        own = name.endswith(SUFFIX) or f"{name}{SUFFIX}" in every
        hidden = any(part[:1] == "." and part not in (".", "..") for part in name.split("/"))
        if own or hidden or PurePosixPath(name).suffix.lower() not in PICTURES:
            continue
        if unnamed := refusal_of(name, names):
            photos.append(
                ArchivedPhoto(shard, member, f"#{number}", f"#{number}", unnamed.problem, unnamed.remedy)
            )
        elif not member.plain:
            photos.append(ArchivedPhoto(shard, member, name, f"#{number}", shard.archive.absent, COPY_AGAIN))
        else:
            photos.append(ArchivedPhoto(shard, member, name, name))
        names.add(name)
    released = release_names(PurePosixPath(photo.name) for photo in photos if not photo.problem)
    photos = [
        photo if photo.problem else replace(photo, name=str(released[PurePosixPath(photo.name)]))
        for photo in photos
    ]
    if damage is not None:
        rest = ", and what follows in it is not released" if found else ""
        photos.append(ArchivedPhoto(shard, NOTHING, "", "#", f"{damage.problem}{rest}", damage.remedy))
    return photos

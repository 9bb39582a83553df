"""Files of many photos, in one table: how photos are found and read in each, and how releases are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b, sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final
from weakref import finalize

from dpveil.batch.state import Stamp
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Status, Url
from dpveil.io.names import quoted
from dpveil.io.parquet import MOST_ROWS, Rows, any_rows, released_rows, write_parquet
from dpveil.io.received import opened, without_blocking
from dpveil.io.refused import COPY_AGAIN, Refused
from dpveil.io.tar import Member, members, write_tar
from dpveil.io.urls import opened_url, start_reading
from dpveil.release.pair import Read
from dpveil.release.saving import SUFFIX

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
        return Refused(f"is called {quoted(name)!r}, which is no plain name", RENAME)
    if any(part in ("", ".", "..") for part in parts):
        return Refused(f"is called {name!r}, which leads elsewhere", RENAME)
    if name in seen:
        return Refused(f"is called {name!r}, as another before it", "name it otherwise")
    return None


MOST_WAITING: Final = 1 << 16
"""Most images of a shard at a time whose certificates come later, and the other way round."""
TWICE: Final = "has the name of another before it"


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

    Memory is about 100 bytes for each member. Raises `Refused` where it is damaged; of what waits for its
    other part then, nothing is said.
    """
    seen = set[bytes]()
    waiting = dict[str, Member]()
    for member in members(file, size):
        name = member.name.removeprefix("./")
        if member.folder:
            continue
        short = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        problem = _problem(member, name, twice=short in seen)
        seen.add(short)
        image = name.removesuffix(SUFFIX)
        if problem:
            yield Held(name, problem=problem)
        elif (other := waiting.pop(image, None)) is None:
            waiting[image] = member
            if len(waiting) > MOST_WAITING:
                problem = f"has more than {MOST_WAITING:,} images whose certificates do not follow"
                raise Refused(problem, "pack each certificate after its image")
        else:
            one, two = (other, member) if image != name else (member, other)
            yield Held(image, partial(_contents, file, one), partial(_contents, file, two))
    for image, member in waiting.items():
        read = partial(_contents, file, member)
        beside = member.name.endswith(SUFFIX)
        yield Held(image, certificate=read) if beside else Held(image, read)


def held_rows(file: BinaryIO, size: int) -> Iterator[Held]:
    """Yield what a Parquet file of releases holds, row by row; raises `Refused` for any other, and damage."""
    del size
    seen = set[int]()
    for row, path, image, certificate in any_rows(file):
        if row is None or not 0 <= row < MOST_ROWS:
            yield Held("#", problem=f"is a row of the number {row}")
            continue
        name = ROW.format(row)
        if row in seen:
            yield Held(name, problem=TWICE)
        elif path not in (None, name):
            yield Held(name, problem=f"has the path {quoted(path or '')!r}, which is not its name")
        else:
            yield Held(name, _bounded(image), _bounded(certificate))
        seen.add(row)


def _problem(member: Member, name: str, *, twice: bool) -> str:
    if (reason := refusal_of(name.removesuffix(SUFFIX), longest=LONGEST_RELEASE)) is not None:
        return reason.problem
    return TWICE if twice else "" if member.plain else LINK


def _contents(file: BinaryIO, member: Member, most: int) -> bytes:
    _check(member.size, most)
    file.seek(member.start)
    return file.read(member.size)


def _bounded(contents: bytes | None) -> Read | None:
    return None if contents is None else partial(_within, contents)


def _within(contents: bytes, most: int) -> bytes:
    _check(len(contents), most)
    return contents


def _check(size: int, most: int) -> None:
    if size > most:
        raise Refused(f"has {size:,} bytes, and at most {most:,} are read", COPY_AGAIN)


CHANGED: Final = ("was in a file that has changed since the run began", "run it again")

Release = tuple[str, bytes, bytes]
"""Name, image and certificate."""


@dataclass(frozen=True)
class Archive:
    """One kind of file.

    `listed` yields what is in a file of so many bytes; `read` returns the contents of a member, if the file
    is still as stamped; `releases` yields what is in a file of releases of so many bytes, none of which has
    an image of more than so many; `held` yields what is in one of which nothing is known; and `write` writes
    one. `absent` says why a member that is not `plain` has no contents. All raise `Refused`, but for `write`,
    which raises `OSError`.
    """

    called: str
    absent: str
    listed: Callable[[BinaryIO, int], Iterator[Member]]
    read: Callable[[Path, Stamp, Member], bytes]
    releases: Callable[[BinaryIO, int, int], Iterator[Release]]
    held: Callable[[BinaryIO, int], Iterator[Held]]
    write: Callable[[BinaryIO, Iterable[Release]], None]


def archive_of(path: Path) -> Archive | None:
    """Return the kind of file of a path, by its suffix; None if it is none of many photos."""
    return ARCHIVES.get(path.suffix.lower())


@contextmanager
def _unchanged(path: Path, stamp: Stamp) -> Iterator[BinaryIO]:
    with opened_url(path, ahead=0) if isinstance(path, Url) else opened(path) as (file, status):
        if (status.st_size, status.st_mtime_ns) != stamp:
            raise Refused(*CHANGED)
        yield file


def _read_member(path: Path, stamp: Stamp, member: Member) -> bytes:
    with _unchanged(path, stamp) as file:
        file.seek(member.start)
        return file.read(member.size)


def _released_members(file: BinaryIO, size: int, most: int) -> Iterator[Release]:
    """Yield the releases in a shard; raises `Refused` before the first if it holds anything else."""
    found = list(members(file, size))
    by_name = {member.name: member for member in found}
    images = [member for member in found if not member.name.endswith(SUFFIX)]
    for member in images:
        beside = by_name.get(f"{member.name}{SUFFIX}")
        if beside is None or not member.name.endswith(".png"):
            raise Refused("holds a file without a certificate", "")
        if (reason := refusal_of(member.name, longest=LONGEST_RELEASE)) is not None:
            raise Refused(f"holds a release that {reason.problem}", "")
        if not (member.plain and beside.plain) or member.size > most or beside.size > MOST_BYTES:
            raise Refused("holds a release that is too large, or no file", "")
    if len(by_name) != len(found) or len(found) != 2 * len(images):
        raise Refused("holds a name twice, or a certificate without its release", "")

    def contents(member: Member) -> bytes:
        file.seek(member.start)
        return file.read(member.size)

    return ((each.name, contents(each), contents(by_name[f"{each.name}{SUFFIX}"])) for each in images)


def _write_members(file: BinaryIO, releases: Iterable[Release]) -> None:
    write_tar(
        file,
        (pair for name, image, text in releases for pair in ((name, image), (f"{name}{SUFFIX}", text))),
    )


def _listed_rows(file: BinaryIO, size: int) -> Iterator[Member]:
    for row, image in enumerate(Rows(file)):
        held = image or b""
        yield Member(ROW.format(row), row, len(held), 0, image is not None, sha256(held).digest())


def _read_row(path: Path, stamp: Stamp, member: Member) -> bytes:
    with _unchanged(path, stamp):
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


def _released_rows(file: BinaryIO, size: int, most: int) -> Iterator[Release]:
    return ((ROW.format(row), image, text) for row, image, text in released_rows(file, most, MOST_BYTES))


def _write_rows(file: BinaryIO, releases: Iterable[Release]) -> None:
    write_parquet(
        file, ((int(PurePosixPath(name).stem), name, image, text) for name, image, text in releases)
    )


ARCHIVES: Final = {
    ".tar": Archive(
        *("shard", LINK, members, _read_member, _released_members), held=held_members, write=_write_members
    ),
    ".parquet": Archive(
        *("Parquet file", "has no bytes of an image", _listed_rows, _read_row, _released_rows),
        held=held_rows,
        write=_write_rows,
    ),
}
"""Files of many photos, by suffix in lower case."""

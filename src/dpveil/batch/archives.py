"""Files of many photos, in one table: how photos are found and read in each, and how releases are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final
from weakref import finalize

from dpveil.batch.held import Held, held_members, held_rows
from dpveil.batch.labels import LINK, LONGEST_RELEASE, ROW, refusal_of
from dpveil.batch.state import Stamp
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Status, Url
from dpveil.io.parquet import Rows, released_rows, write_parquet
from dpveil.io.received import opened, without_blocking
from dpveil.io.refused import Refused
from dpveil.io.tar import Member, members, write_tar
from dpveil.io.urls import opened_url, start_reading
from dpveil.release.saving import SUFFIX

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

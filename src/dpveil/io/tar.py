"""Writing .tar files, and listing those from anyone, of which no name becomes a path."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.errors import PhotoError
from dpveil.io.names import show_path
from dpveil.io.unreadable import COPY_AGAIN, Refused

LATEST: Final = (1 << 33) - 1  # latest time in seconds, as octal digits have it; later ones are told as this


@dataclass(frozen=True)
class Member:
    """One member: `size` bytes from byte `start`; `time` is in seconds, and `plain` whether it is a file.

    A `folder` has no contents. Of a row in another format, `start` is its number, and `digest` the SHA-256 of
    its bytes, if it is known.
    """

    name: str
    start: int
    size: int
    time: int
    plain: bool
    digest: bytes = b""
    folder: bool = False


def members(file: BinaryIO, size: int) -> Iterator[Member]:
    """Yield the members of a .tar of `size` bytes in their order, of which no contents are read.

    Raises `Refused` where it is damaged or ends early, after the members before.
    """
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            while (found := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # which would grow with every member
                if found.size < 0 or found.offset_data + found.size * found.isreg() > size:
                    raise Refused("ends early", COPY_AGAIN)
                yield _member(found)
            file.seek(archive.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile stops at damage, too
                raise Refused("is damaged, or ends early", COPY_AGAIN)
    except (Refused, OSError):
        raise
    except Exception as error:  # a hostile file ends in errors of many kinds
        problem = "is damaged, ends early, or is not a .tar without compression"
        raise Refused(problem, COPY_AGAIN) from error


def _member(found: tarfile.TarInfo) -> Member:
    sparse = found.sparse is not None or any(key.startswith("GNU.sparse") for key in found.pax_headers)
    plain = found.isreg() and not sparse
    size = found.size if found.isreg() else 0
    time = int(min(found.mtime, LATEST)) if found.mtime >= 0 else 0
    return Member(found.name, found.offset_data, size, time, plain, folder=found.isdir())


def write_tar(file: BinaryIO, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a .tar of files by names and contents, which states nothing else of them; raises `OSError`."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, contents in files:
            told = tarfile.TarInfo(name)
            told.size = len(contents)
            made.addfile(told, BytesIO(contents))


SHARD: Final = ".tar"
LARGEST: Final = 1 << 26  # largest file inside a shard, in bytes


@contextmanager
def open_shard(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a .tar to read all of its members; raises `PhotoError` if it is damaged or truncated."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            yield shard
            file.seek(shard.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile ignores a missing end
                raise tarfile.ReadError("it ends early")
    except (OSError, tarfile.TarError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise PhotoError(
            f"{show_path(path)} is not an intact .tar ({reason})", hint="download it again"
        ) from error

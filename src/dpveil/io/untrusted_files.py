"""Reading untrusted files: regular files only, no links, no blocking, up to a size limit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dpveil.core.urls import Status, Url
from dpveil.io.unreadable import COPY, COPY_AGAIN, LINK, Refused
from dpveil.io.urls import object_status, opened_url


def read_untrusted(path: Path, most: int) -> bytes:
    """Return the contents of the regular file at `path`, of at most `most` bytes.

    The type and the size are checked before anything is read. Raises `Refused` for folders, devices, pipes,
    symbolic links (which can lead anywhere), larger files and unreadable ones.
    """
    try:
        _check(path.lstat(), most)
        no_link = getattr(os, "O_NOFOLLOW", 0)
        with open(path, "rb", opener=lambda name, flags: without_blocking(name, flags | no_link)) as file:
            _check(os.fstat(file.fileno()), most)  # it may have been replaced in between
            contents = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid file name"
        raise Refused(f"cannot be read ({reason})", COPY_AGAIN) from error
    if len(contents) > most:
        raise too_large(len(contents), most)
    return contents


@contextmanager
def open_untrusted(path: Path) -> Iterator[tuple[BinaryIO, os.stat_result | Status]]:
    """Open a regular file, or an object, of any size, to read parts of it, and yield it with its status.

    Raises `Refused`, also for errors in reading it within the context.
    """
    if isinstance(path, Url):
        with opened_url(path) as both:
            yield both
        return
    try:
        with open(path, "rb", opener=without_blocking) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused("is not a regular file", COPY_AGAIN)
            yield file, status
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Refused("does not exist", "check the name") from error
    except IsADirectoryError as error:
        raise Refused("is a folder", "name a file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid file name"
        raise Refused(f"cannot be read ({reason})", "check the name and who may read it") from error


def is_present(path: Path) -> bool:
    """Whether anything exists at `path`, even a dangling link or an entry that cannot be read."""
    if isinstance(path, Url):
        try:
            return object_status(path) is not None
        except Refused:
            return True
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True  # reading it reports the error
    return True


def _check(status: os.stat_result, most: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Refused(LINK, COPY)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("is not a regular file", COPY_AGAIN)
    if status.st_size > most:
        raise too_large(status.st_size, most)


def too_large(size: int, most: int) -> Refused:
    """Return the refusal of so many bytes, where at most so many are read."""
    return Refused(f"has {size:,} bytes, and at most {most:,} are read", COPY_AGAIN)


def without_blocking(path: str, flags: int) -> int:
    """Open a file like `os.open`, but without blocking on a FIFO that has no writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

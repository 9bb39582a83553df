"""A clip's file, opened once: its bytes are the same in every pass, and nothing but them can be read."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from dpveil.errors import ClipError
from dpveil.io.names import shown

PIECE: Final = 2**20
"""Bytes hashed at a time."""
BARE: Final = "leave it out by ffmpeg -i IN -map 0:v:0 -map 0:a? -map_metadata -1 -c copy OUT"
"""The remedy for a file that has too much beside pictures and sound."""
CHANGED: Final = "the file changed while it was read"


class Source:
    """The regular file at `path`, open until `close`; any number of `View` read it at the same time."""

    def __init__(self, path: str | Path) -> None:
        self.name = shown(path)
        try:
            self.handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise self.unread(error) from error
        self._state = self._stated()
        if not stat.S_ISREG(os.fstat(self.handle).st_mode):
            self.close()
            raise self.refused("it is not a regular file", "give the name of a clip's file")
        self.size = self._state[2]

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self.handle >= 0:
            os.close(self.handle)
        self.handle = -1

    def read(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes from the offset `at` on; raises `ClipError` for a disk's error."""
        try:
            return os.pread(self.handle, size, at)
        except OSError as error:
            raise self.unread(error) from error

    def sha256(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        digest, at = hashlib.sha256(), 0
        while piece := self.read(at, PIECE):
            digest.update(piece)
            at += len(piece)
        return digest.hexdigest()

    def check(self) -> None:
        """Raise `ClipError` if the file was written to since it was opened."""
        if self._stated() != self._state:
            raise self.refused(CHANGED, "wait until it is complete, and try again")

    def check_bytes(self, sha256: str) -> None:
        """Raise `ClipError` unless the file's bytes have this SHA-256, and it was not written to."""
        if self.sha256() != sha256:
            raise self.refused(CHANGED, "wait until it is complete, and try again")
        self.check()

    def refused(self, problem: str, remedy: str = "") -> ClipError:
        """Return the error that this file has a `problem`."""
        return ClipError(f"cannot read {self.name}: {problem}", hint=remedy)

    def unread(self, error: OSError | ValueError) -> ClipError:
        """Return an operating system's error about this file."""
        problem = getattr(error, "strerror", None) or "not a valid file name"
        return self.refused(problem[:1].lower() + problem[1:], "check the name of the file")

    def _stated(self) -> tuple[int, ...]:
        found = os.fstat(self.handle)
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class View:
    """A position in a `Source`, with the methods of an open file that PyAV calls.

    `left` is how many bytes may still be read, if not None: below zero, the file seems to end.
    """

    name = ""

    def __init__(self, source: Source, left: int | None = None) -> None:
        self._source = source
        self._at = 0
        self.left = left

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all."""
        if self.spent:
            return b""
        found = self._source.read(self._at, self._source.size - self._at if size < 0 else size)
        self._at += len(found)
        if self.left is not None:
            self.left -= len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to `offset` from the start, the position or the end; return the new position."""
        self._at = max(0, (0, self._at, self._source.size)[whence] + offset)
        return self._at

    @property
    def spent(self) -> bool:
        """Whether more was read than might be."""
        return self.left is not None and self.left < 0

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._at

"""Releases with their certificates as one ZIP file, which is written while it is sent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from zipfile import ZipFile, ZipInfo

ZIP: Final = "application/zip"
MOST: Final = (1 << 31) - 1
"""Most bytes of an archive: beyond, its format is another one."""
HEADERS: Final = 30 + 16 + 46
"""Bytes of the three headers of a file, beside its name, which is there twice."""
END: Final = 22
"""Bytes of the end of an archive."""
FULL: Final = 1 << 20
"""Bytes of an archive that are sent at a time, or up to a part of a file more."""


def is_wanted(accept: str) -> bool:
    """Whether a client's Accept header names ZIP files, not only a range of types.

    >>> is_wanted("image/png, application/zip"), is_wanted("*/*"), is_wanted("application/zip;q=0")
    (True, False, False)
    """
    for each in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in each.split(";"))
        refused = any(re.fullmatch(r"q=0([.]0*)?", parameter) for parameter in parameters)
        if kind == ZIP and not refused:
            return True
    return False


@dataclass(frozen=True)
class File:
    """A file of an archive: its name in ASCII, its size in bytes, and its contents part by part."""

    name: str
    size: int
    parts: AsyncIterator[bytes]


def size_of(files: Sequence[File]) -> int:
    """Return the bytes of an archive, before any is written."""
    return END + sum(HEADERS + 2 * len(file.name) + file.size for file in files)


async def archived(files: Sequence[File]) -> AsyncIterator[bytes]:
    """Yield an archive of files as they are, uncompressed and without times."""
    written = _Written()
    with ZipFile(written, "w") as archive:  # type: ignore[call-overload]
        for file in files:
            with archive.open(ZipInfo(file.name), "w") as entry:
                async for part in file.parts:
                    entry.write(part)
                    if written.size >= FULL:
                        yield written.taken()
    yield written.taken()


class _Written:
    """A file that is only written, and whose bytes are taken from time to time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        """Take bytes."""
        self._parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: whoever sends the bytes takes them."""

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        parts, self._parts, self.size = self._parts, [], 0
        return b"".join(parts)

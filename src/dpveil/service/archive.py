"""Releases with their certificates as one ZIP file, which is written while it is sent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final
from zlib import crc32

ZIP: Final = "application/zip"
MOST: Final = (1 << 31) - 1
"""Most bytes of an archive: beyond, its format is another one."""
LOCAL: Final = Struct("<4s5H3L2H")
"""What is before a file, with its name: its sizes and checksum are behind it, as they are not known yet."""
AFTER: Final = Struct("<4s3L")
"""What is behind a file: its checksum, and its size twice, as it is not compressed."""
ENTRY: Final = Struct("<4s6H3L5H2L")
"""What the directory at the end has of a file, with its name."""
LAST: Final = Struct("<4s4H2LH")
"""The end of the directory."""
KIND: Final = (20, 8, 0, 0, 33)
"""Version 2.0, sizes behind the file, no compression, midnight, 1 January 1980."""
MADE: Final = 3 << 8 | 20
"""Made as on Unix, by version 2.0."""
MODE: Final = 0o600 << 16
"""The mode of a file that is unpacked: its owner reads and writes it."""
HEADERS: Final = LOCAL.size + AFTER.size + ENTRY.size
"""Bytes of the three headers of a file, beside its name, which is there twice."""
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
    return LAST.size + sum(HEADERS + 2 * len(file.name) + file.size for file in files)


async def archived(files: Sequence[File]) -> AsyncIterator[bytes]:
    """Yield an archive of files as they are, uncompressed and without times.

    Source: PKWARE, APPNOTE.TXT 6.3.3, sections 4.3.7, 4.3.9, 4.3.12 and 4.3.16.
    """
    parts: list[bytes] = []
    central: list[bytes] = []
    start = waiting = 0
    for file in files:
        name = file.name.encode("ascii")
        parts.append(LOCAL.pack(b"PK\3\4", *KIND, 0, 0, 0, len(name), 0) + name)
        check = size = 0
        async for part in file.parts:
            parts.append(part)
            check, size, waiting = crc32(part, check), size + len(part), waiting + len(part)
            if waiting >= FULL:
                yield b"".join(parts)
                parts, waiting = [], 0
        told = (check, size, size)
        parts.append(AFTER.pack(b"PK\7\x08", *told))
        central.append(ENTRY.pack(b"PK\1\2", MADE, *KIND, *told, len(name), 0, 0, 0, 0, MODE, start) + name)
        start += LOCAL.size + len(name) + size + AFTER.size
    length = sum(map(len, central))
    last = LAST.pack(b"PK\5\6", 0, 0, len(files), len(files), length, start, 0)
    yield b"".join([*parts, *central, last])

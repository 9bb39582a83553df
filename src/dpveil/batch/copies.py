"""Identical files among the inputs, whose releases' costs add up."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterable
from hashlib import file_digest, sha256
from pathlib import Path

from dpveil.batch.inside import Inside
from dpveil.core.urls import Url
from dpveil.errors import PhotoError
from dpveil.io.received import without_blocking


def copies(sources: Iterable[Path | Inside], *, most: int) -> dict[Path, Path]:
    """Return, for every file with the same contents as an earlier one, the first such file.

    Only regular files, and files in shards, of equal size and at most `most` bytes are read; unreadable ones
    are ignored. Objects are compared by the versions that were listed. The hashes, which are of originals,
    are not kept.
    """
    by_size: dict[int, list[Path | Inside]] = defaultdict(list)
    for source in sources:
        size = _size(source)
        if 0 < size <= most:
            by_size[size].append(source)
    found: dict[Path, Path] = {}
    for same in by_size.values():
        first: dict[bytes, Path | Inside] = {}
        for source in same if len(same) > 1 else ():
            digest = _digest(source, most)
            if digest and first.setdefault(digest, source) is not source:
                found[_path(source)] = _path(first[digest])
    return found


def _path(source: Path | Inside) -> Path:
    return source if isinstance(source, Path) else source.source


def _size(source: Path | Inside) -> int:
    if isinstance(source, Inside):
        return 0 if source.problem else source.member.size
    if isinstance(source, Url):
        return 0 if source.listed is None else source.listed.st_size
    try:
        status = source.stat()
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _digest(source: Path | Inside, most: int) -> bytes:
    try:
        if isinstance(source, Inside):
            return source.member.digest or sha256(source.contents(most)).digest()
        if isinstance(source, Url):
            return b"" if source.listed is None else str(source.listed).encode()
        with open(source, "rb", opener=without_blocking) as file:
            return file_digest(file, "sha256").digest()
    except (OSError, PhotoError):
        return b""

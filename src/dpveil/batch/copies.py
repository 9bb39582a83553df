"""Identical files among the inputs, whose releases' costs add up."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterable
from hashlib import file_digest
from pathlib import Path

from dpveil.io.received import without_blocking


def copies(sources: Iterable[Path], *, most: int) -> dict[Path, Path]:
    """Return, for every file with the same contents as an earlier one, the first such file.

    Only regular files of equal size and at most `most` bytes are read; unreadable ones are ignored. The
    hashes, which are of originals, are not kept.
    """
    by_size: dict[int, list[Path]] = defaultdict(list)
    for source in sources:
        try:
            status = source.stat()
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= most:
            by_size[status.st_size].append(source)
    found: dict[Path, Path] = {}
    for same in by_size.values():
        first: dict[bytes, Path] = {}
        for source in same if len(same) > 1 else ():
            digest = _digest(source)
            if digest and first.setdefault(digest, source) is not source:
                found[source] = first[digest]
    return found


def _digest(source: Path) -> bytes:
    try:
        with open(source, "rb", opener=without_blocking) as file:
            return file_digest(file, "sha256").digest()
    except OSError:
        return b""

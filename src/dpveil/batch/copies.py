"""Identical files among the inputs: each release costs budget, and the costs add up."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable
from hashlib import file_digest
from pathlib import Path


def copies(sources: Iterable[Path], *, most: int) -> dict[Path, Path]:
    """Return for every file that holds the same bytes as an earlier one that earlier one.

    Only files of one size are read, and at most `most` bytes of each; what cannot be read is nobody's copy.
    The hashes are of originals: they are forgotten on return.
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
        with open(source, "rb", opener=_without_waiting) as file:
            return file_digest(file, "sha256").digest()
    except OSError:
        return b""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

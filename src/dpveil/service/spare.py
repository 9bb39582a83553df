"""Room on the disk of the results, which is held before a release is paid for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

SLACK: Final = 8 << 20
"""Bytes that are held with each release: the database's log of earlier changes is this long at most."""
COPIES: Final = 2
"""A release is written to the database's log first, and to the database then."""


class Spare:
    """A file without a name in `folder` that is as long as what is held; without a folder nothing is.

    Used by one thread at a time. The system frees it however the process ends. Systems that cannot set room
    aside, as macOS, hold nothing: there a disk that becomes full can lose what was paid for.
    """

    def __init__(self, folder: Path | None) -> None:
        holds = folder is not None and hasattr(os, "posix_fallocate")
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0) if holds else None  # noqa: SIM115
        self._held: dict[str, int] = {}

    def hold(self, name: str, size: int) -> None:
        """Hold room for a release of `size` bytes under a name; raises `OSError` if the disk has none."""
        if self._file is None:
            return
        begin, more = sum(self._held.values()), COPIES * size + SLACK
        try:
            os.posix_fallocate(self._file.fileno(), begin, more)
        except OSError:
            self._file.truncate(begin)
            raise
        self._held[name] = more

    def free(self, name: str) -> None:
        """Give back what is held under a name, if anything is."""
        if self._held.pop(name, 0) and self._file is not None:
            self._file.truncate(sum(self._held.values()))

    def close(self) -> None:
        """Give everything back."""
        if self._file is not None:
            self._file.close()

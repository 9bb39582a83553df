"""Room on the disk of the results, which is held before a release is paid for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SLACK: Final = 8 << 20
"""Bytes that are held with each release: the database's log of earlier changes is this long at most."""
COPIES: Final = 2
"""A release is written to the database's log first, and to the database then."""


class Spare:
    """A file without a name in `folder`, at least as long as what is held; without a folder nothing is held.

    Used by one thread at a time. The system frees it however the process ends. To set room aside and give it
    back takes the system longer than most other steps of a release, so `spend` leaves it to the next one.
    Systems that cannot set room aside, as macOS, hold nothing: there a disk that becomes full can lose what
    was paid for.
    """

    def __init__(self, folder: Path | None) -> None:
        holds = folder is not None and hasattr(os, "posix_fallocate")
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0) if holds else None  # noqa: SIM115
        self._held: dict[str, int] = {}
        self._later: list[str] | None = None
        self._length = 0

    def has(self, name: str, size: int) -> bool:
        """Whether there is room for a release of `size` bytes already."""
        return self._file is None or self._more(name, size)[1] <= 0

    def _more(self, name: str, size: int) -> tuple[dict[str, int], int]:
        """Return what is held then, and how many more bytes that needs."""
        held = {**self._held, name: COPIES * size + SLACK}
        return held, sum(held.values()) - self._length

    def hold(self, name: str, size: int) -> None:
        """Hold room for a release of `size` bytes under a name; raises `OSError` if the disk has none."""
        if self._file is None:
            return
        held, more = self._more(name, size)
        if more > 0:
            try:
                os.posix_fallocate(self._file.fileno(), self._length, more)
            except OSError:
                self._file.truncate(self._length)
                raise
            self._length += more
        self._held = held

    def spend(self, name: str) -> None:
        """Hold nothing under a name any more; its room is the next one's, until `trim`."""
        if self._later is None:
            self._held.pop(name, 0)
        else:
            self._later.append(name)

    @contextmanager
    def until_committed(self) -> Iterator[None]:
        """Spend only once this context has ended without an error: a commit may need what is held."""
        self._later = []
        try:
            yield
            for name in self._later:
                self._held.pop(name, 0)
        finally:
            self._later = None

    def free(self, name: str) -> None:
        """Give back what is held under a name, if anything is, and all that was spent."""
        self._held.pop(name, 0)
        self.trim()

    def trim(self) -> None:
        """Give back to the disk what is held for nothing."""
        held = sum(self._held.values())
        if self._file is not None and held < self._length:
            self._file.truncate(held)
            self._length = held

    def close(self) -> None:
        """Give everything back."""
        if self._file is not None:
            self._file.close()

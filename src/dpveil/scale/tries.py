"""How many processes ended while they had a row: one of which they die is not tried for ever."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from dpveil.io import locking
from dpveil.io.writing import refusal

FOLDER: Final = "tries"
MOST: Final = 2
"""How many processes may die of a row."""
PAUSE: Final = 0.05
"""Seconds between two attempts to get a row that another process has."""


class Tries:
    """Counts in `folder`, in one of its folders for each `run`, which all processes of the run share.

    A row has a file with one byte for every process that died of it, and one more while a process has it,
    which holds the lock beside it: no other process has the row then, so that nobody takes it for dead.
    Deaths are never taken back, and another run counts from zero.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder / run

    @contextmanager
    def of(self, name: str) -> Iterator[int]:
        """Have the row `name`, for which others wait; yield how many processes died of it before.

        An interrupt, or a signal that ends the process, counts as a death. Raises `OutputError`, also if
        another process has the row for too long.
        """
        path = self._folder / name[:2] / name[2:]
        with ExitStack() as stack:
            try:
                _lock(path.with_name(f"{path.name}.lock"), stack)
                before = _counted(path)
            except OSError as error:
                raise refusal(path, error) from error
            try:
                yield before
            except Exception:
                _take_back(path, before)
                raise
            _take_back(path, before)


def _lock(path: Path, stack: ExitStack) -> None:
    until = time.monotonic() + locking.PATIENCE
    while True:
        try:
            stack.enter_context(locking.alone(path))
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(PAUSE)
        else:
            return


def _counted(path: Path) -> int:
    """Count one more try; return how many there were before."""
    with path.open("ab") as file:
        file.write(b".")
        file.flush()
        return os.fstat(file.fileno()).st_size - 1


def _take_back(path: Path, before: int) -> None:
    with suppress(OSError):
        if before:
            os.truncate(path, before)
        else:
            path.unlink()

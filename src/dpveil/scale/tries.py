"""How many processes ended while they had a photo: one of which they die is not tried for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dpveil.io import make_folder
from dpveil.io.writing import refusal

FOLDER: Final = "tries"
MOST: Final = 2
"""How many processes may die of a photo."""


class Tries:
    """Counts in `folder`, which all processes of a `run` share: a file for every photo that one of them has.

    A run counts from zero, so that what failed in an earlier one is tried again.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder, self._run = folder, run

    @contextmanager
    def of(self, name: str) -> Iterator[int]:
        """Count a try of the photo `name` until the context ends; yield how many processes died before.

        Raises `OutputError`.
        """
        path = self._folder / name[:2] / name[2:]
        before = self._before(path)
        try:
            if not path.parent.exists():
                make_folder(path.parent)
            path.write_text(f"{self._run} {before + 1}", encoding="ascii")
        except OSError as error:
            raise refusal(path, error) from error
        try:
            yield before
        finally:
            with suppress(OSError):
                path.unlink()

    def _before(self, path: Path) -> int:
        try:
            run, _, count = path.read_text(encoding="ascii", errors="replace").partition(" ")
        except OSError:
            return 0
        return int(count) if run == self._run and count.isdecimal() and len(count) < 5 else 0

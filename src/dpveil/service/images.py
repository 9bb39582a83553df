"""The images of results by the numbers of these: in a table of their database, or beside one in memory.

In a table of their own they cost nothing where the rest of a result is read or changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Protocol


class Images(Protocol):
    """The images of results. In a transaction of the database, changes are part of it."""

    def keep(self, number: int, image: bytes) -> None:
        """Keep the image of a result, in place of an earlier one."""

    def hold(self, number: int, size: int) -> None:
        """Take room for an image of so many bytes."""

    def size(self, number: int) -> int | None:
        """Return the bytes of an image; None if there is none."""

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image that is there."""

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget images, of which some may not be there."""


class InTable:
    """Images in the table `images`."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def keep(self, number: int, image: bytes) -> None:
        """Write an image."""
        self._base.execute("INSERT OR REPLACE INTO images VALUES (?, ?)", [number, image])

    def hold(self, number: int, size: int) -> None:
        """Write as many zeros."""
        self._base.execute("INSERT OR REPLACE INTO images VALUES (?, zeroblob(?))", [number, size])

    def size(self, number: int) -> int | None:
        """Return the bytes of an image, which is not read for that; None if there is none."""
        select = "SELECT length(image) FROM images WHERE number = ?"
        found = self._base.execute(select, [number]).fetchone()
        return None if found is None else int(found[0])

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image, of which no others are read."""
        with self._base.blobopen("images", "image", number, readonly=True) as image:
            image.seek(start)
            return image.read(size)

    def forget(self, numbers: Iterable[int]) -> None:
        """Delete images."""
        self._base.executemany("DELETE FROM images WHERE number = ?", [(number,) for number in numbers])


class InMemory:
    """Images as they came, without a copy. No transaction undoes their changes, which may be made again."""

    def __init__(self) -> None:
        self._images: dict[int, bytes] = {}

    def keep(self, number: int, image: bytes) -> None:
        """Keep an image."""
        self._images[number] = image

    def hold(self, number: int, size: int) -> None:
        """Do nothing: no disk becomes full."""

    def size(self, number: int) -> int | None:
        """Return the bytes of an image; None if there is none."""
        return len(self._images[number]) if number in self._images else None

    def part(self, number: int, start: int, size: int) -> bytes:
        """Return bytes of an image: itself, if these are all."""
        return self._images[number][start : start + size]

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget images."""
        for number in numbers:
            self._images.pop(number, None)

"""One photo of a data set: whose it is, what it is called, and how it is read."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpveil.core.photo import Photo
from dpveil.io.reading import read

MOST_PIXELS: Final = 25_000_000  # largest photo that is read


@dataclass(frozen=True)
class Item(ABC):
    """One photo: `name` is its path within the data set, with slashes, and `person` whom it shows."""

    person: str
    name: str

    @abstractmethod
    def read(self) -> Photo:
        """Return the photo; raises `PhotoError`."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A hash of the contents, in hexadecimal digits."""

    @property
    def rank(self) -> str:
        """What photos are ordered by where some are chosen: a hash of the name."""
        return digest_of(self.name)


@dataclass(frozen=True)
class PhotoFile(Item):
    """A photo in a file."""

    path: Path

    def read(self) -> Photo:
        """Return the photo; raises `PhotoError`."""
        return read(self.path, max_pixels=MOST_PIXELS)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

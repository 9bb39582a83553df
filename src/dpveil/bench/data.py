"""Data sets of a benchmark: photos of people in one folder each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from dpveil.core.photo import Photo
from dpveil.errors import UsageError
from dpveil.io import FORMATS, read
from dpveil.io.folders import UNWRITTEN

LEAST: Final = 2
"""Least photos of a person, and least people: one photo for the attacker, and one to attack."""
MOST_PIXELS: Final = 25_000_000
"""Largest photo that is read."""
LARGEST: Final = 1_000_000
"""Most photos of a data set."""
SUFFIXES: Final = UNWRITTEN.union(FORMATS)
"""Suffixes of the photos that are read, in lower case."""
HINT: Final = "give a folder with one folder of photos for each person"


@dataclass(frozen=True)
class Item:
    """One photo of a data set: `name` is its path within it, with slashes, and `person` whom it shows."""

    person: str
    name: str
    path: Path

    def read(self) -> Photo:
        """Return the photo; raises `PhotoError`."""
        return read(self.path, max_pixels=MOST_PIXELS)


@dataclass(frozen=True)
class Dataset:
    """Photos of several people; `name` is that of its folder.

    `most_people` and `most_photos` are the limits by which they were chosen, None for all.
    """

    name: str
    items: tuple[Item, ...]
    most_people: int | None = None
    most_photos: int | None = None

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody's names, sorted and each once."""
        return tuple(sorted({item.person for item in self.items}))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of names and contents, in hexadecimal digits."""
        whole = hashlib.sha256()
        for item in self.items:
            held = hashlib.sha256(item.path.read_bytes()).hexdigest()
            whole.update(f"{item.name}\0{held}\n".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()


def load(folder: Path, *, people: int | None = None, photos: int | None = None) -> Dataset:
    """Return the photos of a folder with one folder for each person: AT&T, LFW, or a user's own.

    With `people` or `photos`, no more people, and no more photos of each, the first by their hash: so the
    choice does not depend on the order of names. People with a single photo are left out, and so are links
    and files that dpveil does not read. Raises `UsageError` if fewer than two people are left.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint=HINT)
    items: list[Item] = []
    for place in sorted(folder.iterdir()):
        if place.is_dir() and not place.is_symlink() and not place.name.startswith("."):
            items += _of_person(place)
        if len(items) > LARGEST:
            raise UsageError(f"{folder} holds more than {LARGEST} photos", hint="give a part of it")
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=rank):
        groups.setdefault(item.person, []).append(item)
    kept = sorted((name for name, own in groups.items() if len(own) >= LEAST), key=_digest)[:people]
    if len(kept) < LEAST:
        raise UsageError(f"{folder} shows fewer than two people with two photos each", hint=HINT)
    chosen = [
        item for name in sorted(kept) for item in sorted(groups[name][:photos], key=lambda one: one.name)
    ]
    return Dataset(folder.resolve().name, tuple(chosen), people, photos)


def rank(item: Item) -> str:
    """Return what photos are ordered by where some are chosen: a hash of the photo's name."""
    return _digest(item.name)


def _of_person(place: Path) -> Sequence[Item]:
    files = [one for one in sorted(place.iterdir()) if one.suffix.lower() in SUFFIXES]
    plain = [one for one in files if one.is_file() and not one.is_symlink()]
    return [Item(place.name, f"{place.name}/{one.name}", one) for one in plain]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def check_readable(dataset: Dataset) -> None:
    """Read every photo once, and raise `PhotoError` for the first that cannot be: not after hours."""
    for item in dataset.items:
        item.read()

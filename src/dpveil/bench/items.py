"""One photo of a data set: whose it is, what it is called, and how it is read."""

from __future__ import annotations

import hashlib
import json
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from dpveil.core.photo import Photo
from dpveil.errors import UsageError
from dpveil.io import FORMATS, read, read_bytes
from dpveil.io.tar import LARGEST, SHARD, open_shard

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


MOST_FACTS: Final = 1 << 16  # largest .json of a photo, in bytes
LONGEST: Final = 200  # most characters of a person's name
PERSON: Final = "person"
PLAIN: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)
"""Types of members that are files and have all of their bytes in one place."""


@dataclass(frozen=True)
class ShardPhoto(Item):
    """A photo of `size` bytes that begins at byte `start` of a .tar."""

    path: Path
    start: int
    size: int

    def read(self) -> Photo:
        """Return the photo; raises `PhotoError`."""
        return read_bytes(self._contents(), f"{self.path}/{self.name}", max_pixels=MOST_PIXELS)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self._contents()).hexdigest()

    def _contents(self) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.size)


def shards(folder: Path) -> Iterator[Path]:
    """Yield the shards in a folder, sorted; hidden ones and links are left out."""
    for place in sorted(folder.iterdir()):
        plain = place.suffix.lower() == SHARD and not place.name.startswith(".")
        if plain and place.is_file() and not place.is_symlink():
            yield place


def in_shards(folder: Path) -> Iterator[Item]:
    """Yield the photos in the shards of a folder, each of the person whom the .json of its name states.

    Names are compared up to their first dot, as WebDataset does. Without one, a photo is of a person of its
    own. Raises `PhotoError` for a damaged .tar, and `UsageError` for a .json that is none.
    """
    for path in shards(folder):
        with open_shard(path) as shard:
            yield from _shard_photos(path, shard)


def _shard_photos(path: Path, shard: tarfile.TarFile) -> Iterator[Item]:
    people: dict[str, str] = {}
    found: list[tuple[str, tarfile.TarInfo]] = []
    names: set[str] = set()
    for member in shard:
        name = PurePosixPath(member.name)
        if member.type not in PLAIN or member.size > LARGEST or not name.name or name.name.startswith("."):
            continue
        if str(name) in names:
            raise UsageError(f"{path} holds {member.name!r} twice", hint="get an intact copy")
        names.add(str(name))
        stem, end = str(name.parent / name.name.partition(".")[0]), name.suffix.lower()
        if end == ".json" and member.size <= MOST_FACTS:
            if (person := _person(path, shard, member)) is not None:
                people[stem] = person
        elif end in FORMATS:
            found.append((stem, member))
    for stem, member in found:
        place = f"{path.name}/{member.name}"
        yield ShardPhoto(people.get(stem, place), place, path, member.offset_data, member.size)


def _person(path: Path, shard: tarfile.TarFile, member: tarfile.TarInfo) -> str | None:
    """Return the person whom a .json states, None for none; raises `UsageError` if it is no .json."""
    opened = shard.extractfile(member)
    try:
        facts = json.loads(opened.read() if opened else b"")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}, {member.name!r}, is not JSON", hint="get an intact copy") from error
    person = facts.get(PERSON) if isinstance(facts, dict) else None
    if person is None:
        return None
    told = "" if isinstance(person, bool) or not isinstance(person, str | int) else str(person)
    if not told or not told.isprintable() or len(told) > LONGEST:
        problem = f"{path}, {member.name!r}, names a person by no number or text of one line"
        raise UsageError(problem, hint=f"{LONGEST} characters at most")
    return told

"""Photos of a user's own data sets: selection and reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from dpveil.errors import UsageError


@dataclass(frozen=True)
class Dataset:
    """A folder with one folder per person; files end in `suffix` and are read in `mode`, "L" or "RGB"."""

    folder: str
    suffix: str
    mode: str


@dataclass(frozen=True, eq=False)
class Picture:
    """The levels of one photo and its person; `name` is its path within the data set."""

    name: str
    person: str
    image: UInt8[np.ndarray, "h w *c"]


def choose(dataset: Dataset, data: Path, count: int) -> list[Path]:
    """Return `count` files: everybody's first, then everybody's second; evenly spaced people if fewer.

    Raises `UsageError` if the data set is missing or has fewer files.
    """
    folder = data / dataset.folder
    people = [sorted(person.glob(f"*{dataset.suffix}")) for person in sorted(folder.glob("*/"))]
    people = [files for files in people if files]
    found = sum(map(len, people))
    if found < count:
        raise UsageError(
            f"{folder} holds {found} files *{dataset.suffix} in folders of people, not {count}",
            hint="say with --data where your data sets are, and with --count how many to take",
        )
    if count < len(people):
        people = [people[i * len(people) // count] for i in range(count)]
    in_turn = chain.from_iterable(zip_longest(*people))
    return [path for path in in_turn if path is not None][:count]


def read_pictures(dataset: Dataset, data: Path, count: int) -> Iterator[Picture]:
    """Yield the chosen photos. Released images are never written, so metadata does not matter."""
    for path in choose(dataset, data, count):
        yield Picture(f"{path.parent.name}/{path.name}", path.parent.name, levels(path, dataset.mode))


def levels(path: Path, mode: str = "RGB") -> UInt8[np.ndarray, "h w *c"]:
    """Return the levels of a photo, read in `mode`, "L" or "RGB"."""
    with Image.open(path) as opened:
        return np.asarray(opened.convert(mode))

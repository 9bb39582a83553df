"""Photos of a user's own data sets: selection and reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from dpveil.bench.dataset_layouts import items_of
from dpveil.bench.items import Item
from dpveil.bench.synthetic_photos import draw_items
from dpveil.core.photo import Photo
from dpveil.errors import UsageError
from dpveil_research.drawn_eyes import DrawnEye

Size = tuple[int, int]
RAFD_FACTS: Final = re.compile(r"Rafd(\d+)_\d+_\w+_(male|female)_([a-z]+)_([a-z]+)", re.IGNORECASE)
"""Angle of the camera, gender, expression and gaze, as in Rafd090_01_Caucasian_female_happy_frontal.jpg."""
KDEF_FACTS: Final = re.compile(r"[AB]([FM])\d{2}([A-Z]{2})(S|HL|HR|FL|FR)", re.IGNORECASE)
"""Gender, expression and side, as in AF01HAS.JPG: straight."""
OF_KDEF: Final = {
    "AF": "fearful",
    "AN": "angry",
    "DI": "disgusted",
    "HA": "happy",
    "NE": "neutral",
    "SA": "sad",
    "SU": "surprised",
}
"""KDEF's expressions in RaFD's words, which also has "contemptuous"."""


def facts_of(name: str) -> dict[str, str]:
    """Return what the name of a photo of RaFD or KDEF says: `expression`, `gender`, and `view`, "frontal" if
    both camera and eyes are; nothing of other names.

    >>> facts_of("Rafd090_01_Caucasian_female_happy_frontal.jpg")
    {'expression': 'happy', 'gender': 'female', 'view': 'frontal'}
    >>> facts_of("BM07/BM07SAHL.JPG")
    {'expression': 'sad', 'gender': 'male', 'view': 'HL'}
    """
    stem = name.rpartition("/")[2].partition(".")[0]
    if (match := RAFD_FACTS.fullmatch(stem)) is not None:
        angle, gender, expression, gaze = match.groups()
        view = gaze.lower() if angle == "090" else angle
        return {"expression": expression.lower(), "gender": gender.lower(), "view": view}
    if (match := KDEF_FACTS.fullmatch(stem)) is not None:
        gender, code, side = (part.upper() for part in match.groups())
        if code in OF_KDEF:
            gender, view = "female" if gender == "F" else "male", "frontal" if side == "S" else side
            return {"expression": OF_KDEF[code], "gender": gender, "view": view}
    return {}


@dataclass(frozen=True)
class Dataset:
    """A folder of photos of people, in any layout of `dpveil evaluate`, or the name of eyes that are drawn.

    They are read in `mode`, "L" or "RGB", and resized to `size`, height and width, None for none.
    """

    folder: str
    mode: str
    size: Size | None = None

    def at(self, own: Path | None) -> Dataset:
        """Return the same, with a user's own folder in place of this one if there is one."""
        return self if own is None else replace(self, folder=str(own.resolve()))


@dataclass(frozen=True, eq=False)
class Picture:
    """The levels of one photo and its person; `name` is its path within the data set."""

    name: str
    person: str
    image: UInt8[np.ndarray, "h w *c"]


@dataclass(frozen=True)
class Resized(Item):
    """A photo that is resized, whatever its shape is."""

    item: Item
    size: Size

    @classmethod
    def of(cls, item: Item, size: Size | None) -> Item:
        """Return a photo in this size, or as it is for None."""
        return item if size is None else cls(item.person, item.name, item, size)

    def read(self) -> Photo:
        image = self.item.read().image
        if image.shape[:2] == self.size:
            return Photo(image)
        how = cv2.INTER_AREA if image.shape[0] > self.size[0] else cv2.INTER_CUBIC
        return Photo(cv2.resize(image, self.size[::-1], interpolation=how))

    @property
    def digest(self) -> str:
        return self.item.digest


def people_of(folder: Path) -> list[list[Item]]:
    """Return everybody's photos, sorted; frontal ones alone where names tell the side (RaFD, KDEF).

    Raises `UsageError` if there are none.
    """
    own: dict[str, list[Item]] = {}
    there = folder.is_dir()
    found = draw_items(DrawnEye, None, None) if folder.name == DrawnEye.kind and not there else []
    for item in items_of(folder) if there else found:
        if facts_of(item.name).get("view", "frontal") == "frontal":
            own.setdefault(item.person, []).append(item)
    if not own:
        hint = "say with --data where your data sets are, or with --own where this one is"
        raise UsageError(f"{folder} holds no photos of people", hint=hint)
    return [sorted(own[person], key=lambda one: one.name.split("/")) for person in sorted(own)]


def choose(dataset: Dataset, data: Path, count: int) -> list[Item]:
    """Return `count` photos: everybody's first, then everybody's second; evenly spaced people if fewer.

    Raises `UsageError` if the data set is missing or has fewer photos.
    """
    folder = data / dataset.folder
    people = people_of(folder)
    found = sum(map(len, people))
    if found < count:
        hint = "say with --data where your data sets are, and with --count how many to take"
        raise UsageError(f"{folder} holds {found} photos of people, not {count}", hint=hint)
    if count < len(people):
        people = [people[i * len(people) // count] for i in range(count)]
    in_turn = chain.from_iterable(zip_longest(*people))
    return [Resized.of(item, dataset.size) for item in in_turn if item is not None][:count]


def read_pictures(dataset: Dataset, data: Path, count: int) -> Iterator[Picture]:
    """Yield the chosen photos. Released images are never written, so metadata does not matter."""
    for item in choose(dataset, data, count):
        yield Picture(item.name, item.person, levels(item, dataset.mode))


def levels(item: Item, mode: str = "RGB") -> UInt8[np.ndarray, "h w *c"]:
    image = item.read().image
    return np.asarray(Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).convert(mode))

"""Labelled training pictures: WebDataset shards with a .json beside every picture, and labels by hand.

Labels by hand are a CSV file with values of attributes for some of the pictures.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError, InvalidParameter, PhotoError
from dpveil.faces.attribute_model import READ
from dpveil.io.names import FORMATS, show_path
from dpveil.io.reading import read_bytes
from dpveil_train.crops import LARGEST, MOST_PIXELS, SHARD, open_shard

PICTURE: Final = "picture"  # the first column: what `key_of` a picture's file is
DIGITS: Final = 16


@dataclass(frozen=True)
class HandLabels:
    """Labels by `key_of` the picture: the attributes that are known of it, as indices into their values.

    `names` are the attributes that the file has, and `digest` is the SHA-256 of the file.
    """

    names: tuple[str, ...] = ()
    digest: str = ""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> HandLabels:
        """Return the labels in a CSV file; an empty cell is a value that is not known.

        Raises `InvalidParameter` if there is no such file, or for contents that are not labels.
        """
        hint = f"its first line names the columns, such as {PICTURE},glasses,beard"
        try:
            data = path.read_bytes()
            table = csv.DictReader(io.StringIO(data.decode("utf-8")))
            names = [name for name in table.fieldnames or () if name != PICTURE]
            rows = {
                line[PICTURE]: {name: READ[name].index(line[name]) for name in names if line[name]}
                for line in table
            }
        except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
            raise InvalidParameter(
                "labels", show_path(path), f"cannot be read: {error}", hint=hint
            ) from error
        return cls(tuple(name for name in READ if name in names), hashlib.sha256(data).hexdigest(), rows)

    def of(self, picture: bytes) -> Mapping[str, int]:
        """Return what is known of the picture in a file with these bytes."""
        return self.rows.get(key_of(picture), {}) if self.rows else {}


def key_of(picture: bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a picture's file."""
    return hashlib.sha256(picture).hexdigest()[:DIGITS]


AGES: Final = (30, 45, 60, 75)  # first year of each age band but the first
GENDERS: Final = ("male", "female")
RACES: Final = ("white", "black", "asian", "indian", "other")
NO_MORE: Final = HandLabels()  # no labels by hand
HINT: Final = 'such as {"age": 34, "gender": "female", "race": "asian"}, as UTKFace has them'


@dataclass(frozen=True, eq=False)
class Labelled:
    """A photo and its labels: indices into the values of `attribute_model.READ`."""

    photo: Photo
    labels: Mapping[str, int]


def labelled_photos(
    paths: Iterable[Path], step: Callable[[], None] = lambda: None, more: HandLabels = NO_MORE
) -> Iterator[Labelled | DPVeilError]:
    """Yield every labelled photo of every shard, or an error; `step` is called after each shard.

    Labels of `more` are added to those of the shard, and replace them.
    """
    for path in paths:
        if path.suffix.lower() != SHARD:
            yield PhotoError(
                f"{show_path(path)} has no labels", hint="give .tar shards with .json files beside"
            )
        else:
            yield from _pairs(path, more)
        step()


def labels_of(text: bytes, name: str) -> dict[str, int]:
    """Return the labels in a .json (age in years, gender and race, as in UTKFace) as indices.

    Raises `PhotoError` if they are malformed or not those of an adult.
    """
    try:
        told: Any = json.loads(text)
        age = told["age"]
        if isinstance(age, bool) or not isinstance(age, int) or not 18 <= age <= 130:
            raise ValueError("age")
        return {
            "gender": GENDERS.index(told["gender"]),
            "age": int(np.searchsorted(AGES, age, side="right")),
            "perceived-race": RACES.index(told["race"]),
        }
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise PhotoError(f"{show_path(name)} has no labels of an adult", hint=HINT) from error


def _pairs(path: Path, more: HandLabels) -> Iterator[Labelled | DPVeilError]:
    """Yield the photos of a shard, each with the .json of the same name, in either order."""
    waiting: dict[str, dict[str, bytes]] = {}
    try:
        with open_shard(path) as shard:
            for member in shard:
                stem, end = str(Path(member.name).with_suffix("")), Path(member.name).suffix.lower()
                if not member.isfile() or (end not in FORMATS and end != ".json"):
                    continue
                opened = shard.extractfile(member) if member.size <= LARGEST else None
                pair = waiting.setdefault(stem, {})
                pair["labels" if end == ".json" else "picture"] = opened.read() if opened else b""
                if len(pair) == 2:
                    yield _pair(waiting.pop(stem), f"{path}/{stem}", more)
    except PhotoError as error:
        yield error
    for stem in waiting:
        yield PhotoError(
            f"{show_path(f'{path}/{stem}')} lacks its picture or its labels", hint="leave it out"
        )


def _pair(pair: Mapping[str, bytes], name: str, more: HandLabels) -> Labelled | DPVeilError:
    try:
        labels = {**labels_of(pair["labels"], f"{name}.json"), **more.of(pair["picture"])}
        return Labelled(read_bytes(pair["picture"], name, max_pixels=MOST_PIXELS), labels)
    except PhotoError as error:
        return error

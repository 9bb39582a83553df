"""Faces for the attributes experiments: people of LFW, and labelled faces of UTKFace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.geometry.align import of_points
from dpveil.faces.portrait import centred
from dpveil.io.tar import SHARD
from dpveil_research.data import levels
from dpveil_research.faces import FACE, FOLDER, aligned
from dpveil_train.labelled import Labelled, labelled

LABELLED: Final = "utkface_128"
FRAME: Final = Frame(128)
HELD_OUT: Final = 5
"""The last one of so many UTKFace photos is used: those that training holds out."""

Crops = UInt8[np.ndarray, "n 128 128 3"]
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class People:
    """The same number of crops of each person, people × photos, in the order of names; `paths` are the
    files.
    """

    names: tuple[str, ...]
    crops: UInt8[np.ndarray, "people photos 128 128 3"]
    paths: tuple[tuple[Path, ...], ...]


def read_people(data: Path, each: int, say: Say) -> People:
    """Return the first `each` photos of each person. Raises `UsageError` if somebody has fewer.

    A face without landmarks is cropped at the data set's usual position, so that nobody is left out.
    """
    folders = sorted((data / FOLDER).glob("*/"))
    paths = tuple(tuple(sorted(folder.glob("*.jpg"))[:each]) for folder in folders)
    if not folders or min(map(len, paths)) < each:
        hint = "say with --data where your data sets are, and with --count how many to take of everybody"
        raise UsageError(f"{data / FOLDER} has no {each} photos *.jpg of everybody", hint=hint)
    crops = np.empty((len(paths), each, 128, 128, 3), np.uint8)
    for row, own in zip(crops, paths, strict=True):
        for place, path in enumerate(own):
            row[place] = _crop(path)
    say(f"{crops.shape[0]} people, {each} photos each")
    return People(tuple(folder.name for folder in folders), crops, paths)


def _crop(path: Path) -> UInt8[np.ndarray, "128 128 3"]:
    image = levels(path)
    try:
        return aligned(image, FACE, FRAME)
    except RegionError:
        usual = np.array([[83.0, 57], [73, 57], [46, 57], [56, 57], [64, 76]])
        return of_points(usual, FRAME.points()).crop(image, FRAME)


def read_labelled(data: Path, say: Say) -> tuple[Crops, dict[str, Int64[np.ndarray, " n"]]]:
    """Return the crops and labels that training holds out: the last fifth, in the order of files.

    Raises `UsageError` if there are none.
    """
    shards = sorted((data / LABELLED).glob(f"*{SHARD}"))
    found = [one for one in labelled(shards) if isinstance(one, Labelled)]
    if not found:
        hint = "say with --data where your data sets are"
        raise UsageError(f"{data / LABELLED} holds no labelled photos", hint=hint)
    kept = found[len(found) - len(found) // HELD_OUT :]
    say(f"{len(kept)} labelled photos that were held out")
    crops = np.stack([centred(one.photo, (128, 128, 3)) for one in kept])
    return crops, {name: np.array([one.labels[name] for one in kept]) for name in kept[0].labels}

"""Aligned faces of LFW, of two halves of its people: one to train codecs, one for measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets import Card
from dpveil.bench.items import Item
from dpveil.codecs import Codec
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.portrait import canonical
from dpveil.io import read
from dpveil_research.data import levels, people_of
from dpveil_train import TRAINERS
from dpveil_train.crops import BATCH

FOLDER: Final = "lfw10_128"
FACE: Final = Box(34, 28, 60, 72)
"""The position of the face in every photo: LFW is centred (deep-funnelled, the middle 160 pixels as 128)."""
Crops = UInt8[np.ndarray, "n s s 3"]
C = TypeVar("C", bound=Codec)
Gaps = Float64[np.ndarray, "n n"]
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Faces:
    """Crops in one frame, and the person on each."""

    crops: Crops
    people: tuple[str, ...]


def read_faces(
    data: Path, frame: Frame, count: int, *, half: int, each: int | None = None, own: Path | None = None
) -> Faces:
    """Return `count` crops of the people with even (`half` 0) or odd (1) indices, everybody's first photo
    first.

    `each` is the most photos of one person, and `own` a data set in place of LFW: fewer of its photos will
    do. Raises `UsageError` if there are fewer of LFW's.
    """
    folder = data / FOLDER if own is None else own
    people = [photos[:each] for photos in people_of(folder)[half::2]]
    items = [item for item in chain.from_iterable(zip_longest(*people)) if item is not None]
    if (len(items) < count and own is None) or not items or not count:
        raise UsageError(
            f"{folder} holds {len(items)} photos of half of its people, not {count}",
            hint="say with --data where your data sets are, and with --count how many to take",
        )
    found = [(crop, one.person) for one in items[:count] if (crop := _crop(one, frame, own)) is not None]
    return Faces(np.stack([crop for crop, _ in found]), tuple(name for _, name in found))


def _crop(item: Item, frame: Frame, own: Path | None) -> UInt8[np.ndarray, "s s 3"] | None:
    if own is not None:
        return crop_of(item, frame)
    try:
        return aligned(levels(item), FACE, frame)
    except RegionError:
        return None


def read_people(
    data: Path, each: int, say: Say
) -> tuple[tuple[str, ...], UInt8[np.ndarray, "people photos 128 128 3"]]:
    """Return the people of LFW, and the same number of crops of each, their first `each` photos.

    A face without landmarks is cropped at the data set's usual position, so that nobody is left out. Raises
    `UsageError` if somebody has fewer photos.
    """
    folders = sorted((data / FOLDER).glob("*/"))
    paths = [sorted(folder.glob("*.jpg"))[:each] for folder in folders]
    if not folders or min(map(len, paths)) < each:
        hint = "say with --data where your data sets are, and with --count how many to take of everybody"
        raise UsageError(f"{data / FOLDER} has no {each} photos *.jpg of everybody", hint=hint)
    crops = np.stack([np.stack([_usual_crop(path) for path in own]) for own in paths])
    say(f"{len(crops)} people, {each} photos each")
    return tuple(folder.name for folder in folders), crops


def _usual_crop(path: Path) -> UInt8[np.ndarray, "128 128 3"]:
    image, frame = np.asarray(read(path).image), Frame(128)
    try:
        return aligned(image, FACE, frame)
    except RegionError:
        usual = np.array([[83.0, 57], [73, 57], [46, 57], [56, 57], [64, 76]])
        return of_points(usual, frame.points()).crop(image, frame)


def crop_of(item: Item, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
    """Return the largest face of any photo, aligned; its middle where none is found, so that none is left
    out.
    """
    return np.asarray(canonical(Photo(levels(item)), frame))


def aligned(image: UInt8[np.ndarray, "h w c"], box: Box, frame: Frame) -> UInt8[np.ndarray, "s s c"]:
    """Return the face in a box, aligned to a frame by its landmarks. Raises `RegionError` if there are
    none.
    """
    return of_points(predictor().near(image, box).points, frame.points()).crop(image, frame)


def trained(
    kind: type[C], crops: Crops, length: int, seed: int, data: str = "half of the people of LFW"
) -> C:
    """Return a codec trained on these crops, for this run only; `data` says whose they are."""
    parts = [crops[start : start + BATCH] for start in range(0, len(crops), BATCH)]
    card = Card(kind.name, data, "for this run only", seed)
    made: C = TRAINERS[kind.name](lambda: iter(parts), card=card, seed=seed, length=length)
    return made


def closest_pairs(
    embeddings: Float64[np.ndarray, "n d"], people: Sequence[str], count: int
) -> list[tuple[int, int]]:
    """Return the closest two photos of different people, then the closest of the remaining people, and so on.

    Source: FaceIDP definition III.6, which takes the first of these. Raises `UsageError` for too few people.
    """
    squares = (embeddings**2).sum(axis=1)
    gaps: Gaps = squares[:, None] + squares[None] - 2 * embeddings @ embeddings.T
    names = np.asarray(people)
    gaps[names[:, None] == names[None]] = np.inf
    found: list[tuple[int, int]] = []
    while len(found) < count:
        first, second = map(int, np.unravel_index(gaps.argmin(), gaps.shape))
        if not np.isfinite(gaps[first, second]):
            raise UsageError(f"{len(set(people))} people are too few for {count} pairs", hint="ask for fewer")
        found.append((first, second))
        gone = np.isin(names, names[[first, second]])
        gaps[gone], gaps[:, gone] = np.inf, np.inf
    return found

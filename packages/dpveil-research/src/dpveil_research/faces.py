"""Aligned faces of LFW, AT&T, UTKFace or a user's own set: to train codecs, to release, to attack with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final, TypeVar

import cv2
import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets.model_cards import Card
from dpveil.bench.items import Item
from dpveil.codecs import Codec
from dpveil.codecs.network_codecs import ellipse_mask
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.embedding import LENGTH, embedder, of_crop
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.head_gallery import default_heads
from dpveil.faces.portrait_placement import canonical, centred
from dpveil_research.data import Dataset, levels, people_of
from dpveil_train import TRAINERS
from dpveil_train.crops import BATCH, photos

LFW: Final = "lfw10_128"
UTKFACE: Final = "utkface_128"
FACE: Final = Box(34, 28, 60, 72)
"""The position of the face in every photo: LFW is centred (deep-funnelled, the middle 160 pixels as 128)."""
FRAME: Final = Frame(128)
SIDE: Final = (128, 128, 3)
GREY: Final = 128
Crops = UInt8[np.ndarray, "n s s 3"]
Embed = Callable[[Crops], Float64[np.ndarray, "n 128"]]
C = TypeVar("C", bound=Codec)
Say = Callable[[str], None]
HINT: Final = "say with --data where your data sets are, and with --count how many to take"


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
    folder = data / LFW if own is None else own
    people = [photos[:each] for photos in people_of(folder)[half::2]]
    items = [item for item in chain.from_iterable(zip_longest(*people)) if item is not None]
    if (len(items) < count and own is None) or not items or not count:
        problem = f"{folder} holds {len(items)} photos of half of its people, not {count}"
        raise UsageError(problem, hint=HINT)
    found = []
    for item in items[:count]:
        try:
            crop = aligned(levels(item), FACE, frame) if own is None else crop_of(item, frame)
        except RegionError:
            continue
        found.append((crop, item.person))
    return Faces(np.stack([crop for crop, _ in found]), tuple(name for _, name in found))


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


@dataclass(frozen=True)
class Set:
    """A data set of faces of known people; `box` is the position of the face, forehead to chin, on every
    photo, None where it has to be looked for.

    `usual` are five landmarks, in pixels, for photos where none are found; else there have to be some.
    """

    name: str
    dataset: Dataset
    box: Box | None
    usual: tuple[tuple[float, float], ...] | None = None

    def crop(self, item: Item) -> UInt8[np.ndarray, "s s 3"]:
        if self.box is None:
            return crop_of(item, FRAME)
        image = np.atleast_3d(levels(item, self.dataset.mode))
        try:
            return aligned(image, self.box, FRAME)
        except RegionError:
            if self.usual is None:
                raise
            return of_points(np.array(self.usual), FRAME.points()).crop(image, FRAME)


SETS: Final = (
    Set("LFW", Dataset(LFW, "RGB"), Box(19, 19, 90, 90)),
    Set("AT&T", Dataset("att_faces", "L"), Box(6, 16, 80, 80)),
)
EVERYBODY: Final = Set("LFW", Dataset(LFW, "RGB"), FACE, ((83.0, 57), (73, 57), (46, 57), (56, 57), (64, 76)))
"""LFW where nobody is left out."""


def sets_of(usual: Sequence[Set], own: Path | None) -> Sequence[Set]:
    """Return the data sets of an experiment, or a user's own alone, in any layout of `dpveil evaluate`."""
    if own is None:
        return usual
    return [Set(own.resolve().name, Dataset(str(own.resolve()), "RGB"), None)]


@dataclass(frozen=True, eq=False)
class People:
    """Crops of one data set, people × photos × 128 × 128 × 3, and the people's names."""

    name: str
    crops: UInt8[np.ndarray, "people photos s s 3"]
    people: tuple[str, ...]

    def photo(self, number: int) -> Crops:
        return self.crops[:, number]


def read_people(of: Set, data: Path, photos_each: int, count: int | None = None) -> People:
    """Return the first `photos_each` photos of everybody who has so many, of `count` evenly spaced people.

    Raises `UsageError` if nobody has enough photos.
    """
    folder = data / of.dataset.folder
    every = [photos[:photos_each] for photos in people_of(folder) if len(photos) >= photos_each]
    if count is not None and count < len(every):
        every = [every[i * len(every) // count] for i in range(count)]
    if not every:
        raise UsageError(f"{folder} holds nobody with {photos_each} photos", hint=HINT)
    crops = np.stack([np.stack([of.crop(item) for item in photos]) for photos in every])
    return People(of.name, crops, tuple(photos[0].person for photos in every))


def public_crops(data: Path, shards: int) -> tuple[int, Callable[[], Iterator[Crops]]]:
    """Return how many faces the first shards of UTKFace hold, and a function that yields them in batches.

    Raises `UsageError` if there are none.
    """
    files = sorted((data / UTKFACE).glob("*.tar"))[:shards]
    crops = [centred(photo, SIDE) for photo in photos(files) if isinstance(photo, Photo)]
    if not crops:
        raise UsageError(f"{data / UTKFACE} holds no faces", hint="shards *.tar, one .jpg a face")
    every = np.stack(crops)
    return len(every), lambda: (every[start : start + 512] for start in range(0, len(every), 512))


def card_of(codec: str, count: int, seed: int) -> Card:
    """Return the card of a codec that learned from so many faces of UTKFace."""
    return Card(codec, data=f"UTKFace, {count} faces", terms="non-commercial research", seed=seed)


def trained(
    kind: type[C], crops: Crops, length: int, seed: int, data: str = "half of the people of LFW"
) -> C:
    """Return a codec trained on these crops, for this run only; `data` says whose they are."""
    parts = [crops[start : start + BATCH] for start in range(0, len(crops), BATCH)]
    card = Card(kind.name, data, "for this run only", seed)
    made: C = TRAINERS[kind.name](lambda: iter(parts), card=card, seed=seed, length=length)
    return made


def heads(frame: Frame, count: int | None = None) -> Crops:
    """Return rendered heads, the same in every run: of nobody."""
    gallery = default_heads()
    every = [HeadFace(gallery, np.array([person]), person) for person in range(len(gallery))[:count]]
    return np.stack([head.crop(frame) for head in every])


def seen(crops: Crops, side: int) -> Crops:
    """Return crops of this side as every measure sees them: grey beyond the ellipse that codecs show."""
    small = np.stack([cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA) for crop in crops])
    small[:, ~ellipse_mask(side)] = GREY
    return small


def large(crops: Crops) -> Crops:
    """Return crops at the size at which embeddings and attributes are read."""
    return np.stack([cv2.resize(crop, SIDE[:2], interpolation=cv2.INTER_CUBIC) for crop in crops])


def embedding() -> Embed:
    """Return a function that embeds crops, each distinct picture once, as k-same repeats pictures."""
    known: dict[bytes, Float64[np.ndarray, " 128"]] = {}
    network = embedder()

    def embed(crops: Crops) -> Float64[np.ndarray, "n 128"]:
        keys = [crop.tobytes() for crop in crops]
        for key, crop in zip(keys, crops, strict=True):
            if key not in known:
                known[key] = network(of_crop(crop, FRAME)[None])[0]
        return np.stack([known[key] for key in keys]).reshape(-1, LENGTH)

    return embed


def closest_pairs(
    embeddings: Float64[np.ndarray, "n d"], people: Sequence[str], count: int
) -> list[tuple[int, int]]:
    """Return the closest two photos of different people, then the closest of the remaining people, and so on.

    Source: FaceIDP definition III.6, which takes the first of these. Raises `UsageError` for too few people.
    """
    squares = (embeddings**2).sum(axis=1)
    gaps: Float64[np.ndarray, "n n"] = squares[:, None] + squares[None] - 2 * embeddings @ embeddings.T
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

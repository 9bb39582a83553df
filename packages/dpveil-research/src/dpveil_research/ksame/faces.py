"""Faces of people, aligned like the codec's training faces, and their embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets import Card
from dpveil.codecs import PCA
from dpveil.core.photo import Photo
from dpveil.errors import UsageError
from dpveil.faces.embedding import LENGTH, embedder, of_crop
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import centred
from dpveil_research.data import levels
from dpveil_research.faces import aligned
from dpveil_research.ksame.plan import SEED, TRAINED, Plan, Set
from dpveil_train import train_pca
from dpveil_train.crops import photos

FRAME: Final = Frame(128)
SIDE: Final = (128, 128, 3)
BATCH: Final = 512
Crops = UInt8[np.ndarray, "n s s 3"]
Embed = Callable[[Crops], Float64[np.ndarray, "n 128"]]


@dataclass(frozen=True, eq=False)
class People:
    """Crops of one data set, people × photos × 128 × 128 × 3, and the people's names."""

    name: str
    crops: UInt8[np.ndarray, "people photos s s 3"]
    people: tuple[str, ...]

    def photo(self, number: int) -> Crops:
        """Return one photo of everybody."""
        return self.crops[:, number]


def read_people(of: Set, data: Path, photos_each: int, count: int) -> People:
    """Return the first `photos_each` photos of everybody who has so many, of `count` evenly spaced people.

    All photos are aligned by their landmarks, however good. Raises `UsageError` if nobody has enough photos.
    """
    folder = data / of.dataset.folder
    every = [sorted(person.glob(f"*{of.dataset.suffix}")) for person in sorted(folder.glob("*/"))]
    every = [files[:photos_each] for files in every if len(files) >= photos_each]
    if count < len(every):
        every = [every[i * len(every) // count] for i in range(count)]
    if not every:
        raise UsageError(f"{folder} holds nobody with {photos_each} photos", hint="see --data")
    crops = np.stack([np.stack([_aligned(path, of) for path in files]) for files in every])
    return People(of.name, crops, tuple(files[0].parent.name for files in every))


def _aligned(path: Path, of: Set) -> UInt8[np.ndarray, "s s 3"]:
    return aligned(np.atleast_3d(levels(path, of.dataset.mode)), of.box, FRAME)


def public_crops(data: Path, shards: int) -> tuple[int, Callable[[], Iterator[Crops]]]:
    """Return how many faces the first shards of UTKFace hold, and a function that yields them in batches.

    Raises `UsageError` if there are none.
    """
    files = sorted((data / TRAINED).glob("*.tar"))[:shards]
    crops = [centred(photo, SIDE) for photo in photos(files) if isinstance(photo, Photo)]
    if not crops:
        raise UsageError(f"{data / TRAINED} holds no faces", hint="shards *.tar, one .jpg a face")
    every = np.stack(crops)
    return len(every), lambda: (every[start : start + BATCH] for start in range(0, len(every), BATCH))


def card_of(codec: str, count: int, seed: int) -> Card:
    """Return the card of a codec that learned from so many faces of UTKFace."""
    return Card(codec, data=f"UTKFace, {count} faces", terms="non-commercial research", seed=seed)


def trained(data: Path, plan: Plan) -> PCA:
    """Return eigenfaces of the first shards of UTKFace. Raises `UsageError` if there are none."""
    count, source = public_crops(data, plan.shards)
    return train_pca(source, card=card_of("pca", count, SEED), seed=SEED, length=plan.length)


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


def repeated(people: Sequence[str], times: int) -> list[str]:
    """Return the names for `times` photos of everybody, person by person."""
    return [name for name in people for _ in range(times)]

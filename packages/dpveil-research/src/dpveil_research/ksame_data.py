"""Settings, faces and rows of the comparison of k-same and differential privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets import Card
from dpveil.bench.items import Item
from dpveil.codecs import PCA
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import UsageError
from dpveil.faces.embedding import LENGTH, embedder, of_crop
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import centred
from dpveil.mechanisms.latent import BoxLaplace, CroftMetric
from dpveil_research.data import Dataset, levels, people_of
from dpveil_research.embedding_attacks import Identified
from dpveil_research.faces import aligned, crop_of
from dpveil_research.results import Row, estimate
from dpveil_train import train_pca
from dpveil_train.crops import photos

SEED: Final = 2022
TRAINED: Final = "utkface_128"
PAPER: Final = CroftMetric.name
"""The paper's private mechanism."""
PRIVATE: Final[dict[str, type[CroftMetric] | type[BoxLaplace]]] = {
    kind.name: kind for kind in (CroftMetric, BoxLaplace)
}
"""The private mechanisms that are compared."""


@dataclass(frozen=True)
class Set:
    """A data set of faces of known people; `box` is the position of the face, forehead to chin, on every
    photo, None where it has to be looked for.
    """

    name: str
    dataset: Dataset
    box: Box | None

    @classmethod
    def of(cls, own: Path) -> Set:
        """Return a user's own data set, in any layout of `dpveil evaluate`."""
        return cls(own.resolve().name, Dataset(str(own.resolve()), "RGB"), None)


SETS: Final = (
    Set("LFW", Dataset("lfw10_128", "RGB"), Box(19, 19, 90, 90)),
    Set("AT&T", Dataset("att_faces", "L"), Box(6, 16, 80, 80)),
)


def sets_of(usual: Sequence[Set], own: Path | None) -> Sequence[Set]:
    """Return the data sets of an experiment, or a user's own alone."""
    return usual if own is None else [Set.of(own)]


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    Of everybody's `photos` the first is protected, and the attacker holds the others; at most `people` of a
    set are used. `shards` of UTKFace train a codec of `length` coordinates. `draws` releases of every face
    are attacked by likelihood; `splits` divisions of the people into two galleries are tried. `seen` are
    further budgets at which embeddings are compared. `learned` are the budgets of the paper's mechanism at
    which attackers learn from releases of `parrots` photos of everybody, or see two. `subtracted` are sizes
    of groups whose known faces are subtracted; `narrowed` is the size of those whose known people are
    excluded, against mechanisms with the budgets `struck`.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 3
    length: int = 100
    people: int = 100
    photos: int = 6
    parrots: int = 2
    epsilons: tuple[str, ...] = ("10", "20", "30", "50", "100", "200", "300", "500", "1000", "3000")
    seen: tuple[str, ...] = ("30", "100", "300", "1000", "3000", "10000", "30000")
    learned: tuple[str, ...] = ("100", "300", "1000", "3000", "10000")
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)
    subtracted: tuple[int, ...] = (2, 3, 5, 10)
    narrowed: int = 5
    struck: tuple[str, ...] = ("10", "30", "100", "300")
    draws: int = 20
    splits: int = 3


PLAN: Final = Plan()


def private(name: str, epsilon: str) -> CroftMetric | BoxLaplace:
    """Return a mechanism with the box that the training codes span, as published."""
    return PRIVATE[name](epsilon=Fraction(epsilon), clip=0)


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
    every = [photos[:photos_each] for photos in people_of(folder) if len(photos) >= photos_each]
    if count < len(every):
        every = [every[i * len(every) // count] for i in range(count)]
    if not every:
        raise UsageError(f"{folder} holds nobody with {photos_each} photos", hint="see --data")
    crops = np.stack([np.stack([_aligned(item, of) for item in photos]) for photos in every])
    return People(of.name, crops, tuple(photos[0].person for photos in every))


def _aligned(item: Item, of: Set) -> UInt8[np.ndarray, "s s 3"]:
    if of.box is None:
        return crop_of(item, FRAME)
    return aligned(np.atleast_3d(levels(item, of.dataset.mode)), of.box, FRAME)


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


VERY: Final = "very photos"
GROUPS: Final = "knows the groups"
OTHER_BEST: Final = "strongest, other photos"
VERY_BEST: Final = f"strongest, {VERY}"
LIKELIHOOD: Final = f"likelihood, {VERY}"


@dataclass(frozen=True)
class Place:
    """The setting of a row. `releases` is 1 or 2, `known` how many of the others an attacker can exclude."""

    dataset: str
    question: str
    method: str
    x: str
    releases: int = 1
    known: int = 0


def row(
    place: Place,
    attack: str,
    found: Identified,
    *,
    limit: float | None = None,
    ssim: Float64[np.ndarray, " n"] | None = None,
) -> Row:
    """Return the success rate of an attack with its 95 % interval over people, chance, and its limit, if
    known.

    `limit` is 1/k for k-same, which holds for one release only, and the bound of `best_success` otherwise.
    """
    low, high = found.interval()
    return {
        "dataset": place.dataset,
        "question": place.question,
        "method": place.method,
        "x": place.x,
        "releases": str(place.releases),
        "known": str(place.known),
        "attack": attack,
        **estimate("rate", (found.rate, low, high), ".5g"),
        "limit": "" if limit is None else f"{limit:.5g}",
        "chance": f"{found.chance:.5g}",
        "ssim": "" if ssim is None else f"{ssim.mean():.4g}",
        "tries": str(len(found.people)),
        "people": str(len(set(found.people))),
    }


def share(values: Float64[np.ndarray, " n"], people: Sequence[str], chance: float) -> Identified:
    """Return success probabilities, one per try, as an attack's result."""
    return Identified(values, tuple(people), chance)


def strongest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the highest rates, as attackers are free to choose.

    One is of those who hold other photos of everybody, one of those who hold the very photos, if any.
    """
    very = [VERY in one["attack"] or one["attack"] == GROUPS for one in rows]
    found = []
    for name, wanted in ((OTHER_BEST, False), (VERY_BEST, True)):
        of_it = [one for one, is_very in zip(rows, very, strict=True) if is_very == wanted]
        if of_it:
            found.append(max(of_it, key=lambda one: float(one["rate"])) | {"attack": name})
    return found

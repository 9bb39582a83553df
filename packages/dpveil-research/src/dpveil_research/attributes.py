"""Utility and privacy of the attributes method: detection, agreement, re-identification, and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil import obfuscate
from dpveil.core.photo import Photo
from dpveil.errors import RegionError, UsageError
from dpveil.faces import Attributes, Gallery
from dpveil.faces.attribute_model import VALUES, AttributeModel
from dpveil.faces.embedding import embedder, of_crop
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry import Frame
from dpveil.faces.geometry.align import of_points
from dpveil.faces.portrait import centred
from dpveil.io import read
from dpveil.io.tar import SHARD
from dpveil.mechanisms.choice.rank_choice import RandomisedResponse
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_research.embedding_attacks import Identified, identify, parrot
from dpveil_research.faces import FACE, FOLDER, aligned
from dpveil_research.plots import COLOURS, SOFT, canvas_of, label, legend, png
from dpveil_research.results import Row, to_csv
from dpveil_train.labelled import Labelled, labelled_photos

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
    image = np.asarray(read(path).image)
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
    found = [one for one in labelled_photos(shards) if isinstance(one, Labelled)]
    if not found:
        hint = "say with --data where your data sets are"
        raise UsageError(f"{data / LABELLED} holds no labelled photos", hint=hint)
    kept = found[len(found) - len(found) // HELD_OUT :]
    say(f"{len(kept)} labelled photos that were held out")
    crops = np.stack([centred(one.photo, (128, 128, 3)) for one in kept])
    return crops, {name: np.array([one.labels[name] for one in kept]) for name in kept[0].labels}


SMOOTH: Final = 0.5
"""Added to the counts of an attacker's observations, so that nothing has probability 0."""
TIES: Final = 1e-12
"""Relative difference up to which probabilities count as equal."""
Answers = Mapping[str, Int64[np.ndarray, " n"]]
Numbers = Int64[np.ndarray, " n"]
Embeddings = Float64[np.ndarray, "n d"]
Chances = Float64[np.ndarray, "people combinations"]


@dataclass(frozen=True, eq=False)
class Held:
    """An attacker's knowledge of each person: `photos` of each, their embeddings and attribute readings.

    `looks` are indices of values, people × photos for each attribute; `faces` embeds the whole gallery.
    """

    names: tuple[str, ...]
    photos: int
    embeddings: Embeddings
    looks: Answers
    faces: Embeddings

    @property
    def owners(self) -> list[str]:
        """The person on every photo."""
        return [name for name in self.names for _ in range(self.photos)]

    def expected(self, kept: tuple[str, ...]) -> Chances:
        """Return the probability of each combination of values for each person, with independent
        attributes.
        """
        rows = []
        for name in kept:
            seen = self.looks[name].reshape(len(self.names), self.photos)
            counts = np.stack([(seen == place).sum(axis=1) for place in range(len(VALUES[name]))], axis=1)
            rows.append((counts + SMOOTH) / (counts + SMOOTH).sum(axis=1, keepdims=True))
        places = list(product(*(range(row.shape[1]) for row in rows)))
        found = [math.prod(row[:, place] for row, place in zip(rows, one, strict=True)) for one in places]
        whole = np.ones(len(self.names))
        return np.stack([whole * one for one in found], axis=1)


def likelihoods(method: Attributes) -> Float64[np.ndarray, "combinations faces"]:
    """Return the probability of every face of the gallery for every combination of true values."""
    table, count = method.table, len(method.gallery.held)
    laws = [np.array(one.matrix.weights, np.float64) / 2.0**64 for one in method.responses.values()]
    shown = np.zeros((len(table), count))
    for row, numbers in enumerate(table.values()):
        shown[row, numbers] = 1 / len(numbers)
    drawn: Float64[np.ndarray, "combinations answers"] = np.ones((1, 1))
    for law in laws:
        drawn = np.asarray(np.kron(drawn, law))
    return drawn @ shown


def by_embedding(held: Held, shown: Numbers, people: list[str]) -> Identified:
    """Return the attack by the nearest mean of unprotected photos."""
    return identify(held.embeddings, held.owners, held.faces[shown], people)


def by_parrot(held: Held, released: Numbers, shown: Numbers, people: list[str]) -> Identified:
    """Return the attack by the nearest mean of released faces; `released` are draws × the attacker's
    photos.
    """
    owners = held.owners * (len(released) // len(held.owners))
    return identify(held.faces[released], owners, held.faces[shown], people)


def by_learning(held: Held, released: Numbers, shown: Numbers, people: list[str]) -> Identified:
    """Return the parrot attack that also learns how released faces of one person vary."""
    owners = held.owners * (len(released) // len(held.owners))
    return parrot(held.faces[released], owners, held.faces[shown], people)


def by_law(held: Held, method: Attributes, shown: Numbers, people: list[str]) -> Identified:
    """Return the maximum-likelihood attack that knows the gallery and the method."""
    expected = held.expected(tuple(method.responses))
    return likeliest(expected @ likelihoods(method)[:, shown], held.names, people)


def by_telling(held: Held, kept: tuple[str, ...], looks: Answers, people: list[str]) -> Identified:
    """Return the attack that sees no release but is told the attributes of the photo."""
    sizes = [len(VALUES[name]) for name in kept]
    places = np.zeros(len(people), np.int64)
    for name, size in zip(kept, sizes, strict=True):
        places = places * size + looks[name]
    return likeliest(held.expected(kept)[:, places], held.names, people)


def likeliest(
    chances: Float64[np.ndarray, "people probes"], names: tuple[str, ...], people: list[str]
) -> Identified:
    """Return the success of naming the most probable person, or one of them at random on ties."""
    best = chances >= chances.max(axis=0) * (1 - TIES)
    own = np.array([names.index(name) for name in people])
    right = best[own, np.arange(len(people))] / best.sum(axis=0)
    return Identified(right, tuple(people), 1 / len(names))


SHOWN: Final = {
    "strongest": "strongest attacker, from the picture",
    "told the attributes": "who is only told the attributes",
}
LINE: Final = 0.6
"""Height of a line of a label, relative to the least distance between settings."""
Rows = Sequence[Mapping[str, str]]


def draw_attributes(rows: Rows, costs: Rows) -> bytes:
    """Return the figure as PNG: re-identification at every setting, and probabilities against ε."""
    canvas, (left, right) = canvas_of(2)
    _attacks(left, rows)
    _prices(right, costs)
    return png(canvas)


def _attacks(axes: Any, rows: Rows) -> None:
    settings = list(dict.fromkeys(one["setting"] for one in rows if one["measure"] == "strongest"))
    places = places_of(settings)
    for number, (measure, who) in enumerate(SHOWN.items()):
        found = {one["setting"]: one for one in rows if one["measure"] == measure}
        mean, low, high = (
            [100 * float(found[s][name]) for s in settings] for name in ("mean", "low", "high")
        )
        at = [place + 0.18 * (2 * number - 1) for place in places]
        around = [
            [m - a for m, a in zip(mean, low, strict=True)],
            [b - m for m, b in zip(mean, high, strict=True)],
        ]
        axes.errorbar(mean, at, xerr=around, fmt="o", ms=4, capsize=2, color=COLOURS[number], label=who)
    chance = 100 * float(next(one["chance"] for one in rows if one["measure"] == "strongest"))
    axes.axvline(chance, color=SOFT, lw=1.2, ls=":", label="chance")
    axes.set_yticks(places, [setting.replace(",", ",\n") for setting in settings], fontsize=7)
    axes.invert_yaxis()
    label(axes, "158 people of LFW", "of releases named rightly, %", "")
    legend(axes)


def places_of(settings: Sequence[str]) -> list[float]:
    """Return the heights of the settings' labels, one line for each attribute, so that none overlap."""
    ends = list(accumulate(max(1.0, LINE * (1 + setting.count(","))) for setting in settings))
    starts = [0.0, *ends[:-1]]
    return [(start + end) / 2 for start, end in zip(starts, ends, strict=True)]


def _prices(axes: Any, costs: Rows) -> None:
    for number, size in enumerate(sorted({int(one["values"]) for one in costs})):
        points = {float(one["epsilon"]): float(one["kept"]) for one in costs if int(one["values"]) == size}
        names = ", ".join(dict.fromkeys(one["attribute"] for one in costs if int(one["values"]) == size))
        drawn = [100 * p for p in points.values()]
        axes.plot(list(points), drawn, "o-", ms=3.2, color=COLOURS[number], label=f"{size} values ({names})")
    label(axes, "What a budget buys", "ε of the attribute", "what was read is drawn, %")
    legend(axes)


EACH: Final = 10
"""Photos of each person; the attacker holds the first half, the others are released."""
SETTINGS: Final = (
    "none",
    *(f"gender={epsilon}" for epsilon in (1, 2, 4, 8)),
    *(f"{name}={epsilon}" for name in ("glasses", "beard") for epsilon in (1, 4)),
    "gender=4,age=4",
    "gender=3,age=2,perceived-race=3",
    "gender=2,age=1.5,perceived-race=1.5,pose=1.5,smile=1.5",
)
"""Values of the method's `attributes`."""
PHOTOS: Final = "gender=4,age=4"
"""The setting at which whole photos are released and searched for faces."""
DRAWS: Final = 4
"""Releases of each photo."""
PARROT_DRAWS: Final = 10
"""Releases of each of the attacker's photos from which a parrot attack learns."""
PRICES: Final = (0.5, 1, 1.5, 2, 3, 4, 6, 8)
"""ε at which the cost of one attribute is tabulated."""
SEED: Final = 6
Places = dict[str, Int64[np.ndarray, " n"]]


@dataclass(frozen=True, eq=False)
class Scene:
    """The people, the default model and gallery, and the embeddings of both."""

    people: People
    gallery: FaceGallery
    model: AttributeModel

    def method(self, attributes: str) -> Attributes:
        """Return the method at a setting."""
        return Attributes(attributes=attributes, gallery=self.gallery, model=self.model)

    @property
    def half(self) -> int:
        """The number of photos of each person that the attacker holds, which are the first ones."""
        return len(self.people.paths[0]) // 2

    @cached_property
    def known(self) -> Crops:
        """The attacker's photos, person by person."""
        return np.ascontiguousarray(self.people.crops[:, : self.half].reshape(-1, 128, 128, 3))

    @cached_property
    def probes(self) -> Crops:
        """The photos that are released, person by person."""
        return np.ascontiguousarray(self.people.crops[:, self.half :].reshape(-1, 128, 128, 3))

    @cached_property
    def owners(self) -> list[str]:
        """The person on each probe."""
        each = self.people.crops.shape[1] - self.half
        return [name for name in self.people.names for _ in range(each)]

    @cached_property
    def truth(self) -> Places:
        """The attribute values of each probe: the most frequent reading of the attacker's photos, as LFW has
        no labels.
        """
        each, read = len(self.probes) // len(self.people.names), self.model.read(self.known)
        found = {}
        for name, places in read.items():
            rows = places.reshape(-1, self.half)
            counts = np.stack([(rows == place).sum(axis=1) for place in range(len(VALUES[name]))], axis=1)
            found[name] = np.repeat(counts.argmax(axis=1), each)
        return found

    @cached_property
    def held(self) -> Held:
        """The attacker's knowledge."""
        seen = [embedded(self.known), embedded(self.faces)]
        return Held(self.people.names, self.half, seen[0], self.model.read(self.known), seen[1])

    @cached_property
    def faces(self) -> Crops:
        """What may be released: every face of the gallery."""
        return self.gallery.faces

    def released(self, attributes: str, crops: Crops, stream: str) -> Int64[np.ndarray, " n"]:
        """Return the index among `faces` of what is released for each crop."""
        shown = self.method(attributes).release(crops, bits=SeededBits(SEED, f"{attributes} {stream}"))
        return np.array([self._numbers[face.tobytes()] for face in shown])

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {face.tobytes(): number for number, face in enumerate(self.faces)}


def embedded(crops: Crops) -> Float64[np.ndarray, "n 128"]:
    """Return the embeddings of crops."""
    return np.concatenate([embedder()(of_crop(crop, FRAME)[None]) for crop in crops])


def make(data: Path, count: int | None, say: Say) -> dict[str, bytes]:
    """Return results.csv, prices.csv and a plot; `count` is the number of photos of each person.

    Needs the default model and gallery, dlib and a face detector. Raises `UsageError`.
    """
    usual = Attributes(attributes="gender=1", gallery="gallery")
    people = read_people(data, EACH if count is None else count, say)
    scene = Scene(people, usual.gallery.held, usual.model.held)
    crops, labels = read_labelled(data, say)
    rows = [*on_people(scene, say), *on_gallery(scene, say)]
    rows += [*on_photos(scene, PHOTOS, scene.method(PHOTOS), say), *on_labelled(scene, crops, labels)]
    costs = prices(scene.model, crops, labels)
    return {
        "results.csv": to_csv(rows),
        "prices.csv": to_csv(costs),
        "attributes.png": draw_attributes(rows, costs),
    }


def on_people(scene: Scene, say: Say) -> list[Row]:
    """Return the results of attackers and a classifier on releases of people's photos, at every setting."""
    rows: list[Row] = []
    clean = scene.model.read(scene.probes)
    rows += agreement(scene, "clean", {name: clean[name] for name in scene.model.values})
    held = scene.held
    found = by_embedding_of_photos(scene)
    rows.append(row("LFW", "clean", "embedding", found))
    for setting in SETTINGS:
        method = scene.method(setting)
        kept, people = tuple(method.responses), scene.owners * DRAWS
        shown = np.concatenate([scene.released(setting, scene.probes, f"probe {n}") for n in range(DRAWS)])
        parrot = [scene.released(setting, scene.known, f"parrot {n}") for n in range(PARROT_DRAWS)]
        own = np.concatenate(parrot)
        looks = {name: np.tile(places, DRAWS) for name, places in clean.items()}
        attacks = {
            "embedding": by_embedding(held, shown, people),
            "embedding, parrot": by_parrot(held, own, shown, people),
            "embedding, parrot that learns": by_learning(held, own, shown, people),
            "knows gallery and method": by_law(held, method, shown, people),
        }
        told = by_telling(held, kept, looks, people)
        best = max(attacks, key=lambda name: attacks[name].rate)
        rows += [row("LFW", setting, name, one) for name, one in attacks.items()]
        rows.append(row("LFW", setting, "strongest", attacks[best]))
        rows.append(row("LFW", setting, "told the attributes", told))
        apart = attacks[best].right.astype(float) - told.right
        rows.append(difference("LFW", setting, "strongest minus told", apart, people))
        read = scene.model.read(scene.faces)
        rows += agreement(scene, setting, {name: read[name][shown] for name in kept})
        say(setting)
    return rows


def agreement(scene: Scene, setting: str, seen: Places) -> list[Row]:
    """Return how often the values `seen` agree with those of the person, over one or more rounds of all
    probes.
    """
    rows = []
    for name, places in seen.items():
        rounds = len(places) // len(scene.owners)
        right = places == np.tile(scene.truth[name], rounds)
        found = of(right, scene.owners * rounds, 1 / len(VALUES[name]))
        rows.append(row("LFW", setting, f"{name} agrees", found))
    return rows


def by_embedding_of_photos(scene: Scene) -> Identified:
    """Return the nearest-mean attack on unprotected photos."""
    return identify(scene.held.embeddings, scene.held.owners, embedded(scene.probes), scene.owners)


def on_gallery(scene: Scene, say: Say) -> list[Row]:
    """Return in how many faces of the gallery a detector finds a face."""
    finder = Faces(margin=0)
    alone = np.array([bool(finder.detect(Photo(_framed(face)))) for face in scene.gallery.faces])
    say("detector on the gallery")
    return [row("gallery", "every face", "face found", of(alone, list(map(str, range(len(alone)))), 0.0))]


def on_photos(scene: Scene, setting: str, method: Attributes | Gallery, say: Say) -> list[Row]:
    """Return in how many photos, one per person, a detector finds a face: original and released."""
    finder, bits = Faces(margin=0), SeededBits(SEED, "photos")
    photos = [read(paths[scene.half]) for paths in scene.people.paths]
    there = [bool(finder.detect(photo)) for photo in photos]
    found = [
        bool(finder.detect(Photo(obfuscate(photo, method, regions="faces", bits=bits).image)))
        for photo, seen in zip(photos, there, strict=True)
        if seen
    ]
    say("detector on released photos")
    names = [name for name, seen in zip(scene.people.names, there, strict=True) if seen]
    return [
        row("LFW", "clean", "face found", of(np.array(there), scene.people.names, 0.0)),
        row("LFW", setting, "face found", of(np.array(found), names, 0.0)),
    ]


def on_labelled(scene: Scene, crops: Crops, labels: Places) -> list[Row]:
    """Return how often released faces have the attributes with which photos are labelled."""
    people, rows = list(map(str, range(len(crops)))), []
    clean, reads = scene.model.read(crops), scene.model.read(scene.faces)
    for name, wanted in labels.items():
        chance = 1 / len(VALUES[name])
        rows.append(row("UTKFace", "clean", f"{name} agrees", of(clean[name] == wanted, people, chance)))
    for setting in SETTINGS[1:]:
        shown = scene.released(setting, crops, "labelled")
        for name in labels:
            if name in scene.method(setting).responses:
                right = reads[name][shown] == labels[name]
                found = of(right, people, 1 / len(VALUES[name]))
                rows.append(row("UTKFace", setting, f"{name} agrees", found))
    return rows


def prices(model: AttributeModel, crops: Crops, labels: Places) -> list[Row]:
    """Return for every attribute and ε the probability that the reading is kept, and that the label is drawn.

    A misread label is drawn with probability (1 - kept) over the number of other values.
    """
    rows, read = [], model.read(crops)
    for name, words in model.values.items():
        right = float((read[name] == labels[name]).mean()) if name in labels else None
        for epsilon in PRICES:
            kept = float(RandomisedResponse(epsilon=epsilon, values=len(words)).kept)
            true = (
                "" if right is None else f"{right * kept + (1 - right) * (1 - kept) / (len(words) - 1):.4f}"
            )
            told = {"epsilon": str(epsilon), "kept": f"{kept:.4f}", "label": true}
            rows.append(
                {"attribute": name, "values": str(len(words)), **told, "odds": f"{np.exp(epsilon):.4g}"}
            )
    return rows


def of(right: np.ndarray, people: Sequence[str], chance: float) -> Identified:
    """Return rates, one per try, as an attack's result, so that its interval is over people."""
    return Identified(right, tuple(people), chance)


def row(data: str, setting: str, measure: str, found: Identified) -> Row:
    """Return a mean with its 95 % interval over people."""
    low, high = found.interval()
    return _row(data, setting, measure, (found.rate, low, high, found.chance), found.people)


def difference(data: str, setting: str, measure: str, apart: np.ndarray, people: Sequence[str]) -> Row:
    """Return the mean of differences of rates, from -1 to 1, with its 95 % interval over people."""
    half = of((apart + 1) / 2, people, 0.5)  # mapped to [0, 1], for which intervals are defined
    low, high = half.interval()
    return _row(data, setting, measure, (2 * half.rate - 1, 2 * low - 1, 2 * high - 1, 0.0), people)


def _row(data: str, setting: str, measure: str, numbers: Sequence[float], people: Sequence[str]) -> Row:
    names = ("mean", "low", "high", "chance")
    told = {name: f"{value:.5f}" for name, value in zip(names, numbers, strict=True)}
    sizes = {"tries": str(len(people)), "people": str(len(set(people)))}
    return {"data": data, "setting": setting, "measure": measure, **told, **sizes}


def _framed(face: UInt8[np.ndarray, "128 128 3"]) -> UInt8[np.ndarray, "256 256 3"]:
    """Return a face in the middle of a grey picture, as large as faces are in photos."""
    out = np.full((256, 256, 3), 128, np.uint8)
    out[64:192, 64:192] = face
    return out

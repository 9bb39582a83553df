"""Croft's thesis §6.8.2: differential privacy and k-same in one generator, figures 6.15 to 6.17."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from dpveil.assets.trained_files import default_path
from dpveil.attacks.measures import drawn_people
from dpveil.codecs import GAN, load
from dpveil.codecs.network_codecs import CLEAR
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import VALUES, AttributeModel
from dpveil.mechanisms.latent import PCABasis
from dpveil.metrics import ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.embedding_attacks import Identified, identify, parrot
from dpveil_research.faces import (
    EVERYBODY,
    FRAME,
    Crops,
    Embed,
    Say,
    embedding,
    heads,
    large,
    read_people,
    seen,
    sets_of,
)
from dpveil_research.ksame_methods import KSameM, average_codes
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_mean, clustered_share, estimate, to_csv

SEED: Final = 682
RATIO: Final = Fraction(9, 10)  # the thesis' ratio of noise to deviation at the time of release
PRIVATE: Final = PCABasis.name
SAME: Final = KSameM.name
REPLACED: Final = "head replaced"
"""The third method, for DeepPrivacy: rendered heads, drawn without a look at the photo, so that ε = 0. What
is kept of the photo is where its face is, as in every aligned crop.
"""


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    `people` of LFW at most, with as many women as there are, up to half. Of everybody's `photos` the attacker
    has releases of the first `known`, and names releases of the others. `draws` releases are made of each
    photo by differential privacy; those of k-same are all alike.
    """

    people: int = 100
    photos: int = 10
    known: int = 7
    draws: int = 3
    epsilons: tuple[int, ...] = tuple(range(100, 1001, 100))
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)


PLAN: Final = Plan()


def private(epsilon: int) -> PCABasis:
    """Return the thesis' mechanism with the box that the training codes span."""
    return PCABasis(epsilon=epsilon, ratio=RATIO, clip=0)


OVERHEAD: Final = 2
FEMALE: Final = VALUES["gender"].index("female")
Codes = Float64[np.ndarray, "n m"]
Rows = Int64[np.ndarray, " rows"]
Shares = Float64[np.ndarray, " people"]


@dataclass(frozen=True, eq=False)
class Released:
    """The releases of all photos by one method at one setting `x`; several draws if it is random."""

    method: str
    x: str
    faces: UInt8[np.ndarray, "draws n s s 3"]


@dataclass(frozen=True, eq=False)
class Scene:
    """Aligned photos at the codec's size, grey beyond what it shows; of each its person and its number among
    that person's photos, and whether the person is read as female, which the decoder is told.
    """

    faces: Crops
    people: tuple[str, ...]
    number: Int64[np.ndarray, " n"]
    female: Bool[np.ndarray, " n"]
    codec: GAN
    plan: Plan

    @cached_property
    def codes(self) -> Codes:
        return self.codec.encode(self.faces)

    def decoder(self, female: bool | None) -> Callable[[Codes], Crops]:
        """Return what decodes codes, told a public gender, or None."""
        return (
            self.codec.decode
            if female is None
            else partial(self.codec.render, gender=CLEAR if female else -CLEAR)
        )

    def by_gender(self, rows: Rows, told: bool = True) -> list[tuple[Callable[[Codes], Crops], Rows]]:
        """Return each decoder and the places in `rows` of the photos that it makes; without `told`, one."""
        if not told:
            return [(self.decoder(None), np.arange(len(rows)))]
        both = [(self.decoder(one), np.flatnonzero(self.female[rows] == one)) for one in (True, False)]
        return [(decode, places) for decode, places in both if len(places)]

    def decoded(self, rows: Rows, codes: Codes, told: bool = True) -> Crops:
        out = np.empty((len(rows), *self.faces.shape[1:]), np.uint8)
        for decode, places in self.by_gender(rows, told):
            out[places] = decode(codes[places])
        return out

    def releases(self) -> Iterator[Released]:
        """Yield the photos, their decodings, and the releases of both methods at every setting."""
        every = np.arange(len(self.faces))
        yield Released("none", "", self.faces[None])
        yield Released("codec alone", "", self.decoded(every, self.codes)[None])
        words = SeededBits(SEED, REPLACED).words(self.plan.draws * len(self.faces))
        shown = seen(heads(FRAME), self.faces.shape[1])
        drawn = shown[(words % np.uint64(len(shown))).astype(np.int64)]
        yield Released(REPLACED, "", drawn.reshape(self.plan.draws, *self.faces.shape))
        for epsilon in self.plan.epsilons:
            yield Released(PRIVATE, str(epsilon), self._private(epsilon))
        for k in self.sizes:
            yield Released(SAME, str(k), self._same(k)[None])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of groups for which there are enough people of each gender."""
        genders = [{self.people[row] for row in np.flatnonzero(self.female == one)} for one in (True, False)]
        fewest = min(len(one) for one in genders if one)
        return tuple(k for k in self.plan.groups if k <= fewest)

    def _private(self, epsilon: int) -> UInt8[np.ndarray, "draws n s s 3"]:
        mechanism, bits = private(epsilon), SeededBits(SEED, f"{epsilon}")
        out = np.empty((self.plan.draws, *self.faces.shape), np.uint8)
        for drawn in out:
            for decode, rows in self.by_gender(np.arange(len(self.faces))):
                drawn[rows] = decode(mechanism.release(self.codes[rows], self.codec.statistics, bits=bits))
        return out

    def _same(self, k: int) -> Crops:
        out = np.empty_like(self.faces)
        for number in range(self.plan.photos):
            rows = np.flatnonzero(self.number == number)
            for decode, places in self.by_gender(rows):
                out[rows[places]] = average_codes(self.codes[rows[places]], k, decode).faces
        return out


def read_scene(data: Path, plan: Plan, say: Say, own: Path | None = None) -> Scene:
    """Return the scene: LFW, or a user's `own` data set, in the space of the default `gan`.

    Of one's own, `OVERHEAD` times as many people are read, to balance genders. Raises `UsageError` if
    something is missing, or a gender has too few people for a group.
    """
    (wanted,), most = sets_of((EVERYBODY,), own), None if own is None else OVERHEAD * plan.people
    everybody = read_people(wanted, data, plan.photos, most)
    known, faces = everybody.people, everybody.crops
    say(f"{len(known)} people, {plan.photos} photos each")
    model, codec = AttributeModel.load(default_path("attributes")), load(default_path("gan"))
    if not isinstance(codec, GAN):
        raise UsageError("the default gan is another codec", hint="dpveil install faces")
    shape = faces.shape
    read = model.read(faces.reshape(-1, *shape[2:]))["gender"].reshape(shape[:2])
    female = (read == FEMALE).mean(axis=1) > 1 / 2
    chosen = balanced(female, plan.people)
    crops = faces[chosen].reshape(-1, *shape[2:])
    names = [known[row] for row in chosen for _ in range(plan.photos)]
    number = np.tile(np.arange(plan.photos), len(chosen))
    told = np.repeat(female[chosen], plan.photos)
    scene = Scene(seen(crops, codec.canvas[0]), tuple(names), number, told, codec, plan)
    if not scene.sizes:
        raise UsageError("a gender has too few people for a group", hint="take more people with --count")
    return scene


def balanced(female: Bool[np.ndarray, " people"], count: int) -> Rows:
    """Return the rows of `count` people: half of them women, if there are so many, each evenly spaced."""
    women, men = np.flatnonzero(female), np.flatnonzero(~female)
    few = min(len(women), max(count // 2, count - len(men)))
    many = min(len(men), count - few)
    return np.sort(np.concatenate([women[spaced(len(women), few)], men[spaced(len(men), many)]]))


def spaced(of: int, count: int) -> Rows:
    return np.arange(count) * of // max(1, count)


MEASURES: Final = ("named", "ssim", "gender")
"""The share of releases that the strongest attacker names; SSIM to the original; the share that the attribute
model reads as the person's gender."""
DRAWS: Final = 2000


@dataclass(frozen=True, eq=False)
class Point:
    """The measures of one method at one setting, for each person; and the strongest attack."""

    method: str
    x: str
    attack: str
    by_person: dict[str, Shares]
    people: tuple[str, ...]

    def row(self) -> Row:
        made: Row = {
            "method": self.method,
            "x": self.x,
            "people": str(len(self.people)),
            "attack": self.attack,
        }
        for name, values in self.by_person.items():
            over = clustered_mean if name == "ssim" else clustered_share
            made |= estimate(name, over(values, self.people), ".4f")
        return made


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures releases of one scene."""

    scene: Scene
    embed: Embed = field(default_factory=embedding)
    model: AttributeModel = field(default_factory=lambda: AttributeModel.load(default_path("attributes")))

    def point(self, released: Released) -> Point:
        attacks = self.attacks(released)
        best = max(attacks, key=lambda name: attacks[name].rate)
        scene, probes = self.scene, self._probes
        shown = released.faces[:, probes]
        pairs = [(face, one) for drawn in shown for face, one in zip(scene.faces[probes], drawn, strict=True)]
        likeness = np.array([ssim(face, one, data_range=255) for face, one in pairs])
        read = self.model.read(large(shown.reshape(-1, *shown.shape[2:])))["gender"] == FEMALE
        kept = read == np.tile(scene.female[probes], len(shown))
        names = np.tile(np.array(scene.people)[probes], len(shown))
        people, place = np.unique(names, return_inverse=True)
        values = zip(MEASURES, (attacks[best].right, likeness, kept), strict=True)
        by = {name: np.bincount(place, weights=one) / np.bincount(place) for name, one in values}
        return Point(released.method, released.x, best, by, tuple(people.tolist()))

    def attacks(self, one: Released) -> dict[str, Identified]:
        """Return the results of attackers: one who has photos, and those who have releases of the same."""
        known, names = ~self._probes, np.array(self.scene.people)
        probes, right = self._seen(one, self._embedded, self._probes)
        photos = self._embedded(self.scene.faces[known])
        found = {"embedding": identify(photos, names[known].tolist(), probes, right)}
        for name, view in (("embedding", self._embedded), ("codes", self.scene.codec.encode)):
            both = (self._seen(one, view, rows) for rows in (known, self._probes))
            found[f"{name}, parrot"] = parrot(*next(both), *next(both))
        return found

    def _seen(
        self, one: Released, view: Callable[[Crops], Codes], rows: np.ndarray
    ) -> tuple[Codes, list[str]]:
        """Return what an attacker sees of every release of these photos, and their people."""
        crops = one.faces[:, rows]
        names = np.tile(np.array(self.scene.people)[rows], len(crops)).tolist()
        return view(crops.reshape(-1, *crops.shape[2:])), names

    def _embedded(self, crops: Crops) -> Float64[np.ndarray, "n 128"]:
        return self.embed(large(crops))

    @property
    def _probes(self) -> Bool[np.ndarray, " n"]:
        return np.asarray(self.scene.number >= self.scene.plan.known)


def ahead(private: Sequence[Point], same: Sequence[Point]) -> list[Row]:
    """Return how far the curve of differential privacy is above k-same at the risk of each of its points.

    The curve joins the points by lines, in order of risk; beyond its ends the cells are empty. Intervals are
    95 %, by resampling people in all points alike, with the attacks as they were chosen.
    """
    people = private[0].people
    times = drawn_people(len(people), DRAWS, SEED) / len(people)
    times = np.vstack([np.full(len(people), 1 / len(people)), times])
    curve = {name: np.stack([times @ one.by_person[name] for one in private], axis=1) for name in MEASURES}
    found = []
    for point in same:
        own = {name: times @ point.by_person[name] for name in MEASURES}
        inside = curve["named"][0].min() <= own["named"][0] <= curve["named"][0].max()
        for name in MEASURES[1:]:
            more = [
                between(risk, *at) - other
                for risk, other, *at in zip(own["named"], own[name], curve["named"], curve[name], strict=True)
            ]
            low, high = np.quantile(more[1:], [0.025, 0.975])
            about = {"k": point.x, "named": f"{own['named'][0]:.4f}", "measure": name}
            ends = estimate("ahead", (more[0], float(low), float(high)), ".4f")
            found.append(about | (ends if inside else dict.fromkeys(ends, "")))
    return found


def between(risk: float, risks: np.ndarray, values: np.ndarray) -> float:
    """Return the value at a risk on the line through points in order of risk."""
    order = np.argsort(risks, kind="stable")
    return float(np.interp(risk, risks[order], values[order]))


NAMES: Final = {
    PRIVATE: "differential privacy, ε beside",
    SAME: "k-same-m, k beside",
    REPLACED: f"{REPLACED}, ε = 0",
}


def plot(rows: Sequence[Row], dataset: str = "LFW") -> bytes:
    """Return risk over ε, and SSIM and gender over risk, as PNG. Raises `UsageError` without matplotlib."""
    risk = Panel("named", "ε of the metric promise", "Risk (figure 6.15)")
    risk.curve("differential privacy", rows, method=PRIVATE)
    risk.level("photos as they are", rows, "-.", method="none")
    risk.level("encoded and decoded", rows, "--", method="codec alone")
    risk.level("chance", 1 / int(rows[0]["people"]))
    panels = [risk]
    for measure, title in (("ssim", "Quality (figure 6.16)"), ("gender", "Utility (figure 6.17)")):
        words = "share of releases named by the strongest attacker"
        panels.append(Panel(measure, words, title, beside=True))
        for method, name in NAMES.items():
            panels[-1].curve(name, rows, x="named", method=method)
    title = f"{rows[0]['people']} people of {dataset}; 95 % intervals over people"
    return figure(title, *panels)


def make(
    data: Path,
    count: int | None = None,
    told: Say = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv, ahead.csv and trade-off.png; with at most `count` people, of LFW or of `own`.

    Needs the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is missing.
    """
    if count is not None:
        plan = replace(plan, people=min(count, plan.people))
    scene = read_scene(data, plan, told, own)
    measures, points = Measures(scene), []
    for released in scene.releases():
        points.append(measures.point(released))
        told(f"{released.method} {released.x}".strip())
    by_method = {name: [one for one in points if one.method == name] for name in (PRIVATE, SAME)}
    rows = [point.row() for point in points]
    more = ahead(by_method[PRIVATE], by_method[SAME])
    shown = plot(rows, own.name if own else "LFW")
    return {"results.csv": to_csv(rows), "ahead.csv": to_csv(more), "trade-off.png": shown}

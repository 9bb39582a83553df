"""Croft's thesis §6.8.2: differential privacy and k-same in one generator, figures 6.15 to 6.17."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from dpveil.assets.store import default_path
from dpveil.attacks.resampling import drawn_people
from dpveil.codecs import GAN, load
from dpveil.codecs.neural import CLEAR, ellipse_mask
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import VALUES, AttributeModel
from dpveil.faces.head_gallery import default_heads
from dpveil.faces.released import HeadFace
from dpveil.mechanisms.latent import PCABasis
from dpveil.metrics import ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.embedding_attacks import Identified, identify, parrot
from dpveil_research.faces import Say, read_people
from dpveil_research.ksame_data import FRAME, SIDE, Embed, Set, embedding
from dpveil_research.ksame_data import read_people as read_own
from dpveil_research.ksame_methods import KSameM
from dpveil_research.plots import Drawing, Figure, Line, draw
from dpveil_research.results import Row, clustered_mean, clustered_share, estimate, to_csv

SEED: Final = 682
RATIO: Final = Fraction(9, 10)
"""The thesis' ratio of noise to deviation at the time of release."""
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
GREY: Final = 128
FEMALE: Final = VALUES["gender"].index("female")
Crops = UInt8[np.ndarray, "n s s 3"]
Codes = Float64[np.ndarray, "n m"]
Rows = Int64[np.ndarray, " rows"]


@dataclass(frozen=True)
class Told:
    """Codes whose decoder is told a public gender, as k-same and differential privacy both use it."""

    codec: GAN
    female: bool
    in_the_clear: ClassVar[tuple[str, ...]] = ("gender, which the decoder is told",)

    def encode(self, crops: Crops) -> Codes:
        """Return the codes of faces."""
        return self.codec.encode(crops)

    def decode(self, codes: Codes) -> Crops:
        """Return the faces of codes, of this gender."""
        return self.codec.render(codes, gender=CLEAR if self.female else -CLEAR)


@dataclass(frozen=True, eq=False)
class Released:
    """The releases of all photos by one method at one setting `x`; several draws if it is random."""

    method: str
    x: str
    faces: UInt8[np.ndarray, "draws n s s 3"]


@dataclass(frozen=True, eq=False)
class Scene:
    """Aligned photos at the codec's size, grey beyond what it shows; of each its person and its number among
    that person's photos, and whether the person is read as female.
    """

    faces: Crops
    people: tuple[str, ...]
    number: Int64[np.ndarray, " n"]
    female: Bool[np.ndarray, " n"]
    codec: GAN
    plan: Plan

    @cached_property
    def codes(self) -> Codes:
        """The codes of all photos."""
        return self.codec.encode(self.faces)

    def releases(self) -> Iterator[Released]:
        """Yield the photos, their decodings, and the releases of both methods at every setting."""
        yield Released("none", "", self.faces[None])
        alone = np.empty_like(self.faces)
        for space, rows in self._genders():
            alone[rows] = space.decode(self.codes[rows])
        yield Released("codec alone", "", alone[None])
        yield Released(REPLACED, "", self._replaced())
        for epsilon in self.plan.epsilons:
            yield Released(PRIVATE, str(epsilon), self._private(epsilon))
        for k in self.sizes:
            yield Released(SAME, str(k), self._same(k)[None])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of groups for which there are enough people of each gender."""
        fewest = min(len({self.people[row] for row in rows}) for _, rows in self._genders())
        return tuple(k for k in self.plan.groups if k <= fewest)

    def _genders(self, number: int | None = None) -> list[tuple[Told, Rows]]:
        """Return the rows of each gender, of all photos or of everybody's photo of this number."""
        here = np.ones(len(self.people), bool) if number is None else self.number == number
        both = [
            (Told(self.codec, told), np.flatnonzero(here & (self.female == told))) for told in (True, False)
        ]
        return [(space, rows) for space, rows in both if len(rows)]

    def _replaced(self) -> UInt8[np.ndarray, "draws n s s 3"]:
        """Return rendered heads, each as likely as any other for every photo."""
        words = SeededBits(SEED, REPLACED).words(self.plan.draws * len(self.faces))
        heads = nobodies(self.faces.shape[1])
        shown: UInt8[np.ndarray, "draws n s s 3"] = heads[(words % np.uint64(len(heads))).astype(np.int64)]
        return shown.reshape(self.plan.draws, *self.faces.shape)

    def _private(self, epsilon: int) -> UInt8[np.ndarray, "draws n s s 3"]:
        mechanism, bits = private(epsilon), SeededBits(SEED, f"{epsilon}")
        out = np.empty((self.plan.draws, *self.faces.shape), np.uint8)
        for drawn in out:
            for space, rows in self._genders():
                codes = mechanism.release(self.codes[rows], self.codec.statistics, bits=bits)
                drawn[rows] = space.decode(codes)
        return out

    def _same(self, k: int) -> Crops:
        """Return the releases of k-same: one gallery for each number, with one photo of everybody."""
        out = np.empty_like(self.faces)
        for number in range(self.plan.photos):
            for space, rows in self._genders(number):
                method, names = KSameM(k=k, space=space), [self.people[row] for row in rows]
                out[rows] = method.release_codes(self.codes[rows], people=names).faces
        return out


def read_scene(data: Path, plan: Plan, say: Say, own: Path | None = None) -> Scene:
    """Return the scene: LFW, or a user's `own` data set, in the space of the default `gan`.

    Of one's own, `OVERHEAD` times as many people are read, to balance genders. Raises `UsageError` if
    something is missing, or a gender has too few people for a group.
    """
    if own is None:
        known, faces = read_people(data, plan.photos, say)
    else:
        theirs = read_own(Set.of(own), data, plan.photos, OVERHEAD * plan.people)
        known, faces = theirs.people, theirs.crops
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
    """Return `count` evenly spaced numbers below `of`."""
    return np.arange(count) * of // max(1, count)


def seen(crops: Crops, side: int) -> Crops:
    """Return crops of this side as every measure sees them: grey beyond the ellipse that codecs show."""
    small = np.stack([cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA) for crop in crops])
    small[:, ~ellipse_mask(side)] = GREY
    return small


def nobodies(side: int) -> Crops:
    """Return every rendered head, aligned as photos are and of this side."""
    gallery = default_heads()
    every = [HeadFace(gallery, np.array([person]), person) for person in range(len(gallery))]
    return seen(np.stack([head.crop(FRAME) for head in every]), side)


MEASURES: Final = ("named", "ssim", "gender")
"""The share of releases that the strongest attacker names; SSIM to the original; the share that the attribute
model reads as the person's gender."""
DRAWS: Final = 2000
Shares = Float64[np.ndarray, " people"]
Labelled = tuple[Float64[np.ndarray, "n d"], list[str]]


@dataclass(frozen=True, eq=False)
class Point:
    """The measures of one method at one setting, for each person; and the strongest attack."""

    method: str
    x: str
    attack: str
    by_person: dict[str, Shares]
    people: tuple[str, ...]

    def row(self) -> Row:
        """Return the means with 95 % intervals over people."""
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
        """Return all measures of releases."""
        attacks = {name: attack(released) for name, attack in self._attacks().items()}
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

    def _attacks(self) -> dict[str, Callable[[Released], Identified]]:
        """Return the attackers: one who has photos, and those who have releases of the same photos."""
        return {
            "embedding": lambda one: identify(
                *self._originals, *self._view(self._embedded, one, known=False)
            ),
            "embedding, parrot": lambda one: self._parrot(self._embedded, one),
            "codes, parrot": lambda one: self._parrot(self.scene.codec.encode, one),
        }

    def _parrot(self, view: Callable[[Crops], Float64[np.ndarray, "n d"]], one: Released) -> Identified:
        return parrot(*self._view(view, one, known=True), *self._view(view, one, known=False))

    @property
    def _originals(self) -> Labelled:
        known = ~self._probes
        return self._embedded(self.scene.faces[known]), np.array(self.scene.people)[known].tolist()

    def _view(
        self, view: Callable[[Crops], Float64[np.ndarray, "n d"]], one: Released, *, known: bool
    ) -> Labelled:
        """Return what an attacker sees of every release of the known photos or of the probes, and names."""
        rows = ~self._probes if known else self._probes
        crops = one.faces[:, rows]
        names = np.tile(np.array(self.scene.people)[rows], len(crops)).tolist()
        return view(crops.reshape(-1, *crops.shape[2:])), names

    def _embedded(self, crops: Crops) -> Float64[np.ndarray, "n 128"]:
        return self.embed(large(crops))

    @property
    def _probes(self) -> np.ndarray:
        return np.asarray(self.scene.number >= self.scene.plan.known)


def large(crops: Crops) -> Crops:
    """Return crops at the size at which embeddings and attributes are read."""
    size = (SIDE[1], SIDE[0])
    return np.stack([cv2.resize(crop, size, interpolation=cv2.INTER_CUBIC) for crop in crops])


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


RISK: Final = "share of releases named by the strongest attacker"
NAMES: Final = {PRIVATE: "differential privacy, ε beside", SAME: "k-same-m, k beside"}


def figure(rows: Sequence[Row], dataset: str = "LFW") -> bytes:
    """Return risk over ε, and SSIM and gender over risk, as PNG. Raises `UsageError` without matplotlib."""
    drawing = Drawing()
    drawing.add("ε", Line("differential privacy", 0), rows, "named", method=PRIVATE)
    drawing.add("ε", Line("photos as they are", 0, "-."), rows, "named", x="", method="none")
    drawing.add("ε", Line("encoded and decoded", 0, "--"), rows, "named", x="", method="codec alone")
    drawing.level("ε", Line("chance", 0, ":"), "named", 1 / int(rows[0]["people"]))
    for measure in ("ssim", "gender"):
        for colour, (method, name) in enumerate(NAMES.items()):
            drawing.add(measure, Line(name, colour), rows, measure, x="named", method=method)
        drawing.add(measure, Line(f"{REPLACED}, ε = 0", 3), rows, measure, x="named", method=REPLACED)
    panels = (
        drawing.panel("ε", "named", "ε of the metric promise", "Risk (figure 6.15)"),
        drawing.panel("ssim", "ssim", RISK, "Quality (figure 6.16)", beside=True),
        drawing.panel("gender", "gender", RISK, "Utility (figure 6.17)", beside=True),
    )
    title = f"{rows[0]['people']} people of {dataset}; 95 % intervals over people"
    return draw(Figure("trade-off", title, panels), drawing.table)


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
    plot = figure(rows, own.name if own else "LFW")
    return {"results.csv": to_csv(rows), "ahead.csv": to_csv(more), "trade-off.png": plot}

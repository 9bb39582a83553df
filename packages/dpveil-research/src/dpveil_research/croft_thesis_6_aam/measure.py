"""Who is named in what is shown, by an attacker who has photos and by one who has releases of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64

from dpveil.attacks import Identified, identify, parrot
from dpveil_research.croft_2022_faces.plan import PRIVATE, SAME
from dpveil_research.croft_thesis_6_aam.plan import LOOKS
from dpveil_research.croft_thesis_6_aam.scene import Crops, Scene
from dpveil_research.intervals import clustered_share
from dpveil_research.ksame.faces import Embed, embedding
from dpveil_research.results import Row, estimate

FACES, SIGHT = "recogniser", "parrot"
"""dlib's embeddings and each person's mean, as the thesis' network learned from photos; and a discriminant of
small pictures, which sees hair and background, and learned from releases of the attacker's photos.
"""
SMALL: Final = 12
"""Side of these pictures in pixels."""
PHOTOS, DECODED = "photos as they are", "decoded"
Shares = Float64[np.ndarray, " people"]


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
        """What the strongest attacker names."""
        return self.by_attack[self.strongest]

    def row(self, dataset: str) -> Row:
        """Return the rates with 95 % intervals over people."""
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
    """Return crops as small pictures, in a row each."""
    sides = (SMALL, SMALL)
    shrunk = [cv2.resize(crop, sides, interpolation=cv2.INTER_AREA).ravel() for crop in crops]
    return np.stack(shrunk).astype(np.float64)

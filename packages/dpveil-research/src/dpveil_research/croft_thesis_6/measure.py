"""Who is named in releases, and what they keep: by person, so that intervals resample people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64

from dpveil.assets.store import default_path
from dpveil.attacks import Identified, identify, parrot
from dpveil.attacks.resampling import drawn_people
from dpveil.faces.attribute_model import AttributeModel
from dpveil.metrics import ssim
from dpveil_research.croft_thesis_6.plan import SEED
from dpveil_research.croft_thesis_6.scene import FEMALE, Crops, Released, Scene
from dpveil_research.intervals import clustered_mean, clustered_share
from dpveil_research.ksame.faces import SIDE, Embed, embedding
from dpveil_research.results import Row, estimate

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

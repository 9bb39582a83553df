"""Who is named and whose gender is read, person by person, so that differences are of the same people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.assets.store import default_path
from dpveil.attacks import parrot
from dpveil.codecs import GAN
from dpveil.faces.attribute_model import AttributeModel
from dpveil.mechanisms.ksame import KSameM
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_2022_faces.plan import BASIC, MODELS, PRIVATE, SAME, SEED, Plan
from dpveil_research.croft_thesis_6.measure import large
from dpveil_research.croft_thesis_6.scene import FEMALE, Codes, Crops, Rows, Scene, Told
from dpveil_research.ksame.faces import Embed, embedding
from dpveil_research.ksame.two import Clues, divided

MEASURES: Final = ("named", "parrot", "one", "two", "gender")
"""Named by an attacker who has other photos; by one who learned from releases of them; in one release and in
two of one photo; and the share whose gender is read as in the originals.

For k-same, `one` and `two` are of the people in both galleries, and that attacker knows the groups.
"""
Shares = Float64[np.ndarray, " people"]
Away = Float64[np.ndarray, "n people"]


@dataclass(frozen=True, eq=False)
class Point:
    """The measures of a method at a setting, for each person; nan for people who are not in it."""

    method: str
    model: str
    x: str
    by_person: dict[str, Shares]


@dataclass(frozen=True, eq=False)
class Attacked:
    """One photo of everybody in `scene`, released by both methods and attacked."""

    scene: Scene
    plan: Plan
    embed: Embed = field(default_factory=embedding)
    reader: AttributeModel = field(default_factory=lambda: AttributeModel.load(default_path("attributes")))

    def points(self) -> Iterator[Point]:
        """Yield the photos as they are, decoded ones, and both methods at every setting."""
        faces = self.scene.faces[self.probes]
        yield Point("none", "", "", self._plain(faces[None]))
        for model in MODELS:
            yield Point("codec alone", model, "", self._plain(self._decoded(model, self.probes)[None]))
        for epsilon in self.plan.epsilons:
            for model in MODELS:
                yield self._private(model, epsilon)
        for k in self.plan.groups:
            for model in MODELS:
                yield self._same(model, k)

    @cached_property
    def probes(self) -> Rows:
        """The rows of the protected photos, one of each person."""
        return np.flatnonzero(self.scene.number == self.plan.known)

    @cached_property
    def known(self) -> Rows:
        """The rows of the attacker's photos."""
        return np.flatnonzero(self.scene.number < self.plan.known)

    @cached_property
    def names(self) -> Rows:
        """The number of the person on each photo."""
        own: Int64[np.ndarray, " n"] = np.unique(self.scene.people, return_inverse=True)[1].astype(np.int64)
        return own

    @cached_property
    def means(self) -> Float64[np.ndarray, "people 128"]:
        """The mean embedding of each person's photos that the attacker has."""
        seen, names = self.embed(large(self.scene.faces[self.known])), self.names[self.known]
        return np.stack([seen[names == person].mean(axis=0) for person in range(len(self.probes))])

    def away(self, faces: Crops) -> Away:
        """Return the distance of faces from everybody's mean."""
        found: Away = cdist(self.embed(large(faces)), self.means)
        return found

    def _plain(self, shown: np.ndarray) -> dict[str, Shares]:
        """Return who is named and whose gender is read, in draws × people × pixels."""
        own = self.names[self.probes]
        named = np.mean([self.away(faces).argmin(axis=1) == own for faces in shown], axis=0)
        read = [self.reader.read(large(faces))["gender"] == FEMALE for faces in shown]
        gender = np.mean(np.array(read) == self.scene.female[self.probes], axis=0)
        return {"named": named, "gender": gender}

    def _parts(self, model: str, rows: Rows) -> list[tuple[GAN | Told, Rows]]:
        """Return the decoders of a model and the places in `rows` of the photos that each one makes."""
        if model == BASIC:
            return [(self.scene.codec, np.arange(len(rows)))]
        female = self.scene.female[rows]
        both = [(Told(self.scene.codec, told), np.flatnonzero(female == told)) for told in (True, False)]
        return [(space, places) for space, places in both if len(places)]

    def _decoded(self, model: str, rows: Rows, codes: Codes | None = None) -> Crops:
        given = self.scene.codes[rows] if codes is None else codes
        out = np.empty((len(rows), *self.scene.faces.shape[1:]), np.uint8)
        for space, places in self._parts(model, rows):
            out[places] = space.decode(given[places])
        return out

    def _drawn(self, model: str, epsilon: int, rows: Rows, stream: str) -> Crops:
        mechanism = CroftMetric(epsilon=Fraction(epsilon), clip=0)
        bits = SeededBits(SEED, f"{model} {epsilon} {stream}")
        codes = mechanism.release(self.scene.codes[rows], self.scene.codec.statistics, bits=bits)
        return self._decoded(model, rows, codes)

    def _private(self, model: str, epsilon: int) -> Point:
        count = 2 * self.plan.pairs if model == BASIC else self.plan.pairs
        shown = np.stack([self._drawn(model, epsilon, self.probes, f"probe {i}") for i in range(count)])
        found = self._plain(shown)
        if model == BASIC:
            own = self.names[self.probes]
            away = np.stack([self.away(faces) for faces in shown])
            both = away[: self.plan.pairs] + away[self.plan.pairs :]
            found["one"] = found["named"]
            found["two"] = (both.argmin(axis=2) == own).mean(axis=0)
            found["parrot"] = self._parrot(self._drawn(model, epsilon, self.known, "parrot"), shown)
        return Point(PRIVATE, model, str(epsilon), found)

    def _parrot(self, learned: Crops, shown: np.ndarray) -> Shares:
        """Return who is named by a discriminant of embeddings that learned from releases."""
        names = [str(one) for one in self.names]
        told = [names[row] for row in self.known]
        right = np.tile([names[row] for row in self.probes], len(shown)).tolist()
        probes = self.embed(large(shown.reshape(-1, *shown.shape[2:])))
        found = parrot(self.embed(large(learned)), told, probes, right)
        shares: Shares = np.asarray(found.right, np.float64).reshape(len(shown), -1).mean(axis=0)
        return shares

    def _same(self, model: str, k: int) -> Point:
        shown = np.empty((len(self.probes), *self.scene.faces.shape[1:]), np.uint8)
        for space, places in self._parts(model, self.probes):
            shown[places] = self._grouped(space, self.probes[places], k)[0]
        found = self._plain(shown[None])
        return Point(SAME, model, str(k), found | (self._composed(k) if model == BASIC else {}))

    def _grouped(self, space: GAN | Told, rows: Rows, k: int) -> tuple[Crops, Rows]:
        people = [str(one) for one in self.names[rows]]
        hidden = KSameM(k=k, space=space).release_codes(self.scene.codes[rows], people=people)
        return hidden.faces, hidden.group_of

    def _composed(self, k: int) -> dict[str, Shares]:
        """Return who is named in one and in two galleries' releases by an attacker who knows the groups."""
        count = len(self.probes)
        right: dict[str, Shares] = {name: np.zeros(count) for name in ("one", "two")}
        times = np.zeros(count)
        for split in range(self.plan.splits):
            *both, shared = divided(count, SeededBits(SEED, f"split {split}"))
            clues = Clues(np.ones((len(shared), count), bool), np.zeros((len(shared), count)))
            for name, gallery in zip(right, both, strict=True):
                faces, group = self._grouped(self.scene.codec, self.probes[gallery], k)
                places, together = np.searchsorted(gallery, shared), np.zeros((len(shared), count), bool)
                together[:, gallery] = group[places][:, None] == group[None]
                clues.add(together, self.away(faces[places]))
                right[name][shared] += clues.right(shared)
            times[shared] += 1
        met = np.where(times > 0, times, np.nan)
        return {name: values / met for name, values in right.items()}

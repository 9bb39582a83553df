"""People, their gender, and what both methods make of their photos in the space of one `gan`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from dpveil.assets.store import default_path
from dpveil.codecs import GAN, load
from dpveil.codecs.gan import CLEAR
from dpveil.codecs.neural import shown
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import VALUES, AttributeModel
from dpveil.mechanisms.ksame import KSameM
from dpveil.noise.bits import SeededBits
from dpveil_research.attributes_data import Say, read_people
from dpveil_research.croft_thesis_6.plan import PRIVATE, SAME, SEED, Plan, private

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


def read_scene(data: Path, plan: Plan, say: Say) -> Scene:
    """Return the scene: LFW in the space of the default `gan`.

    Raises `UsageError` if either is missing, or a gender has too few people for a group.
    """
    everybody = read_people(data, plan.photos, say)
    model, codec = AttributeModel.load(default_path("attributes")), load(default_path("gan"))
    if not isinstance(codec, GAN):
        raise UsageError("the default gan is another codec", hint="dpveil install faces")
    shape = everybody.crops.shape
    read = model.read(everybody.crops.reshape(-1, *shape[2:]))["gender"].reshape(shape[:2])
    female = (read == FEMALE).mean(axis=1) > 1 / 2
    chosen = balanced(female, plan.people)
    crops = everybody.crops[chosen].reshape(-1, *shape[2:])
    names = [everybody.names[row] for row in chosen for _ in range(plan.photos)]
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
    small[:, ~shown(side)] = GREY
    return small

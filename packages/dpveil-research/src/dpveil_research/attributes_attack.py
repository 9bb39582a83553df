"""Re-identification attacks on the attributes method, and the yardstick of knowing the attributes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.attacks import Identified, identify, parrot
from dpveil.faces import Attributes
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.face_gallery import NO_GLASSES
from dpveil.faces.geometry.spectacles import STYLES

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
    """Return the probability of every face for every combination of true values: of the gallery's own, and
    then in each style of spectacles.
    """
    table, count = method.table, len(method.gallery.held)
    laws = [np.array(one.matrix.weights, np.float64) / 2.0**64 for one in method.responses.values()]
    shown = np.zeros((len(table), count * (1 + len(STYLES))))
    for row, (answer, numbers) in enumerate(table.items()):
        styles = method.styles(answer)
        for style in styles:
            shown[row, numbers + count * (style - NO_GLASSES)] = 1 / len(numbers) / len(styles)
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

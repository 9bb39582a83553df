"""Closed-set re-identification by embeddings: which of the known people is it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.attacks.resampling import Interval, by_person
from dpveil.errors import InvalidParameter

Embeddings = Float64[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Identified:
    """What an attacker made of each probe: `right` says whether its nearest person is the true one.

    `chance` is one in the number of people. Probes without a face are wrong, and never left out.
    """

    right: Bool[np.ndarray, " probes"]
    people: tuple[str, ...]
    chance: float

    @property
    def rate(self) -> float:
        """The share of probes that were named rightly."""
        return float(self.right.mean())

    def interval(self, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
        """Return the ends of a bootstrap interval that draws people, with all their probes.

        Where all probes are right, or none, every draw is alike: the end on the inside is then the exact one
        (Clopper-Pearson) for as many independent probes as there are people.
        """
        return by_person(self.right.astype(np.float64), self.people, draws=draws, level=level, seed=seed)


@dataclass(frozen=True, eq=False)
class Known:
    """The attacker's people, in alphabetical order, and the mean embedding of each; NaN where all are NaN."""

    names: tuple[str, ...]
    means: Float64[np.ndarray, "people d"]

    def distances(self, probes: Embeddings) -> Float64[np.ndarray, "probes people"]:
        """Return distances of probes to means, infinite where either is NaN."""
        found = cdist(probes, self.means)
        away: Float64[np.ndarray, "probes people"] = np.where(np.isfinite(found), found, np.inf)
        return away

    def places(self, people: Sequence[str]) -> Int64[np.ndarray, " n"]:
        """Return the row of each person. Raises `InvalidParameter` for one who is not known."""
        missing = sorted(set(people) - set(self.names))
        if missing:
            problem = f"of the probes are not all known to the attacker: {len(missing)} are missing"
            raise InvalidParameter(
                "people", None, problem, hint="closed-set attacks need photos of everybody"
            )
        rows = {name: row for row, name in enumerate(self.names)}
        return np.array([rows[name] for name in people], np.int64)


def means_of(known: Embeddings, people: Sequence[str]) -> Known:
    """Return the mean embedding of everybody; photos without a face (NaN) do not count.

    Raises `InvalidParameter` where there is not one name for each embedding, or none at all.
    """
    check_named("known", known, people)
    names, place = np.unique(np.asarray(people), return_inverse=True)
    there = np.isfinite(known).all(axis=1)
    sums, counts = np.zeros((len(names), known.shape[1])), np.bincount(place[there], minlength=len(names))
    np.add.at(sums, place[there], known[there])
    with np.errstate(invalid="ignore"):
        return Known(tuple(map(str, names)), sums / counts[:, None])


def check_named(what: str, embeddings: Embeddings, people: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless there is one name for each of one or more embeddings."""
    if embeddings.ndim != 2 or len(embeddings) != len(people) or not len(people):
        problem = f"of shape {embeddings.shape} do not match {len(people)} names"
        raise InvalidParameter(what, None, problem, hint="give a row and a name for each photo, n × d")


def identify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return whom the nearest mean embedding names for each probe; a probe of NaN is nobody, and wrong.

    `known` are the attacker's own pictures, of other photos than the probes' originals (or of released ones:
    see `parrot`). Everybody of the probes has to be among the known. Raises `InvalidParameter`.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    return nearest(everybody, probes, people)


def nearest(everybody: Known, probes: Embeddings, people: Sequence[str]) -> Identified:
    """Return whom the nearest mean names for each probe, in the space of the means."""
    true, away = everybody.places(people), everybody.distances(probes)
    found = np.where(np.isfinite(away).any(axis=1), away.argmin(axis=1), -1)
    return Identified(found == true, tuple(people), 1 / len(everybody.names))

"""Closed-set re-identification by embeddings: which of the known people does a probe show?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.spatial.distance import cdist

from dpveil.attacks.resampling import Interval, by_person
from dpveil.core.arrays import Bool, Float64, Int64
from dpveil.errors import InvalidParameter

Embeddings = Float64[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Identified:
    """The result of identification: `right` says for each probe whether the nearest person is the true one.

    `people` are the true names and `chance` is one in the number of people. Probes without a face count as
    wrong.
    """

    right: Bool[np.ndarray, " probes"]
    people: tuple[str, ...]
    chance: float

    @property
    def rate(self) -> float:
        """The rank-1 identification rate: the share of probes that were identified correctly."""
        return float(self.right.mean())

    def interval(self, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
        """Return a percentile bootstrap interval of `rate` that resamples people with all their probes.

        If all probes are right, or none, all draws are equal; the inner end is then the exact one
        (Clopper-Pearson) for as many independent probes as there are people.
        """
        return by_person(self.right.astype(np.float64), self.people, draws=draws, level=level, seed=seed)


@dataclass(frozen=True, eq=False)
class Known:
    """The people known to the attacker, sorted by name, and the mean embedding of each; NaN without one."""

    names: tuple[str, ...]
    means: Float64[np.ndarray, "people d"]

    def distances(self, probes: Embeddings) -> Float64[np.ndarray, "probes people"]:
        """Return the Euclidean distances of probes to means, infinite where either is NaN."""
        found = cdist(probes, self.means)
        return np.where(np.isfinite(found), found, np.inf)

    def places(self, people: Sequence[str]) -> Int64[np.ndarray, " n"]:
        """Return the row of each person; raises `InvalidParameter` for one who is not known."""
        missing = sorted(set(people) - set(self.names))
        if missing:
            problem = f"of the probes are not all known to the attacker: {len(missing)} are missing"
            raise InvalidParameter(
                "people", None, problem, hint="closed-set attacks need photos of everybody"
            )
        rows = {name: row for row, name in enumerate(self.names)}
        return np.array([rows[name] for name in people], np.int64)


def means_of(known: Embeddings, people: Sequence[str]) -> Known:
    """Return the mean embedding of each person, ignoring photos without a face (NaN).

    Raises `InvalidParameter` unless there is one name for each embedding, and at least one.
    """
    check_named("known", known, people)
    names, place = np.unique(np.asarray(people), return_inverse=True)
    there = np.isfinite(known).all(axis=1)
    sums, counts = np.zeros((len(names), known.shape[1])), np.bincount(place[there], minlength=len(names))
    np.add.at(sums, place[there], known[there])
    with np.errstate(invalid="ignore"):
        return Known(tuple(map(str, names)), sums / counts[:, None])


def check_named(what: str, embeddings: Embeddings, people: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless there is one name for each embedding, and at least one."""
    if embeddings.ndim != 2 or len(embeddings) != len(people) or not len(people):
        problem = f"of shape {embeddings.shape} do not match {len(people)} names"
        raise InvalidParameter(what, None, problem, hint="give a row and a name for each photo, n × d")


def identify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of identifying each probe as the person with the nearest mean embedding.

    `known` (n × d) are embeddings of the attacker's photos, which are not the probes' originals; for released
    photos see `parrot`. Every person of the probes must be known. A probe of NaN counts as wrong. Raises
    `InvalidParameter`.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    return nearest(everybody, probes, people)


def nearest(everybody: Known, probes: Embeddings, people: Sequence[str]) -> Identified:
    """Return the result of identifying each probe as the person with the nearest mean."""
    true, away = everybody.places(people), everybody.distances(probes)
    found = np.where(np.isfinite(away).any(axis=1), away.argmin(axis=1), -1)
    return Identified(found == true, tuple(people), 1 / len(everybody.names))


LEAST: Final = 1e-3
"""Least shrinkage, so that no direction has zero scatter."""


def parrot(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of an attacker who learns from released photos of everybody.

    `known` (n × d) are embeddings of photos released by the method under attack, which are not the probes.
    Embeddings are whitened by the scatter within people (Fisher's linear discriminant with shrinkage), then
    the nearest mean decides. With one photo of each person this is `identify` on released photos. A probe of
    NaN counts as wrong. Raises `InvalidParameter`. Source: Newton, Sweeney & Malin 2005; Croft 2022 §6.4.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    turn = whitening(known, known_people)
    return nearest(Known(everybody.names, everybody.means @ turn), probes @ turn, people)


def whitening(known: Embeddings, people: Sequence[str]) -> Float64[np.ndarray, "d d"]:
    """Return the map that whitens the scatter within people.

    The scatter is shrunk towards a multiple of the identity, by an estimate of the optimal amount. Source:
    Ledoit & Wolf 2004, lemma 3.2 and section 3.2.
    """
    rest = _contrasts(known, people)
    scatter = rest.T @ rest / max(1, len(rest))
    size = float(np.trace(scatter)) / len(scatter)
    if not size > 0:
        return np.eye(len(scatter))
    away = float(((scatter - size * np.eye(len(scatter))) ** 2).sum())
    noise = float(((rest**2).sum(axis=1) ** 2).sum()) / len(rest) - float((scatter**2).sum())
    part = min(1.0, max(LEAST, noise / len(rest) / away)) if away > 0 else 1.0
    mixed = (1 - part) * scatter + part * size * np.eye(len(scatter))
    values, vectors = np.linalg.eigh(mixed)
    turn: Float64[np.ndarray, "d d"] = vectors / np.sqrt(values)
    return turn


def _contrasts(known: Embeddings, people: Sequence[str]) -> Embeddings:
    """Return Helmert's contrasts of each person's embeddings, one for every embedding but the first.

    The rows are uncorrelated, and their sum of squares is that of deviations from the mean.
    """
    there = np.isfinite(known).all(axis=1)
    names, found = np.asarray(people)[there], [np.empty((0, known.shape[1]))]
    for name in np.unique(names):
        own = known[there][names == name]
        before = np.arange(1, len(own))[:, None]
        found.append((np.cumsum(own, axis=0)[:-1] - before * own[1:]) / np.sqrt(before * (before + 1)))
    return np.concatenate(found)


def strongest(*attacks: Identified) -> Identified:
    """Return the attack with the highest identification rate, which is the one to report."""
    return max(attacks, key=lambda one: one.rate)

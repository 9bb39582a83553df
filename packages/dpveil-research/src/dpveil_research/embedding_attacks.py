"""Attackers who compare embeddings: the nearest person, and what releases teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from dpveil.attacks.measures import Interval, by_person
from dpveil.attacks.vectors import whitening
from dpveil.core.array_types import Bool, Float64
from dpveil.errors import InvalidParameter

Embeddings = Float64[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Identified:
    """The result of an attack: `right` is the share of correct answers for each probe.

    `people` are the true names. Probes without a face count as wrong.
    """

    right: Bool[np.ndarray, " probes"] | Float64[np.ndarray, " probes"]
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


def identify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of identifying each probe as the person with the nearest mean embedding.

    `known` (n × d) are embeddings of the attacker's photos, which are not the probes' originals; those
    without a face (NaN) are ignored, and a probe of NaN counts as wrong. For released photos see `parrot`.
    Every person of the probes must be known. Raises `InvalidParameter`.
    """
    for what, rows, names in (("known", known, known_people), ("probes", probes, people)):
        if rows.ndim != 2 or len(rows) != len(names) or not len(names):
            problem = f"of shape {rows.shape} do not match {len(names)} names"
            raise InvalidParameter(what, None, problem, hint="give a row and a name for each photo, n × d")
    if missing := set(people) - set(known_people):
        problem = f"of the probes are not all known to the attacker: {len(missing)} are missing"
        raise InvalidParameter("people", None, problem, hint="closed-set attacks need photos of everybody")
    everybody, place = np.unique(np.asarray(known_people), return_inverse=True)
    there = np.isfinite(known).all(axis=1)
    sums = np.zeros((len(everybody), known.shape[1]))
    np.add.at(sums, place[there], known[there])
    with np.errstate(invalid="ignore"):
        means = sums / np.bincount(place[there], minlength=len(everybody))[:, None]
    away = cdist(probes, means)
    away[~np.isfinite(away)] = np.inf
    named = np.where(np.isfinite(away).any(axis=1), away.argmin(axis=1), -1)
    return Identified(named == np.searchsorted(everybody, people), tuple(people), 1 / len(everybody))


def parrot(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of an attacker who learns from released photos of everybody.

    `known` (n × d) are embeddings of photos released by the method under attack, which are not the probes.
    Embeddings are whitened by the scatter within people (Fisher's linear discriminant with shrinkage), then
    the nearest mean decides. With one photo of each person this is `identify` on released photos. Raises
    `InvalidParameter`. Source: Newton, Sweeney & Malin 2005; Croft 2022 §6.4.
    """
    if len(known) != len(known_people) or not len(known):
        return identify(known, known_people, probes, people)  # which says what is wrong
    turn = whitening(known, known_people)
    return identify(known @ turn, known_people, probes @ turn, people)

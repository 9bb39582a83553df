"""Closed-set re-identification by embeddings: of the people whom an attacker knows, who is it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits

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

    def interval(self, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
        """Return the ends of a bootstrap interval that draws people, with all their probes."""
        names, person = np.unique(np.asarray(self.people), return_inverse=True)
        hits = np.bincount(person, weights=self.right, minlength=len(names))
        sizes = np.bincount(person, minlength=len(names))
        words = SeededBits(seed, "bootstrap").words(draws * len(names))
        picks = (words % np.uint64(len(names))).astype(np.int64).reshape(draws, len(names))
        rates = hits[picks].sum(axis=1) / sizes[picks].sum(axis=1)
        low, high = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def identify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return whom the nearest mean embedding names for each probe; a probe of NaN is nobody, and wrong.

    `known` are the attacker's own pictures, of other photos than the probes' originals (or of released ones:
    the parrot attack). Every person of the probes has to be among the known.
    """
    names = sorted(set(known_people))
    missing = set(people) - set(names)
    if missing or len(known) != len(known_people) or len(probes) != len(people):
        raise InvalidParameter("people", None, "of the probes are not all known to the attacker")
    index: Int64[np.ndarray, " n"] = np.array([names.index(name) for name in known_people])
    means = np.stack([np.nanmean(known[index == k], axis=0) for k in range(len(names))])
    away = np.linalg.norm(np.nan_to_num(probes, nan=np.inf)[:, None] - means[None], axis=2)
    lost = ~np.isfinite(probes).all(axis=1)
    nearest = np.where(lost, -1, np.where(np.isfinite(away), away, np.inf).argmin(axis=1))
    true = np.array([names.index(name) for name in people])
    return Identified(nearest == true, tuple(people), 1 / len(names))

"""Matching: all releases to all people at once, as everybody has so many photos and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax

from dpveil.attacks.base import Background, Fitted, Scores, View
from dpveil.attacks.measures import standard
from dpveil.attacks.wrapped import Undo, Wrapped
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits


@dataclass(frozen=True)
class Matched(Wrapped):
    """Gives every person as many releases as `Background.attacked` says, so that the whole is likeliest.

    The likelihood is the softmax of the inner scores, standardised over people. Releases that are alike to
    it are given out at random by `seed`, never by their order. No bound on one release holds for it: who
    tells all others apart knows the last. Source: Kuhn 1955 (assignment). Raises `InvalidParameter` for an
    inner attack that looks at all releases together already.
    """

    name: ClassVar[str] = "matched"
    summary: ClassVar[str] = "all releases matched to all people at once, by the scores of another attack"

    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.inner.joint:
            problem = "looks at all releases together already"
            raise InvalidParameter("inner", self.inner.label, problem, hint="such as matched(pixels)")

    @property
    def joint(self) -> bool:
        """Whether it looks at all releases together: yes."""
        return True

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: no."""
        return False

    def undo(self, background: Background) -> Undo:
        """Return what leaves releases as they are."""
        return tuple

    def fit(self, background: Background) -> Fitted:
        """Return the inner attacker, fitted, whose scores are matched; raises as it does."""
        return _Matched(self.inner.fit(background), background.attacked, self.seed)


@dataclass(frozen=True, eq=False)
class _Matched(Fitted):
    inner: Fitted
    attacked: Mapping[str, int]
    seed: int

    def score(self, releases: Sequence[View]) -> Scores:
        found = self.inner.score(releases)
        said = np.flatnonzero(np.isfinite(found.likeness).all(axis=1))
        likeness = np.full(found.likeness.shape, np.nan)
        if len(said):
            logs = log_softmax(standard(Scores(found.likeness[said], found.names)), axis=1)
            even = -(-len(releases) // len(found.names))
            most = [self.attacked.get(name, 0) if self.attacked else even for name in found.names]
            likeness[said] = matching(logs, np.array(most, np.int64), self.seed)
        return Scores(likeness, found.names)


def matching(
    logs: Float64[np.ndarray, "n people"], most: Int64[np.ndarray, " people"], seed: int
) -> Float64[np.ndarray, "n people"]:
    """Return log-likelihoods, at most 0, with 1 for the person whom each release is given to.

    Nobody is given more than `most` releases, and the sum of the log-likelihoods is the largest. With more
    releases than that in all, those over are given to nobody.
    """
    rows = np.argsort(SeededBits(seed, "releases").words(len(logs)), kind="stable")
    places = np.repeat(np.arange(len(most)), most)
    places = places[np.argsort(SeededBits(seed, "places").words(len(places)), kind="stable")]
    row, place = linear_sum_assignment(logs[rows][:, places], maximize=True)
    out = logs.copy()
    out[rows[row], places[place]] = 1.0
    return out

"""Several attackers who put what they know together, such as by the face and by what lies around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Bool, Float64
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpveil.attacks.around import Context, Placement
from dpveil.attacks.base import SEES, Attack, Background, Fitted, Scores, View
from dpveil.attacks.outcomes import standard
from dpveil.attacks.vectors import check_people
from dpveil.errors import InvalidParameter

MOST: Final = 20.0
"""Largest weight of an attacker."""


@dataclass(frozen=True)
class Joint(Attack):
    """Adds up the scores of several attackers, each weighted by what it is worth.

    Scores are standardised over people; weights are those under which held-out photos of the attacker's own
    are likeliest to show their people. An attacker who says nothing of a release adds nothing there.
    """

    name: ClassVar[str] = "joint"
    summary: ClassVar[str] = (
        "the weighted sum of several attacks' scores, of placement and context by default"
    )
    sees: ClassVar[tuple[str, ...]] = SEES

    parts: tuple[Attack, ...] = field(default_factory=lambda: (Placement(), Context()))

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("parts", None, "are none", hint="such as (Placement(), Context())")

    @property
    def label(self) -> str:
        """The labels of its parts with + between them."""
        return "+".join(part.label for part in self.parts)

    @property
    def reads(self) -> tuple[str, ...]:
        """What its parts read."""
        return tuple(kind for kind in SEES if any(kind in part.reads for part in self.parts))

    @property
    def about(self) -> str:
        """What its parts recognise, if all that recognise something agree."""
        found = {part.about for part in self.parts} - {""}
        return found.pop() if len(found) == 1 else ""

    @property
    def opens(self) -> bool:
        """Whether a part does."""
        return any(part.opens for part in self.parts)

    @property
    def joint(self) -> bool:
        """Whether a part does."""
        return any(part.joint for part in self.parts)

    @property
    def extras(self) -> tuple[str, ...]:
        """What its parts need."""
        return tuple(dict.fromkeys(extra for part in self.parts for extra in part.extras))

    def fit(self, background: Background) -> Fitted:
        """Return the fitted parts with their weights; raises as they do."""
        check_people(background)
        weights = self._weights(background)
        return _Joint(tuple(part.fit(background) for part in self.parts), weights, background.names)

    def _weights(self, background: Background) -> Float64[np.ndarray, " parts"]:
        held = _held(background)
        if len(self.parts) == 1 or not held.any() or not _everybody(background, ~held):
            return np.ones(len(self.parts))
        learnt, tried = _only(background, ~held), _only(background, held)
        scores = [standard(part.fit(learnt).score(tried.released)) for part in self.parts]
        return weighed(np.stack(scores), np.searchsorted(np.array(background.names), np.array(tried.people)))


@dataclass(frozen=True, eq=False)
class _Joint(Fitted):
    parts: tuple[Fitted, ...]
    weights: Float64[np.ndarray, " parts"]
    names: tuple[str, ...]

    def score(self, releases: Sequence[View]) -> Scores:
        found = [part.score(releases) for part in self.parts]
        whole = np.tensordot(self.weights, np.stack([standard(one) for one in found]), 1)
        silent = np.all([~np.isfinite(one.likeness).all(axis=1) for one in found], axis=0)
        whole[silent] = np.nan
        return Scores(whole, self.names)


def weighed(
    scores: Float64[np.ndarray, "parts n people"], owners: np.ndarray
) -> Float64[np.ndarray, " parts"]:
    """Return the weights, 0 to `MOST`, under which a softmax of the sum makes the owners likeliest."""
    rows = np.arange(len(owners))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        whole = np.tensordot(weights, scores, 1)
        logs = whole - logsumexp(whole, axis=1, keepdims=True)
        expected = (np.exp(logs) * scores).sum(axis=2).mean(axis=1)
        return -float(logs[rows, owners].mean()), expected - scores[:, rows, owners].mean(axis=1)

    found = minimize(loss, np.ones(len(scores)), jac=True, bounds=[(0, MOST)] * len(scores))
    return np.asarray(found.x, np.float64) if found.x.any() else np.ones(len(scores))


def _held(background: Background) -> Bool[np.ndarray, " n"]:
    """Return which photos are held out: of each person every third, and of two the second."""
    place, owners = background.places, background.owners
    count = np.bincount(owners)[owners]
    return np.asarray(np.where(count < 3, place == 1, place % 3 == 2))


def _everybody(background: Background, kept: Bool[np.ndarray, " n"]) -> bool:
    return len(set(background.owners[kept])) == len(background.names)


def _only(background: Background, kept: Bool[np.ndarray, " n"]) -> Background:
    rows = np.flatnonzero(kept)
    lists = (background.clean, background.released, background.people)
    return Background(*(tuple(one[row] for row in rows) for one in lists))  # type: ignore[arg-type]

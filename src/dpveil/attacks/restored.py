"""Reversal before recognition: an inverse of the method is learnt from releases, then people are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.pixels import reduced
from dpveil.attacks.vectors import Known, Vectors
from dpveil.errors import InvalidParameter

RIDGE: Final = 0.1
"""Penalty of the inverse, relative to the mean variance of what it reads."""


@dataclass(frozen=True)
class Restored(Attack):
    """Learns the linear map that takes releases nearest to their photos, and names people by what it gives.

    The map is a ridge regression of small clean pictures on small released ones, by the attacker's own
    photos: the linear case of learning to undo a method before recognition (Todt, Hanisch & Strufe 2024,
    "Fantômas"). People are then known by their clean photos.
    """

    name: ClassVar[str] = "restored"
    summary: ClassVar[str] = "linear inverse of the method, learnt from releases, then a discriminant"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def fit(self, background: Background) -> Fitted:
        """Return the attacker; raises `InvalidParameter` for a background without two people."""
        if len(background.names) < 2:
            raise InvalidParameter("background", None, "shows fewer than two people", hint="add people")
        clean, seen = _small(background.clean), _small(background.released)
        inverse = Inverse.of(seen, clean)
        return _Undone(inverse, Known.of(clean, background, whiten=True))


@dataclass(frozen=True, eq=False)
class Inverse:
    """A ridge regression of clean pictures on released ones, in the space of the releases."""

    seen: Vectors
    clean: Vectors
    weights: Vectors

    @classmethod
    def of(cls, seen: Vectors, clean: Vectors) -> Inverse:
        """Return the regression of rows of `clean` on rows of `seen`, n × d each."""
        rows = seen - seen.mean(axis=0)
        gram = rows @ rows.T
        size = max(float(np.trace(gram)) / len(gram), 1e-12)
        weights = np.linalg.solve(gram + RIDGE * size * np.eye(len(gram)), clean - clean.mean(axis=0))
        return cls(seen, clean, rows.T @ weights)

    def undo(self, vectors: Vectors) -> Vectors:
        """Return the clean pictures that releases come from, as nearly as the map knows."""
        return np.asarray(self.clean.mean(axis=0) + (vectors - self.seen.mean(axis=0)) @ self.weights)


@dataclass(frozen=True, eq=False)
class _Undone(Fitted):
    inverse: Inverse
    known: Known

    def score(self, releases: Sequence[View]) -> Scores:
        return self.known.scores(self.inverse.undo(_small(releases)))


def _small(views: Sequence[View]) -> Vectors:
    return np.stack([reduced(view) for view in views]).astype(np.float64)

"""Intersection: who is part of every picture that shows several people, as those of k-same do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import nnls

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.patches import coloured, small
from dpveil.attacks.pixels import SIDE
from dpveil.attacks.vectors import Vectors, check_people

LEAST: Final = 0.01
"""Share of a picture below which somebody may still be part of it: photos of a person differ."""


@dataclass(frozen=True)
class Intersected(Attack):
    """Finds the mixture of clean photos that is most like a release; of several, who is part of each.

    Mixtures are non-negative least squares of small pictures, in colour where photos are, and somebody's
    share is the sum of the weights of their photos. Scores are the sums of the shares' logarithms, of `LEAST`
    at least. The attacker needs neither k nor the photos that were averaged, but others of the same people.
    Source: Lawson & Hanson 1974 (least squares); Newton, Sweeney & Malin 2005, Croft 2022 §3.2 (composition
    of k-same).
    """

    name: ClassVar[str] = "intersected"
    summary: ClassVar[str] = "mixtures of clean photos that look like a release: who is part of all of them"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: yes, as it learns nothing."""
        return True

    def fit(self, background: Background) -> Fitted:
        """Return the attacker that has everybody's clean photos; raises `InvalidParameter`."""
        check_people(background)
        return _Mixing.of(background)


@dataclass(frozen=True, eq=False)
class _Mixing(Fitted):
    photos: Float64[np.ndarray, "pixels n"]
    owners: Int64[np.ndarray, " n"]
    names: tuple[str, ...]
    colour: bool

    @classmethod
    def of(cls, background: Background) -> _Mixing:
        """Return the attacker that has these photos."""
        colour = coloured(background)
        photos = _levels(background.originals, colour=colour).T
        return cls(np.ascontiguousarray(photos), background.owners, background.names, colour)

    def score(self, releases: Sequence[View]) -> Scores:
        rows = [sum(map(self._shares, (view, *view.more))) for view in releases]
        return Scores(np.array(rows, np.float64).reshape(len(releases), len(self.names)), self.names)

    def _shares(self, view: View) -> Float64[np.ndarray, " people"]:
        """Return the logarithms of everybody's shares in one picture; NaN if no mixture is found."""
        try:
            weights, _ = nnls(self.photos, _levels([view], colour=self.colour)[0])
        except RuntimeError:  # too many steps
            return np.full(len(self.names), np.nan)
        own = np.bincount(self.owners, weights, len(self.names))
        return np.asarray(np.log(own / max(own.sum(), LEAST) + LEAST))

    def enrol(self, gallery: Background) -> Fitted:
        """Return the attacker that has the photos of a gallery instead."""
        return _Mixing.of(gallery)


def _levels(views: Sequence[View], *, colour: bool) -> Vectors:
    return small(views, SIDE, colour=colour).reshape(len(views), -1)

"""Averaging: several releases of one photo, whose noise cancels out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import nnls

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.measures import standard
from dpveil.attacks.resampling import coloured, small
from dpveil.attacks.vectors import SIDE, Vectors, check_people
from dpveil.attacks.wrapped import Undo, Wrapped

LEAST: Final = 0.01
"""Share of a picture below which somebody may still be part of it: photos of a person differ."""


@dataclass(frozen=True)
class Intersected(Attack):
    """Finds the mixture of clean photos that is most like a release; of several, who is part of each.

    Mixtures are non-negative least squares of small pictures, in colour where photos are, and somebody's
    share is the sum of the weights of their photos. Scores are the sums of the shares' logarithms, of at
    least `LEAST`. The attacker needs neither k nor the photos that were averaged, but others of the same
    people. Source: Lawson & Hanson 1974 (least squares); Newton, Sweeney & Malin 2005, Croft 2022 §3.2
    (composition of k-same).
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


@dataclass(frozen=True)
class Averaged(Wrapped):
    """Sees the mean of all releases of a photo: of one release alone, that one.

    Its success is bounded by the guarantees of all of them together.
    """

    name: ClassVar[str] = "averaged"
    summary: ClassVar[str] = "the mean of several releases of one photo, then another attack"

    def undo(self, background: Background) -> Undo:
        """Return what averages releases; nothing is learnt."""
        return _means


@dataclass(frozen=True)
class Composed(Wrapped):
    """Adds up what another attack says of each release of a photo, which may be by several methods."""

    name: ClassVar[str] = "composed"
    summary: ClassVar[str] = "another attack on each of several releases of one photo, scores added up"

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: no."""
        return False

    def undo(self, background: Background) -> Undo:
        """Return what leaves releases as they are."""
        return tuple

    def fit(self, background: Background) -> Fitted:
        """Return an inner attacker for the first releases, one for the second, and so on; raises as it does.

        Each learns from the attacker's releases that were made in the same way.
        """
        count = 1 + min(len(view.more) for view in background.released)
        parts = [
            self.inner.fit(replace(background, released=tuple(_nth(view, n) for view in background.released)))
            for n in range(count)
        ]
        return _Composed(tuple(parts), background.names)


@dataclass(frozen=True, eq=False)
class _Composed(Fitted):
    parts: tuple[Fitted, ...]
    names: tuple[str, ...]

    def score(self, releases: Sequence[View]) -> Scores:
        whole = np.zeros((len(releases), len(self.names)))
        said = np.zeros(len(releases), np.bool_)
        for number, part in enumerate(self.parts):
            rows = [row for row, view in enumerate(releases) if len(view.more) >= number]
            found = part.score([_nth(releases[row], number) for row in rows]) if rows else None
            if found is not None:
                whole[rows] += standard(found)
                said[rows] |= np.isfinite(found.likeness).all(axis=1)
        whole[~said] = np.nan
        return Scores(whole, self.names)


def _nth(view: View, number: int) -> View:
    return view.more[number - 1] if number else view


def _means(views: Sequence[View]) -> tuple[View, ...]:
    return tuple(_mean(view) for view in views)


def _mean(view: View) -> View:
    same = [one.image for one in (view, *view.more) if one.image.shape == view.image.shape]
    mean = np.rint(np.mean(same, axis=0)).astype(np.uint8)
    return replace(view, image=mean, more=())

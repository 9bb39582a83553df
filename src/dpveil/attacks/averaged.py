"""Averaging: several releases of one photo, whose noise cancels out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpveil.attacks.base import Background, Fitted, Scores, View
from dpveil.attacks.outcomes import standard
from dpveil.attacks.wrapped import Undo, Wrapped


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

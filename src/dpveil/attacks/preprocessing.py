"""Attackers who undo something first, and then do as another attacker does on what that gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dpveil.attacks.base import SEES, Attack, Background, Fitted, Scores, View
from dpveil.attacks.vectors import PixelDiscriminant

Undo = Callable[[Sequence[View]], tuple[View, ...]]
"""Takes releases, and gives what the inner attack sees in their place."""


@dataclass(frozen=True)
class Wrapped(Attack):
    """An attack that changes releases, its own and others', before `inner` learns from them and scores."""

    sees: ClassVar[tuple[str, ...]] = SEES
    photos: ClassVar[bool] = False
    """Whether clean photos are changed as releases are."""

    inner: Attack = field(default_factory=PixelDiscriminant)

    @property
    def label(self) -> str:
        """Its name, and in brackets that of the inner attack."""
        return f"{self.name}({self.inner.label})"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.inner.reads

    @property
    def opens(self) -> bool:
        return self.inner.opens

    @property
    def extras(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().extras, *self.inner.extras)))

    @abstractmethod
    def undo(self, background: Background) -> Undo:
        """Return what changes releases, learnt from a background."""

    def fit(self, background: Background) -> Fitted:
        undo = self.undo(background)
        changed = replace(background, released=self.held_out(background, undo))
        if self.photos:
            changed = replace(changed, clean=undo(background.originals))
        return _Undone(undo, self.inner.fit(changed))

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return the attacker's own releases as changed ones of others will look."""
        return undo(background.released)


@dataclass(frozen=True, eq=False)
class _Undone(Fitted):
    undo: Undo
    inner: Fitted

    def score(self, releases: Sequence[View]) -> Scores:
        return self.inner.score(self.undo(releases))


@dataclass(frozen=True)
class Averaged(Wrapped):
    """Sees the mean of all releases of a photo: of one release alone, that one.

    Its success is bounded by the guarantees of all of them together.
    """

    name: ClassVar[str] = "averaged"
    summary: ClassVar[str] = "the mean of several releases of one photo, then another attack"

    def undo(self, background: Background) -> Undo:
        return lambda views: tuple(_mean(view) for view in views)


def _mean(view: View) -> View:
    same = [one.image for one in (view, *view.more) if one.image.shape == view.image.shape]
    mean = np.rint(np.mean(same, axis=0)).astype(np.uint8)
    return replace(view, image=mean, more=())

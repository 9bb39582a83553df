"""Attackers who undo something first, and then do as another attacker does on what that gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dpveil.attacks.base import SEES, Attack, Background, Fitted, Scores, View
from dpveil.attacks.pixels import PixelDiscriminant

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
        """What the inner attack reads."""
        return self.inner.reads

    @property
    def about(self) -> str:
        """What the inner attack recognises."""
        return self.inner.about

    @property
    def opens(self) -> bool:
        """Whether the inner attack does."""
        return self.inner.opens

    @property
    def enrols(self) -> bool:
        """Whether the inner attack does."""
        return self.inner.enrols

    @property
    def joint(self) -> bool:
        """Whether the inner attack does."""
        return self.inner.joint

    @property
    def extras(self) -> tuple[str, ...]:
        """What this attack and the inner one need."""
        return tuple(dict.fromkeys((*super().extras, *self.inner.extras)))

    @abstractmethod
    def undo(self, background: Background) -> Undo:
        """Return what changes releases, learnt from a background."""

    def fit(self, background: Background) -> Fitted:
        """Return the inner attacker, fitted to changed releases; raises as it does."""
        undo = self.undo(background)
        changed = replace(background, released=self.held_out(background, undo))
        if self.photos:
            changed = replace(changed, clean=undo(background.originals))
        return _Undone(undo, self.inner.fit(changed), self.photos)

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return the attacker's own releases as changed ones of others will look."""
        return undo(background.released)


@dataclass(frozen=True, eq=False)
class _Undone(Fitted):
    undo: Undo
    inner: Fitted
    photos: bool

    def score(self, releases: Sequence[View]) -> Scores:
        return self.inner.score(self.undo(releases))

    def enrol(self, gallery: Background) -> Fitted:
        """Return the inner attacker that knows a gallery, whose releases are changed, and photos perhaps.

        Either may stand for the other, such as releases for clean photos: certificates tell them apart.
        """
        clean = gallery.originals if self.photos else gallery.clean
        known = replace(gallery, clean=self._changed(clean), released=self._changed(gallery.released))
        return _Undone(self.undo, self.inner.enrol(known), self.photos)

    def _changed(self, views: Sequence[View]) -> tuple[View, ...]:
        every = self.photos
        return tuple(self.undo([one])[0] if every or one.certificate is not None else one for one in views)

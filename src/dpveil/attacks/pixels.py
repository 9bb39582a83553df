"""Small pictures as they are: an attacker of pixel methods that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from dpveil.attacks.base import PIXELS, Background, View
from dpveil.attacks.patches import small
from dpveil.attacks.vectors import Space, VectorAttack, Vectors

SIDE: Final = (23, 28)
"""Columns and rows to which a picture is reduced: those of 4 × 4 pixels of AT&T's photos."""
COMPONENTS: Final = 60
"""Principal components that are kept."""


@dataclass(frozen=True)
class PixelDiscriminant(VectorAttack):
    """Learns from the attacker's own releases which small pictures show whom.

    Means of blocks average a method's noise out, and so does the projection on the first principal components
    of the clean photos, in which the discriminant of the releases is computed. Source: Belhumeur, Hespanha &
    Kriegman 1997 (Fisherfaces).
    """

    name: ClassVar[str] = "pixels"
    summary: ClassVar[str] = "linear discriminant of the picture, 23 × 28 pixels, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    components: int = COMPONENTS

    def space(self, known: Vectors, background: Background) -> Space:
        """Return the discriminant of releases in the principal components of clean pictures."""
        axes = Space.principal(grey(background.originals), self.components)
        return axes.then(Space.discriminant(axes.of_vectors(known), background.owners))

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the grey levels of the reduced pictures, 0 to 1."""
        return grey(views)


@dataclass(frozen=True)
class Eigenfaces(VectorAttack):
    """Names the person whose clean photos are nearest in the principal components of small clean pictures.

    An attacker who never saw a release. Source: Turk & Pentland 1991.
    """

    name: ClassVar[str] = "eigenfaces"
    summary: ClassVar[str] = (
        "principal components of the picture, 23 × 28 pixels, nearest mean of clean photos"
    )
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    components: int = COMPONENTS

    @property
    def learns(self) -> bool:
        """Whether it learns from releases: no."""
        return False

    def space(self, known: Vectors, background: Background) -> Space:
        """Return the principal components of clean pictures."""
        return Space.principal(known, self.components)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the grey levels of the reduced pictures, 0 to 1."""
        return grey(views)


def grey(views: Sequence[View]) -> Vectors:
    """Return the grey levels of what is seen, 0 to 1, in `SIDE` columns and rows."""
    return small(views, SIDE).reshape(len(views), -1)

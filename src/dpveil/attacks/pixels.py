"""Small pictures as they are: an attacker of pixel methods that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from dpveil.attacks.base import PIXELS, Background, View
from dpveil.attacks.resampling import coloured, small
from dpveil.attacks.vectors import Space, VectorAttack, Vectors

SIDE: Final = (23, 28)
"""Columns and rows to which a picture is reduced: those of 4 × 4 pixels of AT&T's photos."""
COMPONENTS: Final = 60
"""Principal components that are kept."""


class _Pixels(VectorAttack):
    """Looks at small pictures, in colour where photos have three channels."""

    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    components: int
    colour: bool | None

    def among(self, background: Background) -> VectorAttack:
        """Return the attack that sees colours, if some of these photos have them and none was asked for."""
        seen = coloured(background) if self.colour is None else self.colour
        return replace(self, colour=seen)  # type: ignore[type-var]

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the levels of the reduced pictures, 0 to 1."""
        return small(views, SIDE, colour=bool(self.colour)).reshape(len(views), -1)


@dataclass(frozen=True)
class PixelDiscriminant(_Pixels):
    """Learns from the attacker's own releases which small pictures show whom.

    Means of blocks average a method's noise out, and so does the projection on the first principal components
    of the clean photos, in which the discriminant of the releases is computed. `colour` says whether it reads
    three channels; by default it does where photos have them. Source: Belhumeur, Hespanha & Kriegman 1997
    (Fisherfaces).
    """

    name: ClassVar[str] = "pixels"
    summary: ClassVar[str] = "linear discriminant of the picture, 23 × 28 pixels, learnt from releases"

    components: int = COMPONENTS
    colour: bool | None = None

    def space(self, known: Vectors, background: Background) -> Space:
        """Return the discriminant of releases in the principal components of clean pictures."""
        axes = Space.principal(self.vectors(background.originals), self.components)
        return axes.then(Space.discriminant(axes.of_vectors(known), background.owners))


@dataclass(frozen=True)
class Eigenfaces(_Pixels):
    """Names the person whose clean photos are nearest in the principal components of small clean pictures.

    An attacker who never saw a release. `colour` is as in `PixelDiscriminant`. Source: Turk & Pentland 1991.
    """

    name: ClassVar[str] = "eigenfaces"
    summary: ClassVar[str] = (
        "principal components of the picture, 23 × 28 pixels, nearest mean of clean photos"
    )

    components: int = COMPONENTS
    colour: bool | None = None

    @property
    def learns(self) -> bool:
        """Whether it learns from releases: no."""
        return False

    def space(self, known: Vectors, background: Background) -> Space:
        """Return the principal components of clean pictures."""
        return Space.principal(known, self.components)

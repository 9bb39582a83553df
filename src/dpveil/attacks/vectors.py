"""Attacks that compare vectors of releases with those of photos that the attacker has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from scipy.spatial.distance import cdist

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.patches import has_colour, small
from dpveil.core.array_types import Float64, Int64
from dpveil.errors import InvalidParameter

Vectors = Float64[np.ndarray, "n d"]

MOST_COMPONENTS: Final = 200  # most principal components of vectors that are learnt from
FLAT: Final = 1e-9  # least singular value of a principal component, and least standard deviation that divides
UNKNOWN: Final = -1e300  # likeness of a person of whom the attacker has no vector


class VectorAttack(Attack):
    """An attack that compares vectors: those of `clean` photos, or of the attacker's releases of them.

    It names the person whose mean is nearest after whitening the scatter within people (Fisher's linear
    discriminant with shrinkage), or without it the person of the nearest mean.
    """

    @abstractmethod
    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return a row for each view, n × d; NaN where nothing is found."""

    @property
    def learns(self) -> bool:
        """Whether it learns from releases by the method under attack, as a parrot does."""
        return True

    def among(self, background: Background) -> VectorAttack:
        """Return the attack that looks at photos as those of a background want it, such as in colour."""
        return self

    def space(self, known: Vectors, background: Background) -> Space:
        return Space.discriminant(known, background.owners) if self.learns else Space.plain(known)

    def reference_vectors(self, background: Background) -> Vectors:
        """Return the vectors of the releases, or of the clean photos if it does not learn from releases."""
        return self.vectors(background.released if self.learns else background.originals)

    def fit(self, background: Background) -> Fitted:
        """Return the attacker that knows everybody's vectors.

        Raises `InvalidParameter` for a background without two people.
        """
        check_people(background)
        own = self.among(background)
        known = own.reference_vectors(background)
        return _Seeing(own, Known.of(known, background, own.space(known, background)))


@dataclass(frozen=True, eq=False)
class Space:
    """A linear map of vectors, less a `mean`: principal components, then whitened scatter within people."""

    mean: Float64[np.ndarray, " d"]
    turn: Float64[np.ndarray, "d e"] | None

    @classmethod
    def plain(cls, known: Vectors) -> Space:
        return cls(np.zeros(known.shape[1]), None)

    @classmethod
    def principal(cls, known: Vectors, most: int) -> Space:
        """Return the first `most` principal components of known vectors, without those of no variance."""
        rows = known[np.isfinite(known).all(axis=1)]
        if not len(rows):
            return cls.plain(known)
        mean = rows.mean(axis=0)
        _, sizes, axes = np.linalg.svd(rows - mean, full_matrices=False)
        return cls(mean, axes[: min(most, max(1, np.count_nonzero(sizes > FLAT)))].T)

    @classmethod
    def discriminant(cls, known: Vectors, owners: Int64[np.ndarray, " n"]) -> Space:
        """Return Fisher's discriminant of known vectors and their owners, after principal components."""
        there = np.isfinite(known).all(axis=1)
        if not there.any():
            return cls.plain(known)
        mean, spread = known[there].mean(axis=0), known[there].std(axis=0)
        turn = np.diag(1 / np.where(spread > FLAT, spread, 1.0))  # shrinkage is towards equal variances
        if known.shape[1] > MOST_COMPONENTS:
            turn = np.asarray(cls.principal(known, MOST_COMPONENTS).turn)
        inner = (known[there] - mean) @ turn
        return cls(mean, turn @ whitening(inner, [str(owner) for owner in owners[there]]))

    def then(self, inner: Space) -> Space:
        """Return the space of vectors that are taken to this space, and from there to an inner one."""
        if self.turn is None or inner.turn is None:
            return inner if self.turn is None else self
        return Space(self.mean + np.linalg.pinv(self.turn.T) @ inner.mean, self.turn @ inner.turn)

    def of_vectors(self, vectors: Vectors) -> Vectors:
        return vectors if self.turn is None else (vectors - self.mean) @ self.turn


@dataclass(frozen=True, eq=False)
class _Seeing(Fitted):
    attack: VectorAttack
    known: Known

    def score(self, releases: Sequence[View]) -> Scores:
        return self.known.scores(self.attack.vectors(releases))


@dataclass(frozen=True, eq=False)
class Known:
    """Everybody's mean vector in a space: the nearest is the likeliest."""

    names: tuple[str, ...]
    space: Space
    means: Vectors

    @classmethod
    def of(cls, vectors: Vectors, background: Background, space: Space) -> Known:
        """Return what vectors of a background's photos tell of its people."""
        return cls(background.names, space, means_of(space.of_vectors(vectors), background.owners))

    def scores(self, vectors: Vectors) -> Scores:
        """Return the negative distances of vectors to everybody's mean; NaN where nothing was found."""
        away = cdist(self.space.of_vectors(vectors), self.means)
        lost = ~np.isfinite(away).any(axis=1)
        likeness = np.where(np.isfinite(away), -away, UNKNOWN)
        likeness[lost] = np.nan
        return Scores(likeness, self.names)


def check_people(background: Background) -> None:
    """Raise `InvalidParameter` for a background that shows fewer than two people."""
    if len(background.names) < 2:
        raise InvalidParameter("background", None, "shows fewer than two people", hint="add people")


def means_of(known: Vectors, owners: Int64[np.ndarray, " n"]) -> Vectors:
    """Return everybody's mean vector, NaN without one."""
    there = np.isfinite(known).all(axis=1)
    count = int(owners.max()) + 1
    sums, times = np.zeros((count, known.shape[1])), np.bincount(owners[there], minlength=count)
    np.add.at(sums, owners[there], known[there])
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / times[:, None])


RASTER: Final = (23, 28)
"""Columns and rows to which a picture is reduced: those of 4 × 4 pixels of AT&T's photos."""
COMPONENTS: Final = 60  # principal components that are kept


class _Pixels(VectorAttack):
    """Looks at small pictures, in colour where photos have three channels."""

    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    components: int
    colour: bool | None

    def among(self, background: Background) -> VectorAttack:
        """Return the attack that sees colours, if some of these photos have them and none was asked for."""
        seen = has_colour(background) if self.colour is None else self.colour
        return replace(self, colour=seen)  # type: ignore[type-var]

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the levels of the reduced pictures, 0 to 1."""
        return small(views, RASTER, colour=bool(self.colour)).reshape(len(views), -1)


@dataclass(frozen=True)
class PixelDiscriminant(_Pixels):
    """Learns from the attacker's own releases which small pictures show whom.

    Means of blocks average a method's noise out, and so does the projection on the first principal components
    of the clean photos, in which the discriminant of the releases is computed. `colour` says whether it reads
    three channels; by default it does where photos have them. Source: Fisherfaces (Belhumeur et al. 1997).
    """

    name: ClassVar[str] = "pixels"
    summary: ClassVar[str] = "linear discriminant of the picture, 23 × 28 pixels, learnt from releases"

    components: int = COMPONENTS
    colour: bool | None = None

    def space(self, known: Vectors, background: Background) -> Space:
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
    learns: ClassVar[bool] = False

    components: int = COMPONENTS
    colour: bool | None = None

    def space(self, known: Vectors, background: Background) -> Space:
        return Space.principal(known, self.components)


LEAST_SHRINKAGE: Final = 1e-3  # least shrinkage, so that no direction has zero scatter


def whitening(known: Vectors, people: Sequence[str]) -> Float64[np.ndarray, "d d"]:
    """Return the map that whitens the scatter within people.

    The scatter is shrunk towards a multiple of the identity, by an estimate of the optimal amount. Source:
    Ledoit & Wolf 2004, lemma 3.2 and section 3.2.
    """
    rest = _contrasts(known, people)
    scatter = rest.T @ rest / max(1, len(rest))
    size = float(np.trace(scatter)) / len(scatter)
    if not size > 0:
        return np.eye(len(scatter))
    away = float(((scatter - size * np.eye(len(scatter))) ** 2).sum())
    noise = float(((rest**2).sum(axis=1) ** 2).sum()) / len(rest) - float((scatter**2).sum())
    part = min(1.0, max(LEAST_SHRINKAGE, noise / len(rest) / away)) if away > 0 else 1.0
    mixed = (1 - part) * scatter + part * size * np.eye(len(scatter))
    values, vectors = np.linalg.eigh(mixed)
    return np.asarray(vectors / np.sqrt(values))


def _contrasts(known: Vectors, people: Sequence[str]) -> Vectors:
    """Return Helmert's contrasts of each person's embeddings, one for every embedding but the first.

    The rows are uncorrelated, and their sum of squares is that of deviations from the mean.
    """
    there = np.isfinite(known).all(axis=1)
    names, found = np.asarray(people)[there], [np.empty((0, known.shape[1]))]
    for name in np.unique(names):
        own = known[there][names == name]
        before = np.arange(1, len(own))[:, None]
        found.append((np.cumsum(own, axis=0)[:-1] - before * own[1:]) / np.sqrt(before * (before + 1)))
    return np.concatenate(found)

"""Matching: all releases to all people at once, as everybody has so many photos and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import cv2
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax

from dpveil.attacks.base import PIXELS, Background, Fitted, Scores, View
from dpveil.attacks.measures import standard
from dpveil.attacks.patches import OUTSIDE, TOP, patch
from dpveil.attacks.preprocessing import Undo, Wrapped
from dpveil.attacks.surroundings import WEIGHTS, background_features
from dpveil.attacks.vectors import SIDE, VectorAttack, Vectors
from dpveil.core.arrays import Bool, Float32, Float64, Int64
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits


@dataclass(frozen=True)
class Averaged(Wrapped):
    """Sees the mean of all releases of a photo: of one release alone, that one.

    Its success is bounded by the guarantees of all of them together.
    """

    name: ClassVar[str] = "averaged"
    summary: ClassVar[str] = "the mean of several releases of one photo, then another attack"

    def undo(self, background: Background) -> Undo:
        return _means


@dataclass(frozen=True)
class Composed(Wrapped):
    """Adds up what another attack says of each release of a photo, which may be by several methods."""

    name: ClassVar[str] = "composed"
    summary: ClassVar[str] = "another attack on each of several releases of one photo, scores added up"
    enrols: ClassVar[bool] = False

    def undo(self, background: Background) -> Undo:
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


@dataclass(frozen=True)
class Appearance(VectorAttack):
    """Learns from releases whose regions have which thumbnail, colours and gradients.

    Where nothing was replaced, it sees the whole photo.
    """

    name: ClassVar[str] = "appearance"
    summary: ClassVar[str] = "thumbnail, colours and gradients of the regions, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        found = [background_features(view.image, ~view.hidden & view.hidden.any()) for view in views]
        return np.stack([np.concatenate([WEIGHTS[name] * one[name] for name in WEIGHTS]) for one in found])


BLANK: Final = 0.05  # least share of pixels of Snow's grey that is taken for pixels that are not shown
WIDEST: Final = 16.0
"""Standard deviation of the widest mean by which a pixel is filled from those around it, in pixels."""
BENDS: Final = 2.0  # least second difference, in levels, at which interpolation between shown pixels bends
LEAST: Final = 1e-3


@dataclass(frozen=True)
class ShownPixels(VectorAttack):
    """Fills what is not shown from the true pixels around it, and knows where true pixels are.

    Pixels of Snow's grey are those not shown. DP-Samp interpolates between shown pixels, so its pictures bend
    where one is. A linear discriminant of the filled picture and of the density of bends, learnt from
    releases. Source: docs, errata E5.
    """

    name: ClassVar[str] = "shown"
    summary: ClassVar[str] = "true pixels that Snow and DP-Samp show: filled in between, and their places"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the filled picture and the density of bends, 23 × 28 each, 0 to 1."""
        return np.stack([_levels_of(patch(view)) for view in views]).astype(np.float64)


def fill_unseen(
    levels: Float32[np.ndarray, "h w"], seen: Bool[np.ndarray, "h w"]
) -> Float32[np.ndarray, "h w"]:
    """Return levels with those not seen filled by means of seen ones, as narrow as hold enough of them."""
    out, lacking = np.where(seen, levels, np.float32(0)), ~seen
    sigma = 1.0
    while lacking.any() and sigma <= WIDEST:
        weight = cv2.GaussianBlur(seen.astype(np.float32), (0, 0), sigma)
        mean = cv2.GaussianBlur(np.where(seen, levels, np.float32(0)), (0, 0), sigma)
        enough = lacking & (weight > (LEAST if 2 * sigma > WIDEST else 1 / (4 * sigma * sigma)))
        out = np.where(enough, mean / np.maximum(weight, LEAST), out)
        lacking, sigma = lacking & ~enough, 2 * sigma
    rest = float(levels[seen].mean()) if seen.any() else float(OUTSIDE)
    return np.where(lacking, np.float32(rest), out).astype(np.float32)


def _levels_of(seen: np.ndarray) -> np.ndarray:
    blank = (seen == OUTSIDE).all(axis=2)
    grey = seen.mean(axis=2, dtype=np.float32)
    whole = fill_unseen(grey, ~blank) if blank.mean() >= BLANK else grey
    bends = (np.abs(cv2.Laplacian(grey, cv2.CV_32F)) > BENDS).astype(np.float32)
    parts = [cv2.resize(one, SIDE, interpolation=cv2.INTER_AREA).ravel() for one in (whole / TOP, bends)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Subspaces(VectorAttack):
    """Compares the spaces that the leading left and right singular vectors span, whatever their values.

    A linear discriminant of the two projections, reduced to 28 rows and 23 columns, learnt from releases.
    `rank` is the number of leading vectors. Source: docs, DP-SVD and errata E9.
    """

    name: ClassVar[str] = "subspaces"
    summary: ClassVar[str] = "spaces of the leading singular vectors, which DP-SVD shows as they are"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    rank: int = 6

    def vectors(self, views: Sequence[View]) -> Vectors:
        return np.stack([self._of(patch(view)) for view in views])

    def _of(self, seen: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(seen.mean(axis=2, dtype=np.float64), full_matrices=False)
        return np.concatenate(
            [_projection(left[:, : self.rank], SIDE[1]), _projection(right[: self.rank].T, SIDE[0])]
        )


def _projection(basis: np.ndarray, side: int) -> np.ndarray:
    """Return the upper triangle of the projection on columns, after a mean over `side` parts of the rows."""
    fewer = cv2.resize(basis, (basis.shape[1], side), interpolation=cv2.INTER_AREA)
    fewer = fewer.reshape(side, -1) * np.sqrt(len(basis) / side)
    return np.asarray((fewer @ fewer.T)[np.triu_indices(side)])


@dataclass(frozen=True)
class Matched(Wrapped):
    """Gives every person as many releases as `Background.attacked` says, so that the whole is likeliest.

    The likelihood is the softmax of the inner scores, standardised over people. Releases that are alike to
    it are given out at random by `seed`, never by their order. No bound on one release holds for it: who
    tells all others apart knows the last. Source: Kuhn 1955 (assignment). Raises `InvalidParameter` for an
    inner attack that looks at all releases together already.
    """

    name: ClassVar[str] = "matched"
    summary: ClassVar[str] = "all releases matched to all people at once, by the scores of another attack"
    joint: ClassVar[bool] = True
    enrols: ClassVar[bool] = False

    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.inner.joint:
            problem = "looks at all releases together already"
            raise InvalidParameter("inner", self.inner.label, problem, hint="such as matched(pixels)")

    def undo(self, background: Background) -> Undo:
        return tuple

    def fit(self, background: Background) -> Fitted:
        """Return the inner attacker, fitted, whose scores are matched; raises as it does."""
        return _Matched(self.inner.fit(background), background.attacked, self.seed)


@dataclass(frozen=True, eq=False)
class _Matched(Fitted):
    inner: Fitted
    attacked: Mapping[str, int]
    seed: int

    def score(self, releases: Sequence[View]) -> Scores:
        found = self.inner.score(releases)
        said = np.flatnonzero(np.isfinite(found.likeness).all(axis=1))
        likeness = np.full(found.likeness.shape, np.nan)
        if len(said):
            logs = log_softmax(standard(Scores(found.likeness[said], found.names)), axis=1)
            even = -(-len(releases) // len(found.names))
            most = [self.attacked.get(name, 0) if self.attacked else even for name in found.names]
            likeness[said] = matching(logs, np.array(most, np.int64), self.seed)
        return Scores(likeness, found.names)


def matching(
    logs: Float64[np.ndarray, "n people"], most: Int64[np.ndarray, " people"], seed: int
) -> Float64[np.ndarray, "n people"]:
    """Return log-likelihoods, at most 0, with 1 for the person whom each release is given to.

    Nobody is given more than `most` releases, and the sum of the log-likelihoods is the largest. With more
    releases than that in all, those over are given to nobody.
    """
    rows = np.argsort(SeededBits(seed, "releases").words(len(logs)), kind="stable")
    places = np.repeat(np.arange(len(most)), most)
    places = places[np.argsort(SeededBits(seed, "places").words(len(places)), kind="stable")]
    row, place = linear_sum_assignment(logs[rows][:, places], maximize=True)
    out = logs.copy()
    out[rows[row], places[place]] = 1.0
    return out

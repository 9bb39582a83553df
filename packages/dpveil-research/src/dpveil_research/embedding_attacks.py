"""Attackers who compare embeddings: the nearest person, what releases teach, thresholds, and real or made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.spatial.distance import cdist

from dpveil.attacks.measures import Verified
from dpveil.attacks.resampling import Interval, by_person
from dpveil.attacks.vectors import whitening
from dpveil.core.arrays import Bool, Float64, Int64, Shaped
from dpveil.errors import InvalidParameter, UsageError

Embeddings = Float64[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Identified:
    """The result of identification: `right` says for each probe whether the nearest person is the true one.

    `people` are the true names and `chance` is one in the number of people. Probes without a face count as
    wrong.
    """

    right: Bool[np.ndarray, " probes"]
    people: tuple[str, ...]
    chance: float

    @property
    def rate(self) -> float:
        """The rank-1 identification rate: the share of probes that were identified correctly."""
        return float(self.right.mean())

    def interval(self, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
        """Return a percentile bootstrap interval of `rate` that resamples people with all their probes.

        If all probes are right, or none, all draws are equal; the inner end is then the exact one
        (Clopper-Pearson) for as many independent probes as there are people.
        """
        return by_person(self.right.astype(np.float64), self.people, draws=draws, level=level, seed=seed)


@dataclass(frozen=True, eq=False)
class Known:
    """The people known to the attacker, sorted by name, and the mean embedding of each; NaN without one."""

    names: tuple[str, ...]
    means: Float64[np.ndarray, "people d"]

    def distances(self, probes: Embeddings) -> Float64[np.ndarray, "probes people"]:
        """Return the Euclidean distances of probes to means, infinite where either is NaN."""
        found = cdist(probes, self.means)
        return np.where(np.isfinite(found), found, np.inf)

    def places(self, people: Sequence[str]) -> Int64[np.ndarray, " n"]:
        """Return the row of each person; raises `InvalidParameter` for one who is not known."""
        missing = sorted(set(people) - set(self.names))
        if missing:
            problem = f"of the probes are not all known to the attacker: {len(missing)} are missing"
            raise InvalidParameter(
                "people", None, problem, hint="closed-set attacks need photos of everybody"
            )
        rows = {name: row for row, name in enumerate(self.names)}
        return np.array([rows[name] for name in people], np.int64)


def means_of(known: Embeddings, people: Sequence[str]) -> Known:
    """Return the mean embedding of each person, ignoring photos without a face (NaN).

    Raises `InvalidParameter` unless there is one name for each embedding, and at least one.
    """
    check_named("known", known, people)
    names, place = np.unique(np.asarray(people), return_inverse=True)
    there = np.isfinite(known).all(axis=1)
    sums, counts = np.zeros((len(names), known.shape[1])), np.bincount(place[there], minlength=len(names))
    np.add.at(sums, place[there], known[there])
    with np.errstate(invalid="ignore"):
        return Known(tuple(map(str, names)), sums / counts[:, None])


def check_named(what: str, embeddings: Embeddings, people: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless there is one name for each embedding, and at least one."""
    if embeddings.ndim != 2 or len(embeddings) != len(people) or not len(people):
        problem = f"of shape {embeddings.shape} do not match {len(people)} names"
        raise InvalidParameter(what, None, problem, hint="give a row and a name for each photo, n × d")


def identify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of identifying each probe as the person with the nearest mean embedding.

    `known` (n × d) are embeddings of the attacker's photos, which are not the probes' originals; for released
    photos see `parrot`. Every person of the probes must be known. A probe of NaN counts as wrong. Raises
    `InvalidParameter`.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    return nearest(everybody, probes, people)


def nearest(everybody: Known, probes: Embeddings, people: Sequence[str]) -> Identified:
    """Return the result of identifying each probe as the person with the nearest mean."""
    true, away = everybody.places(people), everybody.distances(probes)
    found = np.where(np.isfinite(away).any(axis=1), away.argmin(axis=1), -1)
    return Identified(found == true, tuple(people), 1 / len(everybody.names))


def parrot(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of an attacker who learns from released photos of everybody.

    `known` (n × d) are embeddings of photos released by the method under attack, which are not the probes.
    Embeddings are whitened by the scatter within people (Fisher's linear discriminant with shrinkage), then
    the nearest mean decides. With one photo of each person this is `identify` on released photos. A probe of
    NaN counts as wrong. Raises `InvalidParameter`. Source: Newton, Sweeney & Malin 2005; Croft 2022 §6.4.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    turn = whitening(known, known_people)
    return nearest(Known(everybody.names, everybody.means @ turn), probes @ turn, people)


def strongest(*attacks: Identified) -> Identified:
    """Return the attack with the highest identification rate, which is the one to report."""
    return max(attacks, key=lambda one: one.rate)


Features = Shaped[np.ndarray, "n d"]


LEAST: Final = 4
"""Least number of people: two to train on, two to try."""


@dataclass(frozen=True, eq=False)
class ToldApart:
    """A classifier that tells real from made: `right` is the share of correct answers for each picture pair.

    `kind` names the classifier, `people` each pair's person. Chance is 0.5.
    """

    kind: str
    right: Float64[np.ndarray, " n"]
    people: tuple[str, ...]

    @property
    def rate(self) -> float:
        """The balanced accuracy."""
        return float(self.right.mean())

    def interval(self, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
        """Return a percentile bootstrap interval of `rate` that resamples people."""
        return by_person(self.right, self.people, draws=draws, level=level, seed=seed)


def real_or_made(real: Features, made: Features, people: Sequence[str]) -> ToldApart:
    """Return the best classifier of features: of each it is told for one half of the people which are real.

    Row i of `real` (n × d) and of `made` belong to `people[i]`. Each kind of classifier is trained on each
    half of the people and tried on the other; the one with the highest accuracy counts, so chance is a little
    above 0.5. Needs the extra `learn`. Raises `InvalidParameter` and `UsageError`.
    """
    first, second = (np.asarray(rows, np.float64) for rows in (real, made))
    _check(first, second, people)
    half = _half(people)
    rows = np.concatenate([first, second])
    kinds = classifiers()
    found = [
        ToldApart(kind, _held_out_accuracy(make, rows, half), tuple(people)) for kind, make in kinds.items()
    ]
    return max(found, key=lambda one: one.rate)


def classifiers() -> dict[str, Callable[[], Any]]:
    """Return what makes each kind of classifier; raises `UsageError` without scikit-learn."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise UsageError("scikit-learn is not installed", hint="pip install 'dpveil[learn]'") from error

    def linear() -> Any:
        seen = PCA(0.99, svd_solver="full")
        return make_pipeline(StandardScaler(), seen, LogisticRegression(C=0.03, max_iter=2000))

    trees = partial(ExtraTreesClassifier, 400, min_samples_leaf=2, max_features=0.1, random_state=0)
    return {"linear": linear, "trees": trees}


def _held_out_accuracy(
    make: Callable[[], Any], rows: Features, half: Bool[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Return for each pair the share of its two pictures that a classifier of the other half gets right."""
    truth = np.repeat([0, 1], len(half))
    right = np.empty(len(half))
    for train in (half, ~half):
        model = make()
        model.fit(rows[np.tile(train, 2)], truth[np.tile(train, 2)])
        tried = np.tile(~train, 2)
        right[~train] = (model.predict(rows[tried]) == truth[tried]).reshape(2, -1).mean(axis=0)
    return right


def _half(people: Sequence[str]) -> Bool[np.ndarray, " n"]:
    names = np.asarray(people)
    return np.isin(names, np.unique(names)[::2])


def _check(real: Features, made: Features, people: Sequence[str]) -> None:
    if real.ndim != 2 or real.shape != made.shape or len(real) != len(people):
        found = f"{real.shape}, {made.shape} and {len(people)} people"
        raise InvalidParameter("made", found, "do not fit together", hint="n × d, n × d and n")
    if not (np.isfinite(real).all() and np.isfinite(made).all()):
        raise InvalidParameter("made", None, "are not all finite", hint="leave out pictures without features")
    if len(set(people)) < LEAST:
        raise InvalidParameter("people", len(set(people)), "are too few", hint=f"{LEAST} or more")


def verify(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str], *, far: float
) -> Verified:
    """Return the genuine and impostor distances of probes, for a false accept rate of `far`.

    A person is represented by the mean of the known embeddings, and every probe is an impostor for all other
    people. A probe of NaN is never accepted, and counts. Raises `InvalidParameter`, also if `far` is not at
    least 0 and below 1, or fewer than two people are known.
    """
    check_named("probes", probes, people)
    if not 0 <= far < 1:
        raise InvalidParameter("far", far, "is not at least 0 and below 1", hint="such as 0.001")
    everybody = means_of(known, known_people)
    if len(everybody.names) < 2:
        raise InvalidParameter("known", None, "are fewer than two people", hint="impostors are needed")
    true, away = everybody.places(people), everybody.distances(probes)
    own = np.zeros(away.shape, bool)
    own[np.arange(len(true)), true] = True
    return Verified(away[own], away[~own].reshape(len(true), -1), tuple(people), far)

"""Classifiers that tell made pictures from real ones, tried on people whom they were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from dpveil.attacks.resampling import Interval, by_person
from dpveil.errors import InvalidParameter, UsageError

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
    found = [ToldApart(kind, _tried(make, rows, half), tuple(people)) for kind, make in kinds.items()]
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


def _tried(
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

"""Measures of scores, with bootstrap intervals: identification, also among strangers, and verification.

These resample people instead of photos, as photos of one person are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.attacks.base import Scores
from dpveil.attacks.vectors import UNKNOWN
from dpveil.core.array_types import Bool, Float64, Int64
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits

Interval = tuple[float, float]
BLOCK: Final = 1 << 22  # most people of all draws of a block together


def drawn_people(count: int, draws: int, seed: int) -> Int64[np.ndarray, "draws people"]:
    """Return the multiplicity of each of `count` people in each bootstrap draw of `count` of them."""
    return _times(SeededBits(seed, "bootstrap"), count, draws)


def _times(bits: SeededBits, count: int, draws: int) -> Int64[np.ndarray, "draws people"]:
    words = bits.words(draws * count).reshape(draws, count)
    picks = (words % np.uint64(count)).astype(np.int64) + count * np.arange(draws)[:, None]
    return np.bincount(picks.ravel(), minlength=draws * count).reshape(draws, count)


def by_person(
    values: Float64[np.ndarray, " n"], people: Sequence[str], *, draws: int, level: float, seed: int
) -> Interval:
    """Return a percentile bootstrap interval of the mean of `values` (0 to 1) that resamples people.

    For a mean of exactly 0 or 1, the inner end is Clopper and Pearson's for as many trials as people. Raises
    `InvalidParameter` for a `level` outside (0, 1).
    """
    means = mean_of_draws(values[None], people, draws=draws, seed=seed)[:, 0]
    return ends(means, float(values.mean()), len(set(people)), level)


def mean_of_draws(
    values: Float64[np.ndarray, "k n"], people: Sequence[str] | Sequence[int], *, draws: int, seed: int
) -> Float64[np.ndarray, "draws k"]:
    """Return the means of rows of values, each of n photos of these people, in draws of as many people.

    Draws are made in blocks, so that memory stays bounded.
    """
    names, person = np.unique(np.asarray(people), return_inverse=True)
    count = len(names)
    sums = np.array([np.bincount(person, weights=row, minlength=count) for row in values])
    photos, bits = np.bincount(person, minlength=count), SeededBits(seed, "bootstrap")
    out, step = [], max(1, BLOCK // count)
    for first in range(0, draws, step):
        times = _times(bits, count, min(step, draws - first))
        out.append(times @ sums.T / (times @ photos)[:, None])
    return np.concatenate(out)


def ends(means: Float64[np.ndarray, " draws"], mean: float, people: int, level: float) -> Interval:
    """Return the quantiles of the draws' means, or the exact interval if `mean` is 0 or 1; both hold it."""
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "is not between 0 and 1", hint="such as 0.95")
    tail = (1 - level) / 2
    inner = 1 - tail ** (1 / people)
    if mean <= 0:
        return 0.0, inner
    if mean >= 1:
        return 1 - inner, 1.0
    low, high = np.quantile(means, [tail, 1 - tail])
    return min(float(low), mean), max(float(high), mean)


@dataclass(frozen=True, eq=False)
class Verified:
    """Distances of every probe to its own person and to all others; infinite where no face was found.

    `people` are the true names. `far` is the false accept rate, which is also the TAR of random guessing.
    """

    genuine: Float64[np.ndarray, " probes"]
    impostors: Float64[np.ndarray, "probes others"]
    people: tuple[str, ...]
    far: float

    @property
    def threshold(self) -> float:
        """The largest distance threshold that accepts no more than `far` of the impostors, or -inf."""
        return float(self._thresholds(np.ones((1, len(self.people)), np.int64))[0])

    @property
    def rate(self) -> float:
        """The true accept rate at `far`: the share of probes accepted as their own person."""
        return float((self.genuine <= self.threshold).mean())

    def interval(self, *, draws: int = 1000, level: float = 0.95, seed: int = 0) -> Interval:
        """Return a bootstrap interval of `rate` that resamples people, with a new threshold in each draw."""
        names, person = np.unique(np.asarray(self.people), return_inverse=True)
        times = drawn_people(len(names), draws, seed)[:, person]
        accepted = self.genuine <= self._thresholds(times)[:, None]
        rates = (times * accepted).sum(axis=1) / times.sum(axis=1)
        return ends(rates, self.rate, len(names), level)

    @property
    def equal_error(self) -> float:
        """The rate at which as many probes are refused for their own person as pass for another.

        Between two thresholds the mean of both rates at the better one; half at most, as by guessing.
        """
        return float(self._equal_errors(np.ones((1, len(self.people)), np.int64))[0])

    def equal_error_interval(self, *, draws: int = 500, level: float = 0.95, seed: int = 0) -> Interval:
        """Return a percentile bootstrap interval of `equal_error` that resamples people."""
        names, person = np.unique(np.asarray(self.people), return_inverse=True)
        found = self._equal_errors(drawn_people(len(names), draws, seed)[:, person])
        return ends(found, self.equal_error, len(names), level)

    def _thresholds(self, times: Int64[np.ndarray, "draws probes"]) -> Float64[np.ndarray, " draws"]:
        """Return the threshold of each draw, in which probes have the multiplicities `times`; never inf."""
        levels = Levels.of(self.impostors.ravel())
        probe = levels.order // self.impostors.shape[1]
        return np.array([levels.threshold(weights[probe], self.far) for weights in times])

    def _equal_errors(self, times: Int64[np.ndarray, "draws probes"]) -> Float64[np.ndarray, " draws"]:
        """Return the equal error rate of each draw, in which probes have the multiplicities `times`."""
        count, others = self.impostors.shape
        levels = Levels.of(np.append(self.genuine, self.impostors))
        finite = levels.last & np.isfinite(levels.away)
        own = levels.order < count
        probe = np.where(own, levels.order, (levels.order - count) // others)
        found = np.full(len(times), 0.5)
        for row, weights in enumerate(times) if finite.any() else ():
            held = weights[probe]
            missed = 1 - np.cumsum(held * own)[finite] / weights.sum()
            wrong = np.cumsum(held * ~own)[finite] / (weights.sum() * others)
            best = int(np.abs(missed - wrong).argmin())
            found[row] = min(0.5, (missed[best] + wrong[best]) / 2)
        return found


@dataclass(frozen=True, eq=False)
class Levels:
    """Distances in order: `last` says which are the last of their value, as equal ones pass together."""

    order: Int64[np.ndarray, " n"]
    away: Float64[np.ndarray, " n"]
    last: Bool[np.ndarray, " n"]

    @classmethod
    def of(cls, away: Float64[np.ndarray, " n"]) -> Levels:
        """Return the levels of distances; infinite ones never pass."""
        order = np.argsort(away, kind="stable")
        ordered = away[order]
        return cls(order, ordered, np.append(ordered[1:] > ordered[:-1], True))

    def threshold(self, weights: Int64[np.ndarray, " n"], far: float) -> float:
        """Return the largest distance that accepts no more than `far` of the weight, or -inf; never inf.

        `weights` are those of the ordered distances.
        """
        accepted = np.cumsum(weights)
        allowed = far * accepted[-1] * (1 + 1e-12)
        place = np.searchsorted(accepted[self.last], allowed, side="right")
        return float(np.append(-np.inf, self.away[self.last])[place])


FLAT: Final = 1e-9  # least standard deviation of a row of scores that divides


def identification_rates(
    scores: Scores, people: Sequence[str], *, rank: int = 1
) -> Float64[np.ndarray, " n"]:
    """Return the probability that each release's person is among the `rank` likeliest, 0 to 1.

    People who are equally likely are put in random order, so that an attacker who says the same of everybody
    succeeds by chance. A release about which it says nothing counts as its failure. Raises
    `InvalidParameter` for people who have no column, and a number of people that is not that of the scores.
    """
    own = columns_of(scores, people)
    if not 1 <= rank <= len(scores.names):
        raise InvalidParameter(
            "rank", rank, "is not a place among the people", hint=f"1 to {len(scores.names)}"
        )
    there = np.isfinite(scores.likeness).all(axis=1)
    true = scores.likeness[np.arange(len(own)), own][:, None]
    above, alike = (scores.likeness > true).sum(axis=1), (scores.likeness == true).sum(axis=1)
    return np.where(there, ((rank - above) / np.maximum(alike, 1)).clip(0, 1), 0.0)


def verification_rates(scores: Scores, people: Sequence[str], *, far: float) -> Verified:
    """Return how often releases pass for their own person where a share `far` of the others' do.

    Scores are standardised over people before, as some releases resemble everybody. Raises `InvalidParameter`
    as `columns_of` does. Source: Auckenthaler, Carey & Lloyd-Thomas 2000 (test normalisation).
    """
    own = columns_of(scores, people)
    away = np.where(np.isfinite(scores.likeness).all(axis=1)[:, None], -standard(scores), np.inf)
    mine = np.zeros(away.shape, bool)
    mine[np.arange(len(own)), own] = True
    return Verified(away[mine], away[~mine].reshape(len(own), -1), tuple(people), far)


def standard(scores: Scores) -> Float64[np.ndarray, "releases people"]:
    """Return scores less their mean over people, in units of their deviation; 0 of releases without any.

    People of whom the attacker knows nothing get the least of the others' scores.
    """
    likeness = np.where(scores.likeness > UNKNOWN / 2, scores.likeness, np.inf)
    least = np.where(np.isfinite(likeness), likeness, np.inf).min(axis=1, keepdims=True)
    likeness = np.where(np.isfinite(likeness), likeness, np.where(np.isfinite(least), least, 0.0))
    away = likeness - likeness.mean(axis=1, keepdims=True)
    return np.asarray(away / np.maximum(away.std(axis=1, keepdims=True), FLAT))


def columns_of(scores: Scores, people: Sequence[str]) -> Int64[np.ndarray, " n"]:
    """Return the column of each release's person; raises `InvalidParameter`."""
    if len(people) != len(scores.likeness) or not len(people):
        problem = f"of {len(people)} releases do not match {len(scores.likeness)} rows of scores"
        raise InvalidParameter("people", None, problem, hint="give one name for each release")
    columns = {name: column for column, name in enumerate(scores.names)}
    missing = sorted(set(people) - set(columns))
    if missing:
        problem = f"of the releases are not all known to the attacker: {len(missing)} are missing"
        raise InvalidParameter("people", None, problem, hint="closed-set attacks need photos of everybody")
    return np.array([columns[name] for name in people], np.int64)


DRAWS: Final = 1000
LEVEL: Final = 0.95
FARS: Final = (1e-2, 1e-3)  # false accept rates that are usually reported


@dataclass(frozen=True)
class Rate:
    """A rate, 0 to 1, with its bootstrap interval over people, and what a guess reaches.

    `failures` are releases about which the attacker said nothing: they count as such. `releases` are all.
    """

    value: float
    low: float
    high: float
    chance: float
    failures: int
    releases: int


def identification(scores: Scores, people: Sequence[str], *, rank: int = 1) -> Rate:
    """Return how often a release's person is among the `rank` likeliest.

    `people` are the true ones, all of them known to the attacker. Raises `InvalidParameter`.
    """
    right = identification_rates(scores, people, rank=rank)
    interval = by_person(right, people, draws=DRAWS, level=LEVEL, seed=0)
    return _rate(float(right.mean()), interval, rank / len(scores.names), scores)


def verification(scores: Scores, people: Sequence[str], *, far: float) -> Rate:
    """Return how often releases pass for their own person where a share `far` of the others' do (TAR at FAR).

    An attack that knows clean photos compares originals with releases, one that learns from releases compares
    releases. Raises `InvalidParameter`.
    """
    verified = verification_rates(scores, people, far=far)
    interval = verified.interval(draws=DRAWS, level=LEVEL)
    return _rate(verified.rate, interval, far, scores)


def equal_error(scores: Scores, people: Sequence[str]) -> Rate:
    """Return the equal error rate of verification; a guess has one half. Raises `InvalidParameter`."""
    verified = verification_rates(scores, people, far=0.0)
    return _rate(verified.equal_error, verified.equal_error_interval(level=LEVEL), 0.5, scores)


def _rate(value: float, interval: Interval, chance: float, scores: Scores) -> Rate:
    failures = int((~np.isfinite(scores.likeness).all(axis=1)).sum())
    return Rate(value, *interval, chance, failures, len(scores.likeness))

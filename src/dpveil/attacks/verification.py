"""Verification by embeddings: the true accept rate (TAR) at a fixed false accept rate (FAR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.attacks.identify import Embeddings, check_named, means_of
from dpveil.attacks.resampling import Interval, drawn_people, ends
from dpveil.errors import InvalidParameter


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

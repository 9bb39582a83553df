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

    def _thresholds(self, times: Int64[np.ndarray, "draws probes"]) -> Float64[np.ndarray, " draws"]:
        """Return the threshold of each draw, in which probes have the multiplicities `times`; never inf."""
        away = self.impostors.ravel()
        order = np.argsort(away, kind="stable")
        away = away[order]
        last: Bool[np.ndarray, " pairs"] = np.append(away[1:] > away[:-1], True)
        levels = np.append(-np.inf, away[last])
        probe = order // self.impostors.shape[1]
        found = np.empty(len(times))
        for row, weights in enumerate(times):
            accepted = np.cumsum(weights[probe])
            allowed = self.far * accepted[-1] * (1 + 1e-12)
            found[row] = levels[np.searchsorted(accepted[last], allowed, side="right")]
        return found


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

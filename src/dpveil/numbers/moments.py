"""Private counts, means and deviations of classes: sensitivities and releases.

Features are clipped to public bounds and rounded to codes 0..2^16 between them, record by record, so that
every sum below is an integer. Take two tables, one of which has one record more, of class c with codes u. The
computed values differ only in these:

* the count n of class c, by 1;
* for every feature, the centred sum T = Σ (2u - 2^16) / 2^16 of class c, by at most 1, as every term is in
  [-1, 1] (the sum is over all records of the class, and its true size is not used);
* for every feature, given a public code j and W = max(j, 2^16 - j), the root R = √(Σ (u - j)²) / W of class
  c, by at most 1: R is a Euclidean norm of the differences, the record adds a coordinate |u - j| ≤ W, and
  norms differ by at most the norm of what is added (triangle inequality);
* or, in its place, the square R², by at most 1 as well: the record adds (u - j)²/W² to a sum.

Each is released as a query of sensitivity 1. Releases about class c cost ε_count + d·(ε_mean + ε_deviation)
by sequential composition, which may be adaptive: j is the *released* mean. Those about other classes cost
nothing, as they are computed from other records (parallel composition). A *replaced* record is one removed
and one added, in two classes if its label changes, so it costs twice that; with two classes this is tight.

Everything else is post-processing: with m = max(released count, 1) the mean is the middle of the bounds plus
T·width/(2m), clipped to them, and the deviation is R·W/√m, the root mean square distance from the released
mean. For n = m that is √(variance + (mean - released mean)²), the standard deviation but for the noise of the
mean. In these units the noise of a response is W/√m on a deviation for R, and W²/m on a variance for R². The
deviation about the true mean would have a sensitivity of width·√(m - 1)/m, up to twice that for R, and only
for a public m, with records dropped or added to keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Final, Protocol

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.scalar import TABLE, Geometric, Laplace, ScalarMechanism
from dpveil.noise.bits import BitSource

LEVELS: Final = 1 << 16
"""The largest code; codes are from 0 to this."""
MOST: Final = 512
"""Most steps of the lattice of a mechanism with an upper end; beyond, a step is several sensitivities."""
Codes = Int64[np.ndarray, "records features"]
Ints = Int64[np.ndarray, "classes features"]


@dataclass(frozen=True)
class Shares:
    """The ε for one added record of each release: the count, and each feature's mean and deviation."""

    count: Fraction
    mean: Fraction
    deviation: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, features: int, parts: tuple[Fraction, Fraction, Fraction]) -> Shares:
        """Return shares that sum to `epsilon`, divided between count, means and deviations as `parts`."""
        unit = epsilon / sum(parts)
        return cls(unit * parts[0], unit * parts[1] / features, unit * parts[2] / features)

    def total(self, features: int) -> Fraction:
        """Return the ε for one added record of all releases together."""
        return self.count + features * (self.mean + self.deviation)


@dataclass(frozen=True)
class Moments:
    """Released values: each class's count, the code of each mean, and each deviation as a fraction of the
    width.
    """

    counts: Int64[np.ndarray, " classes"]
    means: Int64[np.ndarray, "classes features"]
    deviations: Float64[np.ndarray, "classes features"]


@dataclass(frozen=True)
class TrueAnswers:
    """True answers about to be released, as points on the lattice of the mechanism that draws them."""

    mechanism: ScalarMechanism
    points: Int64[np.ndarray, " n"] = field(repr=False)

    def draw(self, bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return the responses, as points of the lattice."""
        return self.mechanism.draw(self.points, bits)


class Spread(Protocol):
    """A way to release the deviations of all classes."""

    def release(self, squares: Ints, reach: Ints, sizes: list[int], bits: BitSource) -> Any:
        """Return a response for every root √squares / reach, one row per class of a public size."""


@dataclass(frozen=True)
class Deviations:
    """Releases the root R of every feature, or R² if `squared`, by a scalar mechanism of sensitivity 1.

    `mechanism` is its name, with `relation` and `epsilon`; its range begins at 0.
    """

    mechanism: str
    relation: str
    epsilon: Fraction
    squared: bool = False

    def top(self, size: int) -> int | None:
        """Return the upper end for a class of public size, or None if the mechanism needs none.

        It is ⌈√size⌉, or size for squares, rounded up to whole steps. R² is at most n, so for n = m it is not
        exceeded; larger answers are clipped.
        """
        if not TABLE[self.mechanism].finite_only:
            return None
        end = size if self.squared else isqrt(size - 1) + 1
        step = -(-end // most_steps(self.mechanism))
        return -(-end // step) * step

    def at(self, size: int) -> ScalarMechanism:
        """Return the mechanism for a class of public size."""
        return _made(self.mechanism, self.top(size), self.epsilon, self.relation)

    def plan(self, squares: Ints, reach: Ints, sizes: list[int]) -> dict[tuple[int, ...], TrueAnswers]:
        """Return the true answers √squares / reach, grouped by the classes that share a mechanism."""
        nearest = square_point if self.squared else root_point
        tops = [self.top(size) for size in sizes]
        found = {}
        for top in dict.fromkeys(tops):
            rows = tuple(row for row, own in enumerate(tops) if own == top)
            mechanism = self.at(sizes[rows[0]])
            pairs = zip(squares[[*rows]].ravel().tolist(), reach[[*rows]].ravel().tolist(), strict=True)
            points = np.array([nearest(s, w, mechanism) for s, w in pairs], np.int64)
            found[rows] = TrueAnswers(mechanism, points)
        return found

    def release(self, squares: Ints, reach: Ints, sizes: list[int], bits: BitSource) -> Any:
        """Return a response for every root √squares / reach, one row per class, in the same unit."""
        found = np.empty(reach.shape)
        for rows, asked in self.plan(squares, reach, sizes).items():
            drawn = asked.mechanism.lattice.value(asked.draw(bits))
            found[[*rows]] = drawn.reshape(len(rows), -1)
        return np.sqrt(found) if self.squared else found


def most_steps(name: str) -> int:
    """Return the most steps of the lattice of a mechanism with an upper end."""
    return min(MOST, TABLE[name].most - 1)


@lru_cache(maxsize=64)
def _made(name: str, top: int | None, epsilon: Fraction, relation: str) -> ScalarMechanism:
    steps = most_steps(name)
    step = None if top is None or top <= steps else -(-top // steps)
    made = TABLE[name](range=(0, top), sensitivity=1, epsilon=epsilon, relation=relation, step=step)
    made.prepare()
    return made


@lru_cache(maxsize=64)
def count_mechanism(epsilon: Fraction) -> ScalarMechanism:
    """Return two-sided geometric noise on a count, snapped at 0."""
    return Geometric(range="0:", sensitivity=1, epsilon=epsilon)


@lru_cache(maxsize=64)
def sum_mechanism(epsilon: Fraction) -> ScalarMechanism:
    """Return Laplace noise on a centred sum; the mean is clipped to the bounds afterwards."""
    return Laplace(range=":", sensitivity=1, epsilon=epsilon)


def root_point(squares: int, reach: int, mechanism: ScalarMechanism) -> int:
    """Return the point of a lattice from 0 that is nearest √squares / reach, exactly, at most its last one.

    The point is ⌊x + 1/2⌋ with x = √(squares/(reach·step)²), computed in integers, as ⌊2x⌋ = ⌊√⌊(2x)²⌋⌋.
    Rounding and clipping keep two roots at most 1 apart within the lattice's `reach`.
    """
    step = mechanism.lattice.step
    four_x_squared = 4 * squares * step.denominator**2 // (reach * step.numerator) ** 2
    return _at_most_the_end((isqrt(four_x_squared) + 1) // 2, mechanism)


def square_point(squares: int, reach: int, mechanism: ScalarMechanism) -> int:
    """Return the point of a lattice from 0 that is nearest squares / reach², exactly, at most its last
    one.
    """
    step = mechanism.lattice.step
    above, below = squares * step.denominator, reach * reach * step.numerator
    return _at_most_the_end((2 * above + below) // (2 * below), mechanism)


def _at_most_the_end(point: int, mechanism: ScalarMechanism) -> int:
    last = mechanism.lattice.spans[-1][1]
    return point if last is None else min(point, last)


def encode(
    values: Float64[np.ndarray, "records features"],
    lower: Float64[np.ndarray, " features"],
    upper: Float64[np.ndarray, " features"],
) -> Codes:
    """Return the nearest code of every value, clipped to its bounds: 0 at `lower`, 2^16 at `upper`."""
    inside = np.clip(values, lower, upper)
    codes: Codes = np.rint((inside - lower) / (upper - lower) * LEVELS).astype(np.int64)
    return codes.clip(0, LEVELS)


@dataclass(frozen=True)
class Plan:
    """All queries about the classes, before anything is drawn; `groups` are the records' codes, and private.

    Counts are released first, then all sums, then all deviations about the released means. The cost is
    `shares.total(features)` for one record added or removed, and twice that for one replaced (proof in the
    docstring of the module).
    """

    groups: tuple[Codes, ...] = field(repr=False)
    shares: Shares
    deviations: Spread

    @classmethod
    def of(
        cls,
        codes: Codes,
        labels: Int64[np.ndarray, " records"],
        classes: int,
        shares: Shares,
        deviations: Spread,
    ) -> Plan:
        """Return the plan for records with labels from 0 to `classes` - 1."""
        ends = np.cumsum(np.bincount(labels, minlength=classes))[:-1]
        return cls(tuple(np.split(codes[np.argsort(labels, kind="stable")], ends)), shares, deviations)

    def sizes(self) -> TrueAnswers:
        """Return the true count of every class."""
        sizes = np.array([len(group) for group in self.groups], np.int64)
        return TrueAnswers(count_mechanism(self.shares.count), sizes)

    def sums(self) -> TrueAnswers:
        """Return the true centred sum of every feature of every class, class by class."""
        mechanism = sum_mechanism(self.shares.mean)
        each, at = np.unique(centred_sums(self.groups), return_inverse=True)
        points = [int(mechanism.lattice.index(Fraction(int(total), LEVELS))[0]) for total in each]
        return TrueAnswers(mechanism, np.array(points, np.int64)[at.ravel()])

    def spreads(self, means: Ints) -> tuple[Ints, Ints]:
        """Return Σ (u - j)² of every feature of every class about its public code j, and W = max(j, 2^16 -
        j).
        """
        return squares_about(self.groups, means), np.maximum(means, LEVELS - means)

    def release(self, bits: BitSource) -> Moments:
        """Return private counts, means and deviations of every class."""
        counts = self.sizes().draw(bits)
        means = mean_codes(self.sums(), counts, bits)
        (squares, reach), publicly = self.spreads(means), np.maximum(counts, 1)
        roots = self.deviations.release(squares, reach, publicly.tolist(), bits)
        most = np.sqrt(publicly)[:, None]
        return Moments(counts, means, np.minimum(roots, most) * (reach / LEVELS) / most)


def centred_sums(groups: Sequence[Codes]) -> Ints:
    """Return 2^16·T of every feature of every class; one record changes it by at most 2^16."""
    return _sums(2 * np.concatenate(groups) - LEVELS, groups)


def mean_codes(sums: TrueAnswers, counts: Int64[np.ndarray, " classes"], bits: BitSource) -> Ints:
    """Draw the sums and return the code of every mean."""
    noisy = sums.mechanism.lattice.value(sums.draw(bits)).reshape(len(counts), -1)
    middle = noisy / np.maximum(counts, 1)[:, None]
    codes: Ints = np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64)
    return codes


def squares_about(groups: Sequence[Codes], centres: Ints) -> Ints:
    """Return Σ (u - j)² of every feature of every class about its centre j, at most 2^32 a record."""
    own = np.repeat(centres, [len(group) for group in groups], axis=0)
    return _sums((np.concatenate(groups) - own) ** 2, groups)


def _sums(terms: Codes, groups: Sequence[Codes]) -> Ints:
    """Return the sums of `terms` over the records of every class."""
    ends = np.cumsum([0, *(len(group) for group in groups)])
    running = np.concatenate([np.zeros((1, terms.shape[1]), np.int64), terms.cumsum(axis=0)])
    return np.diff(running[ends], axis=0)

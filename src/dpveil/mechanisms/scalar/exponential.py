"""The exponential mechanism on a lattice, at the largest rate that keeps the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.mechanisms.scalar.base import ANY, ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Rows
from dpveil.mechanisms.scalar.noises import PRECISION, LaplaceNoise
from dpveil.mechanisms.scalar.scales import least_scale
from dpveil.noise.laplace import exp_below

BITS: Final = 320  # bits of precision of probabilities
ONE: Final = 1 << BITS
PARTS: Final = 1 << 40  # the rate is found to one part in this number
FLOAT_SPARE: Final = 1e-10  # taken off ε in the search for the rate, for its floating-point error
MOST_FLIPS: Final = 128  # points of the largest lattice
Logs = Float64[np.ndarray, "answers responses"]


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(ScalarMechanism):
    """Responses are visited in random order, and each is returned with probability e^(-rate·|y - x|).

    The general theorem allows a rate of ε/(2ΔF), at which the expected error is never above that of the
    exponential mechanism. Here the rate is the largest that is private on this lattice, as for `Exponential`,
    so the order of the two can change. Gaps are allowed, and up to 128 points. Fields are those of
    `ScalarMechanism`. Source: McKenna & Sheldon 2020, algorithm 1.

    >>> method = PermuteAndFlip(range=(0, 1), sensitivity=1, epsilon=1)
    >>> method.matrix().round(3).tolist()
    [[0.731, 0.269], [0.269, 0.731]]
    """

    name: ClassVar[str] = "permute-and-flip"
    summary: ClassVar[str] = "responses in random order, each given by a coin that knows its distance"
    source: ClassVar[str] = "McKenna & Sheldon 2020"
    most: ClassVar[int] = MOST_FLIPS

    @property
    def rate(self) -> Fraction:
        """How much the logarithm of a coin's probability falls per unit of the answer."""
        return self._rate / self.lattice.step

    @cached_property
    def _rate(self) -> Fraction:
        """The largest private rate per step, found in floating point; the integers are certified
        afterwards.
        """
        lattice = self.lattice
        low, high = self.budget / (2 * lattice.reach), 2 * self.budget / lattice.reach
        left, right = 0, PARTS
        while right - left > 1:
            middle = (left + right) // 2
            rate = low + (high - low) * Fraction(middle, PARTS)
            if self._steepness(float(rate)) <= float(self.budget) - FLOAT_SPARE:
                left = middle
            else:
                right = middle
        return low + (high - low) * Fraction(left, PARTS)

    def _steepness(self, rate: float) -> float:
        """Return what must not exceed ε: the largest log-ratio for one record, or per sensitivity."""
        points, reach = self.lattice.points, self.lattice.reach
        logs = log_law(points, rate)
        if self.promise == ANY:
            return reach * float((np.abs(np.diff(logs, axis=0)) / np.diff(points)[:, None]).max(initial=0))
        first, last = np.nonzero(np.triu(np.abs(points[:, None] - points) <= reach, 1))
        return float(np.abs(logs[first] - logs[last]).max(initial=0))

    def _rows(self, epsilon: Fraction) -> Rows:
        points = self.lattice.points
        rate = self._rate * epsilon / self.budget
        chances = [exp_below(rate * j, BITS) for j in range(int(points[-1] - points[0]) + 1)]
        chances[0] = ONE
        table = np.array(chances, dtype=object)
        return [law(table[np.abs(points - point)]) for point in points]


def law(chances: Any) -> list[int]:
    """Return a(y)·E[1/(1 + K)] for every y, in units of 2^-320; `chances` are a(y) in the same unit.

    Each factor (1 - a) + a·s is divided out of the product of all, from the end at which the recurrence damps
    errors, so that every result is off by less than a few units per response.
    """
    every = np.array([ONE], dtype=object)
    for chance in chances:
        grown = np.zeros(len(every) + 1, dtype=object)
        grown[:-1] += every * (ONE - chance) >> BITS
        grown[1:] += every * chance >> BITS
        every = grown
    return [int(chance) * _mean_share(every, int(chance)) >> BITS for chance in chances]


def _mean_share(every: Any, chance: int) -> int:
    """Return E[1/(1 + K)] without the response of this `chance`, in units of 2^-320."""
    other, total, last = ONE - chance, 0, len(every) - 1
    found = 0
    if chance > other:
        for k in range(last, 0, -1):
            found = max(0, ((int(every[k]) << BITS) - other * found) // chance)
            total += found // k
        return total
    for k in range(last):
        found = max(0, ((int(every[k]) << BITS) - chance * found) // other)
        total += found // (k + 1)
    return total


def log_law(points: Int64[np.ndarray, " responses"], rate: float) -> Logs:
    """Return ln P(response | answer), by a Gauss-Legendre rule that is exact up to rounding."""
    nodes, weights = np.polynomial.legendre.leggauss(len(points) // 2 + 1)
    times, weights = (nodes + 1) / 2, weights / 2
    found = np.empty((len(points), len(points)))
    for row, point in enumerate(points):
        steps = -rate * np.abs(points - point)
        stay = np.log1p(-times[:, None] * np.exp(steps))
        others = stay.sum(axis=1, keepdims=True) - stay
        found[row] = steps + np.log(weights @ np.exp(others))
    return found


@dataclass(frozen=True, kw_only=True)
class Uniform(ScalarMechanism):
    """Uniform responses whatever the answer: costs nothing, and any mechanism should beat it.

    `epsilon` is accepted and not spent. Fields are those of `ScalarMechanism`. Source: Croft thesis §5.3.2.

    >>> Uniform(range=(0, 4), sensitivity=1, epsilon=1).matrix()[0].tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2]
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "any point of the range, whatever the answer"
    source: ClassVar[str] = "Croft thesis §5.3.2"

    @property
    def spent(self) -> Fraction:
        """0."""
        return Fraction(0)

    def _rows(self, epsilon: Fraction) -> Rows:
        size = self.lattice.size or 1
        return [[1] * size] * size


@dataclass(frozen=True, kw_only=True)
class ExplicitFair(ScalarMechanism):
    """Every answer is reported truly with the same probability; others follow with powers of e^-ε.

    With m the distance of an answer to its nearer end, a response at distance d has weight e^(-ε·d) up to m
    and e^(-ε·⌈(d + m)/2⌉) beyond, where a step of the lattice counts ε·step/ΔF. All columns have the same
    sum, also for odd sizes (errata E11). Fields are those of `ScalarMechanism`. Source: Croft thesis 5.73,
    5.74.

    >>> ExplicitFair(range=(0, 5), sensitivity=1, epsilon=0.5).matrix().diagonal().round(3).tolist()
    [0.315, 0.315, 0.315, 0.315, 0.315, 0.315]
    """

    name: ClassVar[str] = "explicit-fair"
    summary: ClassVar[str] = "counts: the true answer has the same chance everywhere"
    source: ClassVar[str] = "Croft thesis 5.73 and 5.74, errata E11"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range.gaps:
            self._refuse_gaps()

    def _rows(self, epsilon: Fraction) -> Rows:
        last = (self.lattice.size or 1) - 1
        rate = epsilon / self.lattice.reach
        power = [exp_below(rate * j, PRECISION) for j in range(last + 1)]
        power[0] = 1 << PRECISION
        rows = []
        for x in range(last + 1):
            near = min(x, last - x)
            distances = [abs(x - y) for y in range(last + 1)]
            rows.append([power[d if d < near else -(-(d + near) // 2)] for d in distances])
        return rows


@dataclass(frozen=True, kw_only=True)
class Exponential(ScalarMechanism):
    """A response y to the answer x has weight e^(-rate·|y - x|), over all points of a finite range.

    The general theorem allows a rate of ε/(2ΔF). Here the rate is the largest that is private on this
    lattice, up to ε/ΔF, as certified on the integers. This is the law of `TruncatedLaplace` on the lattice of
    the answers. Gaps are allowed. Fields are those of `ScalarMechanism`. Source: McSherry & Talwar 2007, with
    the scales of Croft thesis §5.1.3 and Holohan et al.

    >>> method = Exponential(range=(0, 5), sensitivity=1, epsilon=1, relation="database-record")
    >>> round(float(method.rate), 3)
    0.785
    """

    name: ClassVar[str] = "exponential"
    summary: ClassVar[str] = "weights that fall with the distance to the answer, at the largest sound rate"
    source: ClassVar[str] = "McSherry & Talwar 2007; Croft thesis §5.1.3"

    @property
    def rate(self) -> Fraction:
        """How much the logarithm of a weight falls per unit of the answer."""
        return 1 / (self._noise(self.budget).scale * self.lattice.step)

    def _noise(self, epsilon: Fraction) -> LaplaceNoise:
        return LaplaceNoise(least_scale(self.lattice, epsilon, metric=self.promise == ANY))

    def _rows(self, epsilon: Fraction) -> Rows:
        points = self.lattice.points
        near, _ = self._noise(epsilon).weights(int(points[-1] - points[0]) + 1)
        weights = np.array(near, dtype=object)
        return [weights[np.abs(points - point)].tolist() for point in points]

"""Noise on a lattice: exact draws, integer weights, and interval probabilities accurate in the tails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.mechanisms.scalar.base import ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.matrix_cost import Rows
from dpveil.noise.alias_tables import LazyTable, look_up
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import TOTAL_BITS, digit_tables, discrete_laplace, exp_below

PRECISION = 256  # bits of precision of integer weights
STAIR_BITS = 6  # bits that choose a column of the table of stairs
STAIRS = (1 << STAIR_BITS) - 2
"""Stairs with an outcome of their own; the next outcome stands for all further ones."""
Floats = Float64[np.ndarray, "..."]


class LatticeNoise(ABC):
    """A symmetric law on the integers whose weights do not increase away from 0."""

    @abstractmethod
    def weights(self, count: int) -> tuple[list[int], int]:
        """Return the weights of 0, 1, ..., `count` - 1, and of all integers from `count` on, in one unit."""

    @abstractmethod
    def prepare(self) -> None:
        """Raise `NoiseError` if it cannot be drawn."""

    @abstractmethod
    def draw(self, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
        """Return `size` independent draws, with exactly this law."""

    @abstractmethod
    def beyond(self, j: Any) -> Floats:
        """Return P(Z ≥ j) for integers j ≥ 0; 0 for infinite j."""

    def mass(self, low: Any, high: Any) -> Floats:
        """Return P(low ≤ Z ≤ high) for integer or infinite ends, accurate in the tails; 0 if low > high."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        flip = high < 0
        a, b = np.where(flip, -high, low), np.where(flip, -low, high)
        tail = self.beyond(np.maximum(a, 1)) - self.beyond(np.maximum(b, 0) + 1)
        middle = 1 - self.beyond(np.maximum(1 - a, 1)) - self.beyond(np.maximum(b, 0) + 1)
        return np.where(low > high, 0.0, np.where(a > 0, tail, middle))

    @abstractmethod
    def log_weight(self, z: Any) -> Floats:
        """Return ln P(Z = z)."""


@dataclass(frozen=True)
class LaplaceNoise(LatticeNoise):
    """The discrete Laplace (two-sided geometric) law, P(z) ∝ e^(-|z|/scale); `scale` in steps."""

    scale: Fraction

    def prepare(self) -> None:
        """Raise `NoiseError` if it cannot be drawn."""
        digit_tables(self.scale)

    def weights(self, count: int) -> tuple[list[int], int]:
        """Return e^(-j/scale)·2^256, and the sum from `count` on; see `LatticeNoise`."""
        rate = 1 / self.scale
        one, ratio = 1 << PRECISION, exp_below(rate, PRECISION)
        found = [exp_below(rate * j, PRECISION) for j in range(count + 1)]
        found[0] = one
        return found[:count], found[count] * one // (one - ratio)

    def draw(self, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
        return discrete_laplace(self.scale, size, bits)

    def beyond(self, j: Any) -> Floats:
        """Return P(Z ≥ j) = r^j / (1 + r)."""
        rate = float(1 / self.scale)
        return np.asarray(np.exp(-rate * np.asarray(j, np.float64)) / (1 + np.exp(-rate)))

    def mass(self, low: Any, high: Any) -> Floats:
        """Return P(low ≤ Z ≤ high), with differences of tails computed without cancellation."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        flip = high < 0
        a, b = np.where(flip, -high, low), np.where(flip, -low, high)
        one_side = (a > 0) & (low <= high) & np.isfinite(a)
        length = np.where(one_side, b, 1) - np.where(one_side, a, 1) + 1
        tail = self.beyond(np.maximum(a, 1)) * -np.expm1(-float(1 / self.scale) * length)
        return np.where(one_side, tail, super().mass(low, high))

    def log_weight(self, z: Any) -> Floats:
        """Return ln P(z)."""
        rate = float(1 / self.scale)
        return np.asarray(-rate * np.abs(np.asarray(z, np.float64)) + np.log(np.tanh(rate / 2)))


@dataclass(frozen=True)
class StaircaseNoise(LatticeNoise):
    """P(z) ∝ e^(-ε·⌊(|z| + reach - inner)/reach⌋): stairs of `reach` steps, the first one of `inner` steps.

    Two draws whose centres are at most `reach` apart have log-ratios of at most ε. Source: Croft thesis
    formulas 5.69 and 5.70, on a lattice.
    """

    epsilon: Fraction
    reach: int
    inner: int

    def weights(self, count: int) -> tuple[list[int], int]:
        """Return the height of the stair of every j below `count`, and the sum from `count` on."""
        one, base = 1 << PRECISION, exp_below(self.epsilon, PRECISION)
        last = self._stair(count)
        stair = [exp_below(self.epsilon * t, PRECISION) for t in range(last + 2)]
        stair[0] = one
        left = self.inner + last * self.reach - count  # steps from `count` to the end of its stair
        period = left * stair[last] + (self.reach - left) * stair[last + 1]
        return [stair[self._stair(j)] for j in range(count)], period * one // (one - base)

    def prepare(self) -> None:
        """Raise `NoiseError` if draws would not fit into 64 bits."""
        digit_tables(self.reach / self.epsilon)

    def _stair(self, j: Any) -> Any:
        return (j + self.reach - self.inner) // self.reach

    def draw(self, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
        """Return draws, each from a stair, a position on it and a sign; negative zeros are drawn again."""
        out, missing = np.empty(size, np.int64), np.arange(size)
        while len(missing):
            stair = _stairs(self.epsilon, self.reach, self.inner, len(missing), bits)
            on_first = _uniform_below(self.inner, len(missing), bits)
            further = self.inner + (stair - 1) * self.reach + _uniform_below(self.reach, len(missing), bits)
            found = np.where(stair == 0, on_first, further)
            negative = bits.words(len(missing)) >> np.uint64(63) == 1
            good = ~(negative & (found == 0))
            out[missing[good]] = np.where(negative, -found, found)[good]
            missing = missing[~good]
        return out

    def beyond(self, j: Any) -> Floats:
        """Return P(Z ≥ j)."""
        half = self._tail_sum(np.asarray(j, np.float64))
        return np.asarray(half / (2 * self._tail_sum(np.zeros(1)) - 1))

    def _tail_sum(self, j: Floats) -> Floats:
        decay = float(np.exp(-float(self.epsilon)))
        finite = np.where(np.isinf(j), 0, j)
        stair = self._stair(finite)
        left = self.inner + stair * self.reach - finite
        height = np.exp(-float(self.epsilon) * stair)
        return np.where(np.isinf(j), 0.0, height * (left + self.reach * decay / (1 - decay)))

    def log_weight(self, z: Any) -> Floats:
        """Return ln P(z)."""
        whole = 2 * self._tail_sum(np.zeros(1)) - 1
        return np.asarray(-float(self.epsilon) * self._stair(np.abs(np.asarray(z))) - np.log(whole))


def _stairs(
    epsilon: Fraction, reach: int, inner: int, size: int, bits: BitSource
) -> Int64[np.ndarray, " size"]:
    """Return the stair of each draw, exactly, by one look-up; beyond the table the law is memoryless."""
    table = _stair_table(epsilon, reach, inner)
    words = bits.words(size)
    found = look_up(table.packed, words, total_bits=TOTAL_BITS, column_bits=STAIR_BITS).astype(np.int64)
    for place in np.flatnonzero(found == table.tie):
        found[place] = table.resolve(bits)
    open_ = np.flatnonzero(found == STAIRS)
    while len(open_):
        more = discrete_laplace(1 / epsilon, len(open_), bits)
        found[open_[more >= 0]] += more[more >= 0]
        open_ = open_[more < 0]
    return found


@lru_cache(maxsize=64)
def _stair_table(epsilon: Fraction, reach: int, inner: int) -> LazyTable:
    """Return the table of stairs: weight inner·(1 - b) first, reach·(1 - b)·b^t then, reach·b^T from T on.

    b = e^-ε is enclosed by two integers in units of 2^-work, and so are all sums and products of it.
    """

    def law(precision: int) -> list[tuple[int, int]]:
        work = 2 * precision + epsilon.denominator.bit_length()
        low = exp_below(epsilon, work)
        bounds = [Fraction(low, 1 << work), min(Fraction(low + 3, 1 << work), Fraction(1))]

        def weights(b: Fraction, rest: Fraction) -> list[Fraction]:
            on = [reach * rest * b**t for t in range(1, STAIRS)]
            return [inner * rest, *on, reach * b**STAIRS]

        least, most = weights(bounds[0], 1 - bounds[1]), weights(bounds[1], 1 - bounds[0])
        whole = [inner * (1 - bounds[1 - k]) + reach * bounds[k] for k in (0, 1)]
        one = 1 << precision
        return [
            (int(a / whole[1] * one), min(one, int(b / whole[0] * one) + 1))
            for a, b in zip(least, most, strict=True)
        ]

    return LazyTable(law, total_bits=TOTAL_BITS, column_bits=STAIR_BITS)


def _uniform_below(count: int, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return uniform integers below `count`, by rejection of words above its largest multiple."""
    limit = (1 << 64) // count * count
    words = bits.words(size)
    if limit < 1 << 64:
        while len(again := np.flatnonzero(words >= np.uint64(limit))):
            words[again] = bits.words(len(again))
    return (words % np.uint64(count)).astype(np.int64)


FINE = 512  # points of the default lattice on a finite range
STEPS = 16  # steps to ΔF at which the default lattice is fine enough
FINER = 1 << 10  # steps to the noise scale on an infinite lattice


@dataclass(frozen=True, kw_only=True)
class NoisyMechanism(ScalarMechanism):
    """Additive noise of one law for every answer, which is rounded to a fine lattice if it is continuous."""

    finite_only: ClassVar[bool] = False
    most: ClassVar[int] = FINE + 1

    @abstractmethod
    def noise(self, epsilon: Fraction | None = None) -> LatticeNoise:
        """Return the noise for the budget `epsilon`, by default the mechanism's own."""

    def prepare(self) -> None:
        """Raise any error that would prevent a draw."""
        super().prepare()
        if self.integers is None:
            self.noise().prepare()

    def _default_step(self) -> Fraction:
        """Return ΔF over a power of two: at most FINE points on a finite range, else FINER per noise scale.

        The latter also if FINE points would leave less than two steps to ΔF/ε and less than STEPS to ΔF.
        """
        step, width = self.coarsest, self.allowed_range.width
        if width is not None and width / step <= FINE:
            while 2 * width / step <= FINE:
                step /= 2
            sensitivity = Fraction(self.sensitivity)
            if STEPS * step <= sensitivity or 2 * step * self.budget <= sensitivity:
                return step
            step = self.coarsest
        while step > Fraction(self.sensitivity) / max(self.budget, Fraction(1)) / FINER:
            step /= 2
        return step


@dataclass(frozen=True, kw_only=True)
class SnappedMechanism(NoisyMechanism):
    """Noise is added, and what leaves the range is moved to its nearest point (thesis definition 11)."""

    def _rows(self, epsilon: Fraction) -> Rows | None:
        return snapped_rows(self.lattice, self.noise(epsilon)) if self._is_finite else None

    def _draw(self, points: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        return self.lattice.snap(points + self.noise().draw(len(points), bits))

    def _masses(self, point: int, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " categories"]:
        # a response is below an edge if the noise is below the middle of the gap around it
        cuts = _before_snapping(self.lattice, edges) - point
        return self.noise().mass(cuts[:-1], cuts[1:] - 1)


def _before_snapping(lattice: Lattice, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Return for each edge the first point that is snapped to a point at or above it."""
    first, last = lattice.spans[0][0], lattice.spans[-1][1]
    found = edges.copy()
    if first is not None:
        found[edges <= first] = -np.inf
    if last is not None:
        found[edges > last] = np.inf
    for left, right in lattice.gaps:
        inside = (edges > left) & (edges <= right)
        found[inside] = left + (right - left) // 2 + 1
    return found


def snapped_rows(lattice: Lattice, noise: LatticeNoise) -> Rows:
    """Return the integer weights of noise snapped to a finite lattice, for every pair of points."""
    points = lattice.points
    span = int(points[-1] - points[0])
    near, rest = noise.weights(span + 1)
    signed = np.array([*near[:0:-1], *near], dtype=object)
    beyond = [*np.cumsum(np.array([rest, *near[:0:-1]], dtype=object))[::-1]]
    every = np.arange(points[0], points[-1] + 1)
    place = np.searchsorted(points, lattice.snap(every))
    rows = []
    for point in points:
        weights = np.zeros(len(points), dtype=object)
        start = span - int(point - points[0])
        np.add.at(weights, place, signed[start : start + span + 1])
        weights[0] += beyond[int(point - points[0])]
        weights[-1] += beyond[int(points[-1] - point)]
        rows.append(weights.tolist())
    return rows

"""Exact laws of releases, and their divergences: the largest log-ratio, Rényi, and hockey-stick.

A release of independent draws has the product of their laws, so its largest log-ratio over all outputs is the
sum of the draws' largest, and so are its Rényi divergences. Hockey-stick divergences are those of the joint
law if that is small, else of composed privacy losses, written independently of the accountants that they
check. There a loss between two points of the grid is split between them so that its mass and the mean of
e^-loss stay: every hockey-stick divergence, a convex function of e^-loss, can only grow (Doroshenko et al.
2022). So the result is never below the truth, up to the rounding of 64-bit Fourier transforms (about 1e-15).
Losses of discrete Laplace noise are multiples of 1/scale, so a grid of these is exact; for smooth
distributions the error is of the order of the squared step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8
from scipy.signal import fftconvolve

from dpveil.core.guarantee import Guarantee
from dpveil.noise.integer_matrix import ROW_SUM

GRID: Final = 1 << 15  # points of the grid over the range of losses
SNAP: Final = 1e-6  # distance, in steps of the grid, within which a loss counts as a grid point
ORDERS: Final = (1.01, 1.1, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
"""Orders α at which a Rényi divergence is compared with ρ·α."""
WORK: Final = Context(prec=50)
EXACT: Final = Fraction(1, 10**40)  # a bound on the error of 50-digit logarithms
CLOSE: Final = 1e-9  # relative error of a divergence in floats
ROUNDING: Final = {"ε": 1e-12, "δ": 1e-13, "ρ": 1e-12}
"""Absolute errors of floats: in sums, in Fourier transforms, and in Rényi divergences of orders next to 1."""
MOST_EXACT: Final = 2048
"""Most pairs of inputs whose log-ratios of one draw are compared exactly; of more, those near the worst."""
TIED: Final = 16
"""Most outcomes, those with the largest ratios in floats, that are compared exactly for one pair of rows."""
MOST_JOINT: Final = 4096
"""Most joint outcomes of several draws that are enumerated; beyond, privacy losses are composed."""
Masses = Any
"""Probabilities over outcomes, the last axis: float64, or integers (weights) or Fractions as objects."""
Pairs = Int64[np.ndarray, "pairs 2"]
Outcomes = Int64[np.ndarray, "n draws"]
Releases = UInt8[np.ndarray, "n h w c"]


@dataclass(frozen=True)
class LossDistribution:
    """A privacy loss distribution: `mass[i]` at (`start` + i)·`step`, and `infinite` at infinity."""

    step: float
    start: int
    mass: Masses
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at `epsilon`: the smallest valid δ."""
        losses = (self.start + np.arange(len(self.mass))) * self.step
        return self.infinite + float(np.sum(self.mass * -np.expm1(np.minimum(0.0, epsilon - losses))))

    def plus(self, other: LossDistribution) -> LossDistribution:
        """Return the distribution of the sum of two independent losses on the same grid."""
        infinite = 1 - (1 - self.infinite) * (1 - other.infinite)
        mass = fftconvolve(self.mass, other.mass).clip(0.0)
        return LossDistribution(self.step, self.start + other.start, mass, infinite)


def loss_distribution(first: Masses, second: Masses, step: float) -> LossDistribution:
    """Return the distribution of ln(first/second) under `first`, two distributions over the same outcomes."""
    seen = (first > 0) & (second > 0)
    losses = np.log(first[seen]) - np.log(second[seen])
    nearest = np.rint(losses / step) * step
    losses = np.where(np.abs(losses - nearest) < SNAP * step, nearest, losses)
    lower = np.floor(losses / step + SNAP / 2).astype(np.int64)
    upward = (np.expm1(-(losses - lower * step)) / math.expm1(-step)).clip(0.0, 1.0)
    start = int(lower.min()) if len(lower) else 0
    size = int(lower.max()) - start + 2 if len(lower) else 1
    mass = np.bincount(lower - start, weights=first[seen] * (1 - upward), minlength=size)
    mass += np.bincount(lower - start + 1, weights=first[seen] * upward, minlength=size)
    return LossDistribution(step, start, mass, float(first[second == 0].sum()))


def compose(parts: Sequence[tuple[Masses, Masses]], unit: float | None = None) -> LossDistribution:
    """Return the privacy loss distribution of independent parts, each given by its laws under both inputs.

    `unit`, if given, is a multiple of the grid's step: all losses that matter are multiples of it.
    """
    step = max(2 * sum(_largest(first, second) for first, second in parts) / GRID, 1e-12)
    if unit is not None:
        step = unit / math.ceil(unit / step)
    total = LossDistribution(step, 0, np.ones(1), 0.0)
    for first, second in parts:
        total = total.plus(loss_distribution(first, second, step))
    return total


def _largest(first: Masses, second: Masses) -> float:
    seen = (first > 0) & (second > 0)
    return float(np.abs(np.log(first[seen]) - np.log(second[seen])).max(initial=0.0))


def renyi_of_masses(
    masses: Float64[np.ndarray, "distinct outcomes"], order: float
) -> Float64[np.ndarray, "distinct distinct"]:
    """Return D_α of every row from every other; infinite if the supports differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(masses)
        terms = order * logs[:, None] + (1 - order) * logs[None]
    terms = np.where(masses[:, None] > 0, terms, -np.inf)  # 0^α · 0^(1-α) is nothing
    most = terms.max(axis=-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)  # nothing at all, or something infinite
    with np.errstate(divide="ignore"):
        table: Float64[np.ndarray, "distinct distinct"] = np.log(np.exp(terms - most).sum(axis=-1))
    return (table + most[..., 0]) / (order - 1)


LESS: Final = np.exp(np.linspace(-12, 16, 200_001))
"""Orders less one at which the conversion of ρ is evaluated: each gives a valid δ."""


@lru_cache(maxsize=4096)
def delta_of_zcdp(rho: float, epsilon: float) -> float:
    """Return δ(ε) of ρ-zCDP: the least over a grid of orders (Canonne, Kamath & Steinke 2020, prop. 12)."""
    if not math.isfinite(rho):
        return 1.0
    alpha = 1 + LESS
    logs = LESS * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(LESS)
    return min(1.0, float(np.exp(logs.min())))


@dataclass(frozen=True, eq=False)
class Part:
    """One draw: the `places` (row, column, channel) that show it, and the levels that each outcome `looks`
    like.

    `looks` has a row for each outcome and a level for each place. Outcomes may look the same.
    """

    places: Int64[np.ndarray, "places 3"]
    looks: UInt8[np.ndarray, "outcomes places"]

    @classmethod
    def of_level(cls, places: Sequence[tuple[int, int, int]]) -> Part:
        """Return the part whose outcome 0..255 is the one level that all its places show."""
        return cls(np.array(places, np.int64), np.arange(256, dtype=np.uint8)[:, None].repeat(len(places), 1))

    @cached_property
    def first(self) -> Int64[np.ndarray, " outcomes"]:
        """The first outcome that looks like each outcome."""
        return self._find(self.looks)

    def read(self, releases: Releases) -> Int64[np.ndarray, " n"]:
        """Return the first outcome that looks like each release, and -1 if none does."""
        rows, columns, channels = self.places.T
        return self._find(releases[:, rows, columns, channels])

    def _find(self, shown: UInt8[np.ndarray, "n places"]) -> Int64[np.ndarray, " n"]:
        keys, known = _keys(shown), _keys(self.looks)
        order = np.argsort(known, kind="stable")
        at = np.searchsorted(known[order], keys).clip(max=len(order) - 1)
        found: Int64[np.ndarray, " n"] = order[at]
        return np.where(np.all(self.looks[found] == shown, axis=1), found, -1)


def _keys(rows: UInt8[np.ndarray, "n places"]) -> Any:
    """Return hashes of rows; rows that share one by chance are compared afterwards."""
    # Powers, not multiples, of an odd constant: rows such as 1, 0, 0, 1 and 0, 1, 1, 0 must not share one.
    return rows.astype(np.uint64) @ np.cumprod(np.full(rows.shape[1], 0x9E3779B97F4A7C15, np.uint64))


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """The laws of several inputs' releases: draw j of input i has the law `masses[j][index[i, j]]`.

    `parts` say where an image shows each draw; empty if outcomes are read in another way. All losses are
    multiples of `unit`, unless that is None.
    """

    index: Int64[np.ndarray, "inputs draws"]
    masses: list[Masses]
    parts: tuple[Part, ...] = ()
    unit: float | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Masses], parts: Sequence[Part] = (), *, unit: float | None = None
    ) -> ProductLaw:
        """Return the law in which draw j of input i has the probabilities `rows[j][i]`, each stored once."""
        index, masses = [], []
        for chances in rows:
            seen: dict[object, int] = {}
            keys = [tuple(row) if chances.dtype == object else row.tobytes() for row in chances]
            index.append([seen.setdefault(key, len(seen)) for key in keys])
            masses.append(chances[[keys.index(key) for key in seen]])
        return cls(np.array(index, np.int64).T, masses, tuple(parts), unit)

    @cached_property
    def floats(self) -> list[Float64[np.ndarray, "distinct outcomes"]]:
        return [(m / m.sum(axis=1, keepdims=True)).astype(np.float64) for m in self.masses]

    def chances(self, number: int) -> list[Float64[np.ndarray, " outcomes"]]:
        return [floats[row] for floats, row in zip(self.floats, self.index[number], strict=True)]

    @property
    def exact(self) -> bool:
        return all(masses.dtype == object for masses in self.masses)

    @property
    def lost(self) -> float:
        """The largest distance from 1 of a sum of probabilities; integers are in units of 2^-64."""
        sums = [total for masses in self.masses for total in masses.sum(axis=1).tolist()]
        return max((abs(float(s / ROW_SUM if isinstance(s, int) else s) - 1) for s in sums), default=0.0)

    def show(self, outcomes: Outcomes, size: tuple[int, ...]) -> Any:
        """Return images of this height, width and channels with these outcomes; unchanged without parts."""
        if not self.parts:
            return outcomes
        shown = np.empty((len(outcomes), *size), np.uint8)
        for part, drawn in zip(self.parts, outcomes.T, strict=True):
            rows, columns, channels = part.places.T
            shown[:, rows, columns, channels] = part.looks[drawn]
        return shown

    def read(self, released: Any) -> Outcomes:
        """Return the outcomes that releases show, -1 for impossible ones."""
        return np.stack([p.read(released) for p in self.parts], axis=1) if self.parts else released

    def seen(self, number: int) -> list[Float64[np.ndarray, " outcomes"]]:
        """Return the law of every draw of one input, with outcomes that look alike merged into the first."""
        chances = self.chances(number)
        if not self.parts:
            return chances
        return [np.bincount(p.first, mass, len(mass)) for p, mass in zip(self.parts, chances, strict=True)]

    def _sums(self, tables: Sequence[Any], pairs: Pairs) -> Any:
        """Return for every pair the sum over draws of what a table says of two rows."""
        total: Any = np.zeros(len(pairs), object if tables and tables[0].dtype == object else np.float64)
        with localcontext(WORK):
            for table, rows in zip(tables, self.index.T, strict=True):
                total = total + table[rows[pairs[:, 0]], rows[pairs[:, 1]]]
        return total

    def losses(self, pairs: Pairs) -> Any:
        """Return the largest log-ratio over all outputs for every pair; infinite if the supports differ."""
        if self.exact:
            if len(self.masses) == 1 and len(pairs) > MOST_EXACT:  # only the worst are compared exactly
                floats = self._sums([_worst(self.floats[0])], pairs)
                found = np.array([Decimal(loss) for loss in floats.tolist()], object)
                near = np.argsort(-floats, kind="stable")[:MOST_EXACT]
                near = near[floats[near] >= floats.max() - CLOSE]
                found[near] = self.losses(pairs[near])
                return found
            rows = [np.unique(own[pairs], axis=0) for own in self.index.T]
            return self._sums([_worst_exact(*both) for both in zip(self.masses, rows, strict=True)], pairs)
        return self._sums([_worst(masses) for masses in self.floats], pairs)

    def renyi_rates(self, pairs: Pairs) -> Any:
        """Return the largest D_α/α over all orders for every pair."""
        rates = [
            self._sums([renyi_of_masses(masses, order) for masses in self.floats], pairs) / order
            for order in ORDERS
        ]
        return np.max(rates, axis=0)

    def hockey_sticks(self, pairs: Pairs, epsilon: Fraction) -> Any:
        """Return the hockey-stick divergence of every pair, computed once for pairs that differ alike."""
        first, second = self.index[pairs[:, 0]], self.index[pairs[:, 1]]
        differ = np.where(first != second, [first, second], -1).transpose(1, 0, 2)
        rows, at = np.unique(differ, axis=0, return_inverse=True)
        found = [
            hockey_stick(
                [(m[a], m[b]) for m, a, b in zip(self.masses, *row, strict=True) if a >= 0],
                epsilon,
                self.unit,
            )
            for row in rows
        ]
        return np.array(found, object)[at.ravel()]

    def distance(self, other: ProductLaw) -> float:
        """Return the largest difference of a probability between two laws of the same inputs, at most 1.

        Laws with different numbers of draws, or with outcomes that look different, have distance 1.
        """
        if len(self.masses) != len(other.masses):
            return 1.0
        alike = all(np.array_equal(p.looks, q.looks) for p, q in zip(self.parts, other.parts, strict=False))
        pairs = zip(self.floats, self.index.T, other.floats, other.index.T, strict=True)
        gaps = [np.abs(a[i] - b[j]).max() if a.shape[1] == b.shape[1] else 1.0 for a, i, b, j in pairs]
        return float(max(gaps, default=0.0)) if alike else 1.0


def _worst(masses: Float64[np.ndarray, "distinct outcomes"]) -> Any:
    """Return the largest log-ratio of every row to every other."""
    table = np.empty((len(masses), len(masses)))
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
        for row, mass in enumerate(masses):
            seen = mass > 0
            table[row] = np.max(logs[row, seen] - logs[:, seen], axis=1)
    return table


def _worst_exact(masses: Masses, wanted: Pairs) -> Any:
    """Return the same in decimals for some pairs of rows; floats only select what is compared exactly."""
    rows = [[Fraction(m, total) for m in row] for row, total in zip(masses, masses.sum(axis=1), strict=True)]
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(rows, np.float64))
    table = np.empty((len(rows), len(rows)), object)
    for i, j in wanted.tolist():
        seen = np.flatnonzero(logs[i] > -np.inf)
        gaps = logs[i, seen] - logs[j, seen]
        order = np.argsort(-gaps, kind="stable")[:TIED]
        near = seen[order[gaps[order] >= gaps.max() - CLOSE]]
        certain = any(not rows[j][y] for y in near)
        table[i, j] = Decimal("inf") if certain else _log(max(rows[i][y] / rows[j][y] for y in near))
    return table


@lru_cache(maxsize=1 << 16)
def _log(ratio: Fraction) -> Decimal:
    return WORK.subtract(WORK.ln(Decimal(ratio.numerator)), WORK.ln(Decimal(ratio.denominator)))


def hockey_stick(draws: list[tuple[Masses, Masses]], epsilon: Fraction, unit: float | None = None) -> Any:
    """Return the hockey-stick divergence of independent draws from their laws under both inputs.

    Never below the truth; for exact probabilities of few outcomes at ε = 0 it is the truth, as a Fraction.

    >>> coin = np.array([Fraction(1, 3), Fraction(2, 3)], object)
    >>> hockey_stick([(coin, coin[::-1])], Fraction(0))
    Fraction(1, 3)
    """
    if math.prod(len(first) for first, _ in draws) > MOST_JOINT:
        return compose([(_floats(p), _floats(q)) for p, q in draws], unit).delta(float(epsilon))
    first: Any = np.ones(1, np.int64)
    second: Any = np.ones(1, np.int64)
    for p, q in draws:
        p, q = (_rationals(m) if epsilon == 0 and m.dtype == object else _floats(m) for m in (p, q))
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    return np.maximum(first - (math.exp(epsilon) if epsilon else 1) * second, 0).sum()


def _floats(masses: Masses) -> Any:
    return (masses / masses.sum()).astype(np.float64)


def _rationals(masses: Masses) -> Any:
    return np.array([Fraction(mass, masses.sum()) for mass in masses], object)


@dataclass(frozen=True)
class Worst:
    """The pair of inputs that is closest to its limit, or furthest beyond; `tolerance` is that of floats."""

    unit: str
    value: Any
    limit: Any
    tolerance: float
    pair: tuple[int, int] = (0, 0)

    @property
    def kept(self) -> bool:
        """Whether the promise holds; what is computed without floats is compared without them."""
        if self.tolerance:
            return bool(float(self.value) <= float(self.limit) + self.tolerance)
        return bool(math.isfinite(self.value) and Fraction(self.value) <= Fraction(self.limit) + EXACT)


def worst(promise: Guarantee, law: ProductLaw, pairs: Pairs, apart: Any = None) -> Worst:
    """Return the worst pair under a promise; ε is allowed as often as a pair is `apart`."""
    epsilon, limits, letter = promise.epsilon or Fraction(0), np.ones(len(pairs)), "ε"
    if promise.rho is not None:
        letter, limit, values = "ρ", promise.rho, law.renyi_rates(pairs)
    elif promise.delta is not None:
        letter, limit, values = "δ", promise.delta, law.hockey_sticks(pairs, epsilon)
    else:
        limit, values = epsilon, law.losses(pairs)
        limits = limits if apart is None else apart
    at = int(np.argmax(values.astype(np.float64) - float(limit) * limits.astype(np.float64)))
    value, share = values[at], limits[at]
    allowed = limit if share == 1 else Fraction(limit) * Fraction(share)
    exact = isinstance(value, Decimal | Fraction | int)
    tolerance = 0.0 if exact else float(allowed) * CLOSE + ROUNDING[letter]
    return Worst(letter, value, allowed, tolerance, (int(pairs[at, 0]), int(pairs[at, 1])))

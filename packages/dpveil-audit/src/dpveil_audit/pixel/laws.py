"""Exact laws of releases that consist of independent finite draws, and their privacy loss.

A release with independent draws has the product of their laws, so its largest log-ratio over all outputs is
the sum of the draws' largest, and so are its Rényi divergences. Probabilities may be floats, or exact:
integers (weights) or rationals in an array of objects, whose logarithms have 50 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil_audit.distributions import Distribution, finite_distribution

Image = UInt8[np.ndarray, "h w c"]
Images = UInt8[np.ndarray, "images h w c"]
Pairs = Int64[np.ndarray, "pairs 2"]
Releases = UInt8[np.ndarray, "n h w c"]
Masses = Any
"""Probabilities, laws × outcomes: float64, or integers (weights) or Fractions in an array of objects."""
Drawn = tuple[Float64[np.ndarray, " outcomes"], Distribution]

WORK: Final = Context(prec=50)
EXACT: Final = 1e-40
"""A bound on the error of 50-digit logarithms."""


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
    factors = np.cumprod(np.full(rows.shape[1], 0x9E3779B97F4A7C15, np.uint64))
    return rows.astype(np.uint64) @ factors


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """Releases with independent draws: draw j of image i has the law `masses[j][index[i, j]]`.

    `parts` say where the draws are shown; empty if a version reads its outcomes in its own way.
    """

    index: Int64[np.ndarray, "images parts"]
    masses: list[Masses]
    parts: tuple[Part, ...] = ()

    @cached_property
    def floats(self) -> list[Float64[np.ndarray, "distinct outcomes"]]:
        """The probabilities as floats."""
        return [(m / m.sum(axis=1, keepdims=True)).astype(np.float64) for m in self.masses]

    @cached_property
    def drawn(self) -> list[Drawn]:
        """The probabilities of every draw of the first image, and the same as a distribution of outcomes."""
        return [_drawn(chances[row]) for chances, row in zip(self.floats, self.index[0], strict=True)]

    @cached_property
    def seen(self) -> list[Drawn]:
        """The same, with outcomes that look alike merged into the first of them."""
        pairs = zip(self.parts, self.drawn, strict=True)
        return [_drawn(np.bincount(part.first, mass, len(mass))) for part, (mass, _) in pairs]

    @property
    def exact(self) -> bool:
        """Whether all probabilities are integers or rationals."""
        return all(masses.dtype == object for masses in self.masses)

    def losses(self, pairs: Pairs) -> Any:
        """Return the largest log-ratio over all outputs for every pair; infinite if the supports differ."""
        total: Any = np.zeros(len(pairs), object if self.exact else np.float64)
        with localcontext(WORK):
            for masses, rows in zip(self.masses if self.exact else self.floats, self.index.T, strict=True):
                total = total + _worst(masses)[rows[pairs[:, 0]], rows[pairs[:, 1]]]
        return total

    def largest_loss(self, pairs: Pairs) -> Any:
        """Return the largest log-ratio over all outputs and pairs."""
        return self.losses(pairs).max()

    def between(self, pairs: Pairs) -> list[list[tuple[Masses, Masses]]]:
        """Return the laws of the draws that differ under both inputs; once for equal pairs."""
        first, second = self.index[pairs[:, 0]], self.index[pairs[:, 1]]
        differ = first != second
        rows = np.unique(np.where(differ, [first, second], -1).transpose(1, 0, 2), axis=0)
        return [[(m[a], m[b]) for m, a, b in zip(self.masses, *row, strict=True) if a >= 0] for row in rows]

    def distance(self, other: ProductLaw) -> float:
        """Return the largest difference of a probability between two laws of the same images, at most 1.

        Laws with different numbers of draws, or with outcomes that look different, have distance 1.
        """
        if len(self.masses) != len(other.masses):
            return 1.0
        gaps = [
            np.abs(a[self.index[:, part]] - b[other.index[:, part]]).max()
            if a.shape[1] == b.shape[1]
            else 1.0
            for part, (a, b) in enumerate(zip(self.floats, other.floats, strict=True))
        ]
        alike = all(np.array_equal(p.looks, q.looks) for p, q in zip(self.parts, other.parts, strict=False))
        return float(max(gaps)) if alike else 1.0


def _drawn(mass: Float64[np.ndarray, " outcomes"]) -> Drawn:
    return mass, finite_distribution(mass)


def _worst(masses: Masses) -> Any:
    """Return the largest log-ratio of every row to every other."""
    if masses.dtype == object:
        return _worst_exact(masses)
    table = np.empty((len(masses), len(masses)))
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
        for row, mass in enumerate(masses):
            seen = mass > 0
            table[row] = np.max(logs[row, seen] - logs[:, seen], axis=1)
    return table


def _worst_exact(masses: Masses) -> Any:
    """Return the same in decimals; weights are divided by the sum of their row."""
    rows = [[Fraction(m, sum(row)) for m in row] for row in masses.tolist()]
    table = np.empty((len(rows), len(rows)), object)
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            ratios = [p / q if q else None for p, q in zip(first, second, strict=True) if p]
            table[i, j] = Decimal("inf") if None in ratios else _log(max(r for r in ratios if r))
    return table


def _log(ratio: Fraction) -> Decimal:
    return WORK.subtract(WORK.ln(Decimal(ratio.numerator)), WORK.ln(Decimal(ratio.denominator)))


def product_law(parts: Sequence[Part], rows: Sequence[Masses]) -> ProductLaw:
    """Return the product law in which draw j of image i has probabilities `rows[j][i]`; equal ones are stored
    once.

    `rows[j]` is images × outcomes, float64 or an array of objects (integers or Fractions).
    """
    index, masses = [], []
    for chances in rows:
        seen: dict[object, int] = {}
        keys = [tuple(row) if chances.dtype == object else row.tobytes() for row in chances]
        index.append([seen.setdefault(key, len(seen)) for key in keys])
        masses.append(chances[[keys.index(key) for key in seen]])
    return ProductLaw(np.array(index, np.int64).T, masses, tuple(parts))

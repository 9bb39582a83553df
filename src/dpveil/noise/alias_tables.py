"""Alias tables over integer weights: one random word and one look-up per draw, without rounding.

A law with integer weights that sum to 2^total_bits is drawn exactly from `total_bits` uniform bits: the low
`column_bits` choose a column, the others are compared with the column's threshold (Walker 1977). A column is
one 64-bit word, the threshold in its high bits and the alias in its low ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dpveil.core.array_types import Integer, UInt64
from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource


def build_alias(
    weights: Sequence[int], *, total_bits: int, column_bits: int
) -> UInt64[np.ndarray, " columns"]:
    """Return the alias table of a law: outcome i has probability weights[i] / 2^total_bits, exactly.

    Missing weights count as 0. Raises `NoiseError` unless `weights` are at most 2^column_bits non-negative
    integers that sum to 2^total_bits, and `total_bits` is at most 64.

    >>> table = build_alias([3, 1], total_bits=2, column_bits=1)
    >>> [(int(entry) >> 1, int(entry) & 1) for entry in table]
    [(0, 0), (1, 0)]
    """
    columns, capacity = 1 << column_bits, 1 << (total_bits - column_bits)
    left = [*weights, *([0] * (columns - len(weights)))]
    if len(left) != columns or min(left) < 0 or sum(left) != 1 << total_bits or total_bits > 64:
        raise NoiseError(f"{len(weights)} weights do not make a law of {total_bits} bits")
    packed = list(range(columns))  # threshold 0 and its own alias: a column of one outcome
    small = [i for i, weight in enumerate(left) if weight < capacity]
    large = [i for i, weight in enumerate(left) if weight > capacity]
    while small:
        low, high = small.pop(), large[-1]
        packed[low] = left[low] << column_bits | high
        left[high] -= capacity - left[low]
        if left[high] <= capacity:
            large.pop()
            if left[high] < capacity:
                small.append(high)
    return np.array(packed, dtype=np.uint64)


def look_up(
    table: UInt64[np.ndarray, "*rows columns"],
    words: UInt64[np.ndarray, " n"],
    *,
    total_bits: int,
    column_bits: int,
    rows: Integer[np.ndarray, " n"] | None = None,
) -> UInt64[np.ndarray, " n"]:
    """Return the outcome of each word by the table of `build_alias`; bits above `total_bits` are ignored.

    `rows` are the tables to use for the words, where `table` is a stack of several.
    """
    columns = np.uint64((1 << column_bits) - 1)
    column = words & columns
    entry = table[column] if rows is None else table[rows, column]
    thresholds = np.uint64((1 << total_bits) - 1) ^ columns
    return np.asarray(np.where((words & thresholds) < (entry & thresholds), column, entry & columns))


Law = Callable[[int], Sequence[tuple[int, int]]]
"""Bounds on every probability p at a given precision: low ≤ p·2^precision < high, or both equal."""

FIRST_PRECISION: Final = 160  # bits at which probabilities are computed first
MOST_PRECISION: Final = 6000  # bits of precision beyond which a draw gives up with `NoiseError`


class LazyTable:
    """An alias table for `law`, in which the last outcome, `tie`, stands for all remainders.

    A probability p may be irrational. It is split into ⌊2^total_bits·p⌋, which goes into the table, and a
    remainder below one unit. The tie holds all remainders, so it comes up with a probability below
    2^(column_bits - total_bits); only then are they computed, to as many bits as the comparison needs. The
    result has exactly the law p, so nothing is added to δ.

    `law(precision)` bounds the probabilities of the outcomes 0, 1, ..., and its bounds shrink as precision
    grows. Raises `NoiseError` for 2^column_bits outcomes or more. Tests pass fewer `total_bits`, which make
    ties common.
    """

    def __init__(self, law: Law, *, total_bits: int, column_bits: int) -> None:
        self.law = law
        self.total_bits = total_bits
        self.tie = (1 << column_bits) - 1
        self.weights = self._floors()
        if len(self.weights) > self.tie:
            raise NoiseError(f"{len(self.weights)} outcomes leave no column for ties")
        self.rest = (1 << total_bits) - sum(self.weights)
        padded = [*self.weights, *([0] * (self.tie - len(self.weights))), self.rest]
        self.packed: UInt64[np.ndarray, " columns"]
        self.packed = build_alias(padded, total_bits=total_bits, column_bits=column_bits)

    def _floors(self) -> list[int]:
        """Return ⌊2^total_bits · p⌋ of every outcome, from bounds tight enough to be certain of it."""
        precision = FIRST_PRECISION
        while precision <= MOST_PRECISION:
            shift = precision - self.total_bits
            bounds = self.law(precision)
            floors = [low >> shift for low, _ in bounds]
            if all(high <= (floor + 1) << shift for (_, high), floor in zip(bounds, floors, strict=True)):
                return floors
            precision *= 2
        raise NoiseError("a probability is too close to a multiple of the smallest weight to be told apart")

    def resolve(self, bits: BitSource) -> int:
        """Return the outcome of one tie, drawn with probability proportional to the remainders."""
        drawn, length = 0, 0
        while length < MOST_PRECISION:
            drawn = drawn << 64 | int(bits.words(1)[0])
            length += 64
            outcome = self._locate(drawn, length)
            if outcome is not None:
                return outcome
        raise NoiseError("a tie was not resolved")

    def _locate(self, drawn: int, length: int) -> int | None:
        """Return the outcome whose share of the remainders contains [drawn, drawn + 1) / 2^length, or None.

        Computed in units of 2^-precision of one weight, in which the drawn interval has integer ends.
        """
        precision = length + FIRST_PRECISION
        unit = 1 << (precision - self.total_bits)
        left = self.rest * drawn << (precision - self.total_bits - length)
        right = self.rest * (drawn + 1) << (precision - self.total_bits - length)
        below_low = below_high = 0
        for outcome, ((low, high), weight) in enumerate(zip(self.law(precision), self.weights, strict=True)):
            next_low, next_high = below_low + low - weight * unit, below_high + high - weight * unit
            if below_high <= left and right <= next_low:
                return outcome
            below_low, below_high = next_low, next_high
        return None

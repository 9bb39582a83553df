"""Alias tables over integer weights: one random word and one look-up per draw, without rounding.

A law with integer weights that sum to 2^total_bits is drawn exactly from `total_bits` uniform bits: the low
`column_bits` choose a column, the others are compared with the column's threshold (Walker 1977). A column is
one 64-bit word, the threshold in its high bits and the alias in its low ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Integer, UInt64

from dpveil.errors import NoiseError


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
    result: UInt64[np.ndarray, " n"]
    result = np.where((words & thresholds) < (entry & thresholds), column, entry & columns)
    return result

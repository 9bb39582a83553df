"""Exact Bernoulli draws of one rational probability: one byte decides most of them, more bits the rest."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Integer, UInt64
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
    result: UInt64[np.ndarray, " n"]
    result = np.where((words & thresholds) < (entry & thresholds), column, entry & columns)
    return result


CHUNK: Final = 1 << 20  # booleans drawn at a time


def bernoulli(chance: Fraction, size: int, bits: BitSource) -> Bool[np.ndarray, " size"]:
    """Return `size` independent booleans that are true with probability exactly `chance`.

    `chance` is a rational strictly between 0 and 1 (`NoiseError` otherwise). A uniform number in [0, 1) is
    compared with it digit by digit, first in base 256, then in base 2^64, while digits are equal; how many
    bits are read depends on the bits alone. Source: docs, "Exact noise".

    >>> from dpveil.noise.bits import SeededBits
    >>> int(bernoulli(Fraction(1, 3), 9000, SeededBits(1)).sum())
    2992
    """
    if not 0 < chance < 1:
        raise NoiseError(f"the probability {chance} is not between 0 and 1")
    out = np.empty(size, np.bool_)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        digits = bits.words(-(-len(part) // 8)).astype("<u8", copy=False).view(np.uint8)[: len(part)]
        first, rest = divmod(256 * chance, 1)
        np.less(digits, np.uint8(first), out=part)
        ties = np.flatnonzero(digits == np.uint8(first))
        part[ties] = _draw_below(rest, len(ties), bits)
    return out


def _draw_below(chance: Fraction, size: int, bits: BitSource) -> Bool[np.ndarray, " size"]:
    """Return the same for any chance in [0, 1), with 64-bit digits only."""
    first, rest = divmod((1 << 64) * chance, 1)
    digits = bits.words(size)
    below: Bool[np.ndarray, " size"] = digits < np.uint64(first)
    ties = np.flatnonzero(digits == np.uint64(first))
    if rest and len(ties):
        below[ties] = _draw_below(rest, len(ties), bits)
    return below

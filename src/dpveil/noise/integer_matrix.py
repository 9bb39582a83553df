"""Finite distributions as integer matrices: the certified integers are the ones that are drawn.

Row x of the matrix is the law of the outcome for the true answer x, in units of 2^-64. The mechanism is these
integers, not the formula behind them. The largest log-ratio within a column, on which a privacy claim rests,
is computed from the integers and rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.core.array_types import Integer, UInt64
from dpveil.errors import NoiseError
from dpveil.noise import backend
from dpveil.noise.alias_tables import build_alias, look_up
from dpveil.noise.bits import BitSource

ROW_SUM: Final = 1 << 64  # the sum of every row
CHUNK: Final = 1 << 16  # samples drawn at a time, which bounds the memory for random words
SHRINKS: Final = tuple(Fraction(1, 1 << k) for k in range(60, 9, -4))
"""Relative amounts by which `certify_matrix` lowers a budget, one after another."""


@dataclass(frozen=True)
class IntegerMatrix:
    """Rows of non-negative integers that sum to 2^64 each: outcome y has probability weights[x][y] / 2^64.

    Raises `NoiseError` for rows of unequal length, more than 65 536 outcomes, or another sum.

    >>> half = 1 << 63
    >>> IntegerMatrix(((half, half), (half, half))).log_ratio()
    Fraction(0, 1)
    """

    weights: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.weights}
        if len(lengths) != 1 or not 1 <= min(lengths) <= 1 << 16:
            raise NoiseError("the rows of an integer matrix have one length, from 1 to 65 536")
        for x, row in enumerate(self.weights):
            if min(row) < 0 or sum(row) != ROW_SUM:
                raise NoiseError(f"row {x} of an integer matrix does not sum to 2^64")

    @property
    def outcomes(self) -> int:
        return len(self.weights[0])

    def log_ratio(self) -> Fraction:
        """Return max ln(W[x][y] / W[x'][y]) over all rows x, x' and outcomes y, rounded up.

        Raises `NoiseError` where a column mixes zero and non-zero entries: the ratio is unbounded.
        """
        columns = zip(*self.weights, strict=True)
        return log_above(max((self._span(column) for column in columns), default=Fraction(1)))

    def _span(self, column: Sequence[int]) -> Fraction:
        low, high = min(column), max(column)
        if high == 0:
            return Fraction(1)
        if low == 0:
            raise NoiseError("a column mixes zero and non-zero weights, so its ratio is unbounded")
        return Fraction(high, low)

    @cached_property
    def column_bits(self) -> int:
        """Bits of a word that choose a column of the alias table."""
        return max(1, (self.outcomes - 1).bit_length())

    @cached_property
    def alias_tables(self) -> UInt64[np.ndarray, "rows columns"]:
        bits = self.column_bits
        return np.stack([build_alias(row, total_bits=64, column_bits=bits) for row in self.weights])

    def sample(self, rows: Integer[np.ndarray, " n"], bits: BitSource) -> Integer[np.ndarray, " n"]:
        """Return one outcome for each true answer in `rows`, with exactly the law of its row.

        `rows` are int64 or uint8, and outcomes have the same dtype. Memory beyond the result is one chunk of
        random words. Raises `NoiseError` for an answer without a row, or outcomes beyond the dtype.

        >>> from dpveil.noise.bits import SeededBits
        >>> identity = IntegerMatrix(((1 << 64, 0), (0, 1 << 64)))
        >>> identity.sample(np.array([0, 1, 1]), SeededBits(1)).tolist()
        [0, 1, 1]
        """
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.weights):
            raise NoiseError(f"a true answer is not between 0 and {len(self.weights) - 1}")
        if self.outcomes - 1 > np.iinfo(rows.dtype).max:
            raise NoiseError(f"{self.outcomes} outcomes do not fit into {rows.dtype}")
        out = np.empty(len(rows), rows.dtype)
        buffer = np.empty(min(len(rows), CHUNK), np.uint64)
        compiled = backend.kernels(len(rows))
        for start in range(0, len(rows), CHUNK):
            part = slice(start, min(start + CHUNK, len(rows)))
            words = buffer[: part.stop - part.start]
            bits.fill(words)
            if compiled is None:
                out[part] = look_up(
                    self.alias_tables, words, total_bits=64, column_bits=self.column_bits, rows=rows[part]
                )
            else:
                compiled.matrix(self.alias_tables, self.column_bits, rows[part], words, out[part])
        return out


def log_above(ratio: Fraction) -> Fraction:
    """Return ln(ratio) rounded up, to about 40 digits, for a ratio of at least 1."""
    if ratio == 1:
        return Fraction(0)
    up = Context(prec=60, rounding=ROUND_CEILING)
    above = up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return Fraction(up.next_plus(up.ln(above)))


def quantise(law: Sequence[Sequence[Fraction | int]]) -> IntegerMatrix:
    """Return the integer matrix of a law given as weights in any unit.

    Weights are rounded up, so that only zeros become zero; the excess is taken from the heaviest outcome of
    the row, where it changes ratios least.
    """
    rows = []
    for weights in law:
        total = sum(weights)
        row = [int(-(-weight * ROW_SUM // total)) for weight in weights]
        row[row.index(max(row))] += ROW_SUM - sum(row)
        rows.append(tuple(row))
    return IntegerMatrix(tuple(rows))


def certify_matrix(
    law: Callable[[Fraction], Sequence[Sequence[Fraction | int]]], budget: Fraction
) -> IntegerMatrix:
    """Return an integer matrix for `law(b)` whose log-ratio is at most `budget`, with b close to `budget`.

    `law` returns the weights of every row for a budget. Rounding to integers can push a ratio above the
    formula's, so b is lowered, from 1 part in 2^60 to 1 in 2^12, until the integers keep to the budget.
    Raises `NoiseError` if they never do: 64 bits carry budgets up to about 44.
    """
    for shrink in (Fraction(0), *SHRINKS):
        matrix = quantise(law(budget * (1 - shrink)))
        if matrix.log_ratio() <= budget:
            return matrix
    raise NoiseError(
        f"64-bit weights cannot carry a budget of {float(budget):.4g}", hint="split it over more outcomes"
    )

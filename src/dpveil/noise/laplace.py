"""Exact discrete Laplace noise at any rational scale, drawn digit by digit.

|z| is a geometric variable, and the digits of a geometric variable in any base are independent: in base B,
digit i is a geometric variable of ratio exp(-B^i/scale), truncated at B; the leading digit is not truncated.
Each is drawn from a table of 2048 columns, so that a scale of 255 takes one look-up and one of
4.6·10⁸ takes three. A sign is drawn with them, and negative zeros are drawn again.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.core.array_types import Int64, UInt64
from dpveil.core.rationals import float_above
from dpveil.errors import NoiseError
from dpveil.noise import backend
from dpveil.noise.alias_tables import Law, LazyTable, look_up
from dpveil.noise.bits import BitSource

COLUMN_BITS: Final = 11  # bits that choose a column of an alias table: 2048 columns, so digits in base 2047
TOTAL_BITS: Final = 63  # bits of a word that choose the digit; the highest bit is the sign
SIGN: Final = np.uint64(1 << 63)  # the bit of the first word that is the sign
CHUNK: Final = 1 << 16  # samples drawn at a time, which bounds the memory for random words
LARGEST_SCALE: Final = 1 << 50  # the largest scale: 64-bit integers then reach to 8192 scales
# A leading digit beyond its table of 2046 values is drawn again: at this scale, a part of e^-8 of them. At
# twice the scale that were e^-4; at half of it, a scale of 255 (one pixel at ε = 1) took a second look-up.
TOP_SCALE: Final = 256


class DigitTables:
    """The tables of one scale: digits in base `base`, the last of which is the leading, unbounded one.

    The leading digit's outcome `base` - 1 means "that much plus a fresh leading digit", as the geometric law
    is memoryless.
    """

    def __init__(
        self, scale: Fraction, *, column_bits: int = COLUMN_BITS, total_bits: int = TOTAL_BITS
    ) -> None:
        self.column_bits, self.total_bits = column_bits, total_bits
        self.base = (1 << column_bits) - 1
        lengths = [Fraction(1)]
        while scale / lengths[-1] > Fraction(TOP_SCALE << column_bits, 1 << COLUMN_BITS):
            lengths.append(lengths[-1] * self.base)
        self.powers = np.array([int(length) for length in lengths], np.int64)
        self.tables = [
            LazyTable(
                geometric_digit(length / scale, self.base, leading=length is lengths[-1]),
                total_bits=total_bits,
                column_bits=column_bits,
            )
            for length in lengths
        ]
        self.packed: UInt64[np.ndarray, "digits columns"] = np.stack([table.packed for table in self.tables])

    def digits(self, words: UInt64[np.ndarray, "digits n"]) -> Int64[np.ndarray, "digits n"]:
        """Return each word's outcome in the table of its digit; `base` is a tie."""
        rows = [
            look_up(table, row, total_bits=self.total_bits, column_bits=self.column_bits)
            for table, row in zip(self.packed, words, strict=True)
        ]
        return np.stack(rows).astype(np.int64)

    def has_tie(self, digits: Int64[np.ndarray, "digits n"]) -> np.ndarray:
        """Return which samples met a tie or an unbounded leading digit."""
        return np.asarray((digits == self.base).any(axis=0) | (digits[-1] == self.base - 1))


def geometric_digit(rate: Fraction, base: int, *, leading: bool) -> Law:
    """Return the law of one digit: probability proportional to exp(-rate·j) for j below `base`.

    The leading digit is not truncated: its last outcome holds everything from `base` - 1 on. Fixed-point
    errors, in units of the working precision: the ratio is too low by less than 3, its j-th power by less
    than 4j (each product adds that and one rounding). With rate ≥ 2^-(small+1), the quotient is off by less
    than 2^(small+5) + 8·base, so every value by less than 2^(small+6) + 16·base: a part in 2^20 of a unit
    after the extra bits are dropped, and the bounds are one whole unit wider than the value.
    """

    def law(precision: int) -> list[tuple[int, int]]:
        small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
        work = precision + small + 2 * base.bit_length() + 16
        one, ratio = 1 << work, exp_below(rate, work)
        powers = [one]
        for _ in range(base):
            powers.append(powers[-1] * ratio >> work)
        first = one - ratio if leading else ((one - ratio) << work) // (one - powers[base])
        values = [first * power >> work for power in powers[:base]]
        if leading:
            values[-1] = powers[base - 1]
        drop, certain = work - precision, 1 << precision
        return [(max(0, (v >> drop) - 1), min(certain, (v >> drop) + 2)) for v in values]

    return law


def exp_below(rate: Fraction, precision: int) -> int:
    """Return exp(-rate)·2^precision rounded down, too low by less than 3 (`Context.exp` rounds correctly)."""
    digits = precision * 3 // 10 + 20 + max(0, len(str(rate.numerator)) - len(str(rate.denominator)))
    work = Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
    value = work.exp(work.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    if value.adjusted() < -digits:
        return 0
    return max(0, int(work.multiply(value, Decimal(1 << precision))) - 1)


@lru_cache(maxsize=64)
def digit_tables(scale: Fraction) -> DigitTables:
    """Return the tables of one scale. Raises `NoiseError` unless it is above 0 and at most 2^50."""
    if not 0 < scale <= LARGEST_SCALE:
        raise NoiseError(
            f"the noise scale {float_above(scale):.3g} is not between 0 and 2^50",
            hint="raise epsilon, or lower the neighbourhood or the size of the region",
        )
    return DigitTables(scale)


def discrete_laplace(scale: Fraction, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` independent integers z with P(z) = tanh(1/(2·scale))·exp(-|z|/scale), exactly.

    `scale` is a rational above 0 and at most 2^50 (`NoiseError` otherwise). The result is a function of the
    bits alone. Source: Inusah & Kozubowski 2006; docs, "Exact noise".

    >>> from dpveil.noise.bits import SeededBits
    >>> discrete_laplace(Fraction(255), 4, SeededBits(1)).dtype
    dtype('int64')
    """
    return draw(digit_tables(Fraction(scale)), size, bits)


def draw(tables: DigitTables, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` discrete Laplace integers from prepared tables, chunk by chunk."""
    out = np.empty(size, np.int64)
    compiled = backend.kernels(size * len(tables.tables))
    buffer = np.empty(len(tables.tables) * min(size, CHUNK), np.uint64)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        words = buffer[: len(tables.tables) * len(part)].reshape(-1, len(part))
        bits.fill(words)
        if compiled is None:
            todo = _settle(tables, words, part)
        else:
            todo = compiled.laplace(
                words, tables.packed, tables.powers, tables.total_bits, tables.column_bits, part
            )
        if len(todo):
            part[todo] = _repair(tables, words[:, todo], bits)
    return out


def _settle(
    tables: DigitTables, words: UInt64[np.ndarray, "digits n"], out: Int64[np.ndarray, " n"]
) -> Int64[np.ndarray, " m"]:
    """Fill `out` with one look-up per digit; return the indices of samples that need more bits."""
    digits = tables.digits(words)
    size = tables.powers @ digits
    negative = words[0] >= SIGN
    out[:] = np.where(negative, -size, size)
    return np.flatnonzero(tables.has_tie(digits) | (negative & (size == 0)))


def _repair(
    tables: DigitTables, words: UInt64[np.ndarray, "digits n"], bits: BitSource
) -> Int64[np.ndarray, " n"]:
    """Return the values of samples that need more bits, which are taken in a fixed order."""
    digits = tables.digits(words)
    for digit, sample in zip(*np.nonzero(digits == tables.base), strict=True):
        digits[digit, sample] = tables.tables[digit].resolve(bits)
    open_ = np.flatnonzero(digits[-1] == tables.base - 1)
    while len(open_):
        fresh = tables.digits(bits.words(len(open_) * len(tables.tables)).reshape(-1, len(open_)))[-1]
        for sample in np.flatnonzero(fresh == tables.base):
            fresh[sample] = tables.tables[-1].resolve(bits)
        digits[-1, open_] += fresh
        open_ = open_[fresh == tables.base - 1]
    size: Int64[np.ndarray, " n"] = tables.powers @ digits
    negative = words[0] >= SIGN
    again = np.flatnonzero(negative & (size == 0))
    size = np.where(negative, -size, size)
    if len(again):
        size[again] = draw(tables, len(again), bits)
    return size

"""Exact discrete Gaussian noise, by rejection sampling from blocks of integers (`BlockTable`)."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float64, Int64, UInt64
from dpveil.core.rationals import float_above
from dpveil.errors import NoiseError
from dpveil.noise import backend
from dpveil.noise.alias_tables import Law, LazyTable, look_up
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import CHUNK, LARGEST_SCALE, discrete_laplace, exp_below

COLUMN_BITS: Final = 11  # bits that choose a column of the alias table: 2048 columns
TOTAL_BITS: Final = 38  # bits of a word that choose the outcome
ACCEPT_BITS: Final = 16  # bits of the uniform number for acceptance that come with the first word
REACH: Final = 8  # standard deviations covered by the blocks; the tail beyond has probability 1e-15
SLACK: Final = 2.0**-40  # a bound on the relative error of an acceptance level computed in floating point

Interval = tuple[int, int]
"""Lower and upper bound of a number in [0, 1], as integers in units of 2^-precision."""


class BlockTable:
    """The proposal table of one variance: outcome k + K is block k, K blocks on each side, and 2K the tail.

    Block k holds the B = 2^b integers kB to (k+1)B - 1. It is proposed with probability proportional to
    B·exp(-a²/2σ²), where its anchor a is its integer nearest to zero. One of its integers z, uniformly
    chosen, is then accepted with probability exp(-(z² - a²)/2σ²), more than 98 % on average. The integers
    beyond K blocks on each side are the tail: for a discrete Laplace y of scale σ²/KB, KB + y if y ≥ 0 and y
    - KB if y < 0, accepted with probability exp(-y²/2σ²). As z² = (KB)² + 2KB|y| + y², the tail is proposed
    with weight exp(-(KB)²/2σ²)·(1 + r)/(1 - r), where r = exp(-KB/σ²). The law is exact for any B and K.

    A draw takes one 64-bit word, or two where blocks are long: `total_bits` of the first choose the outcome,
    the next `accept_bits` are the leading bits of the uniform number for acceptance, and the leading bits of
    the last word are the position in the block. Tests pass smaller widths, which make ties, tails and
    rejections common.
    """

    def __init__(
        self,
        variance: Fraction,
        *,
        column_bits: int = COLUMN_BITS,
        total_bits: int = TOTAL_BITS,
        accept_bits: int = ACCEPT_BITS,
        reach: int = REACH,
    ) -> None:
        self.variance, self.twice = variance, float(2 * variance)
        self.column_bits, self.total_bits, self.accept_bits = column_bits, total_bits, accept_bits
        side, most = reach * (isqrt(int(variance)) + 1), (1 << column_bits - 1) - 1
        self.block_bits = (-(-side // most) - 1).bit_length()
        self.blocks = -(-side >> self.block_bits)
        self.edge = self.blocks << self.block_bits
        self.rows = 1 if total_bits + accept_bits + self.block_bits <= 64 else 2
        law = block_law(variance, self.block_bits, self.blocks)
        self.table = LazyTable(law, total_bits=total_bits, column_bits=column_bits)
        self.tail = 2 * self.blocks
        self.sure = self._sure()

    def outcomes(self, words: UInt64[np.ndarray, "rows n"]) -> Int64[np.ndarray, " n"]:
        """Return the outcome of every draw: a block, the tail or a tie."""
        found = look_up(self.table.packed, words[0], total_bits=self.total_bits, column_bits=self.column_bits)
        return found.astype(np.int64)

    def begun(self, words: UInt64[np.ndarray, "rows n"]) -> UInt64[np.ndarray, " n"]:
        """Return the leading `accept_bits` of the uniform number that decides on acceptance."""
        return np.asarray(words[0] >> np.uint64(self.total_bits) & np.uint64((1 << self.accept_bits) - 1))

    def values(
        self, outcomes: Int64[np.ndarray, " n"], words: UInt64[np.ndarray, "rows n"]
    ) -> Int64[np.ndarray, " n"]:
        """Return the integer that each draw proposes from its block."""
        places = words[-1] >> np.uint64(63 - self.block_bits) >> np.uint64(1)
        return np.asarray(((outcomes - self.blocks) << self.block_bits) + places.astype(np.int64))

    def anchors(self, outcomes: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """Return the least |z| in each block."""
        block = outcomes - self.blocks
        return np.asarray(
            np.where(block >= 0, block << self.block_bits, 1 - ((block + 1) << self.block_bits))
        )

    def levels(
        self, sizes: Int64[np.ndarray, " n"], anchors: Int64[np.ndarray, " n"]
    ) -> Float64[np.ndarray, " n"]:
        """Return 2^accept_bits times the acceptance probability of integers with |z| = `sizes`.

        The relative error is below `SLACK`: the exponent has four rounding errors (sum, product, variance,
        quotient) and is below 1 with 2^11 columns; it would have to be above 500 for a larger error.
        """
        exponents = (sizes - anchors).astype(np.float64) * (sizes + anchors).astype(np.float64) / self.twice
        return np.asarray(np.exp(-exponents) * 2.0**self.accept_bits)

    def _sure(self) -> UInt64[np.ndarray, " columns"]:
        """Return each block's level of leading bits below which all its integers are accepted, else 0."""
        anchors = self.anchors(np.arange(self.tail))
        farthest = anchors + (1 << self.block_bits) - 1
        levels = np.floor(self.levels(farthest, anchors) * (1 - SLACK))
        sure = np.zeros(1 << self.column_bits, np.uint64)
        sure[: self.tail] = np.where(farthest == anchors, 1 << self.accept_bits, levels)
        return sure


def block_law(variance: Fraction, block_bits: int, blocks: int) -> Law:
    """Return the law of the outcomes of `BlockTable`: `blocks` blocks on each side, then the tail.

    Every weight is a product of exp(-1/2σ²), exp(-B/σ²) and exp(-B²/2σ²), enclosed by integers that are
    rounded outwards. 128 extra bits of precision suffice: for σ ≤ 2^49, 1 - r is above 2^-50.
    """
    side, half = 1 << block_bits, 1 / (2 * variance)

    def law(precision: int) -> list[Interval]:
        work = precision + 128
        one = 1 << work

        def power(exponent: int) -> Interval:
            low = exp_below(exponent * half, work)
            return low, min(one, low + 3)

        def times(a: Interval, b: Interval) -> Interval:
            return a[0] * b[0] >> work, -(-a[1] * b[1] >> work)

        at, step, change = (one, one), power(side**2), power(2 * side**2)
        beside, slope = power(1), power(2 * side)
        right: list[Interval] = []
        left: list[Interval] = []
        for _ in range(blocks):
            right.append(at)
            left.append(times(at, beside))
            at, step, beside = times(at, step), times(step, change), times(beside, slope)
        low, high = power(2 * blocks * side)
        least = at[0] * (one + low) // ((one - low) * side)
        most = -(-at[1] * (one + high) // ((one - high) * side))
        return _shares([*reversed(left), *right, (least, most)], precision)

    return law


def _shares(weights: list[Interval], precision: int) -> list[Interval]:
    least, most = sum(low for low, _ in weights), sum(high for _, high in weights)
    certain = 1 << precision
    return [
        ((low << precision) // most, min(certain, -(-(high << precision) // least))) for low, high in weights
    ]


SMALLEST_VARIANCE: Final = Fraction(1, 10**12)  # the smallest variance: below it nearly every draw is 0
ONE: Final = Fraction(1)


def discrete_gaussian(variance: Fraction, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` independent integers z with P(z) proportional to exp(-z² / (2·variance)), exactly.

    `variance` is the parameter σ² of the law (its true variance is slightly smaller for σ < 1), a rational
    from 1e-12 to 2^98 (`NoiseError` otherwise). The result is a function of the bits alone. Source of the
    law: Canonne, Kamath & Steinke 2020; the sampler is described in `BlockTable` and in docs, "Exact noise".

    >>> from dpveil.noise.bits import SeededBits
    >>> discrete_gaussian(Fraction(9), 4, SeededBits(1)).dtype
    dtype('int64')
    """
    return draw(proposal_table(check_variance(Fraction(variance))), size, bits)


def check_variance(variance: Fraction) -> Fraction:
    """Return `variance` unchanged. Raises `NoiseError` unless it is from 1e-12 to 2^98."""
    if not SMALLEST_VARIANCE <= variance <= Fraction(LARGEST_SCALE, 2) ** 2:
        raise NoiseError(
            f"the noise variance {float_above(variance):.3g} is not between 1e-12 and 2^98",
            hint="change the budget, the neighbourhood or the size of the region",
        )
    return variance


@lru_cache(maxsize=64)
def proposal_table(variance: Fraction) -> BlockTable:
    """Return the proposal table of one variance."""
    return BlockTable(variance)


def draw(table: BlockTable, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` discrete Gaussian integers from a prepared table.

    One table look-up settles nearly all draws, chunk by chunk. The others are then decided with more bits,
    and rejected proposals are drawn again.
    """
    out = np.empty(size, np.int64)
    compiled = backend.kernels(size)
    buffer = np.empty(table.rows * min(size, CHUNK), np.uint64)
    open_, kept = [np.empty(0, np.int64)], [np.empty((table.rows, 0), np.uint64)]
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        words = buffer[: table.rows * len(part)].reshape(-1, len(part))
        bits.fill(words)
        if compiled is None:
            todo = _settle(table, words, part)
        else:
            todo = compiled.gaussian(
                words,
                table.table.packed,
                table.sure,
                table.total_bits,
                table.accept_bits,
                table.block_bits,
                table.blocks,
                part,
            )
        open_.append(start + todo)
        kept.append(words[:, todo])
    places = np.concatenate(open_)
    if len(places):
        out[places], taken = _decide(table, np.concatenate(kept, axis=1), bits)
        again = places[~taken]
        out[again] = draw(table, len(again), bits)
    return out


def _settle(
    table: BlockTable, words: UInt64[np.ndarray, "rows n"], out: Int64[np.ndarray, " n"]
) -> Int64[np.ndarray, " m"]:
    """Fill `out` with the proposals; return the indices whose acceptance needs more than the look-up."""
    outcomes = table.outcomes(words)
    out[:] = table.values(outcomes, words)
    return np.flatnonzero(table.begun(words) >= table.sure[outcomes])


def _decide(
    table: BlockTable, words: UInt64[np.ndarray, "rows n"], bits: BitSource
) -> tuple[Int64[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Return each proposed integer and whether it is accepted; further bits are taken in a fixed order."""
    outcomes, begun = table.outcomes(words), table.begun(words)
    for i in np.flatnonzero(outcomes == table.table.tie):
        outcomes[i] = table.table.resolve(bits)
    values, taken = table.values(outcomes, words), np.zeros(len(outcomes), np.bool_)
    near = outcomes != table.tail
    taken[near] = accept_blocks(table, values[near], outcomes[near], begun[near], bits)
    for i in np.flatnonzero(~near):
        beyond = int(discrete_laplace(table.variance / table.edge, 1, bits)[0])
        values[i] = beyond + (table.edge if beyond >= 0 else -table.edge)
        taken[i] = below_exp(int(begun[i]), beyond**2 / (2 * table.variance), bits, length=table.accept_bits)
    return values, taken


def accept_blocks(
    table: BlockTable,
    values: Int64[np.ndarray, " n"],
    outcomes: Int64[np.ndarray, " n"],
    begun: UInt64[np.ndarray, " n"],
    bits: BitSource,
) -> Bool[np.ndarray, " n"]:
    """Return whether each proposal from a block is accepted; `begun` are the leading bits that decide.

    Floating point decides where neither its error nor further bits can matter, exact arithmetic elsewhere.
    """
    anchors = table.anchors(outcomes)
    levels, least = table.levels(np.abs(values), anchors), begun.astype(np.float64)
    taken = least + 1 <= levels * (1 - SLACK)
    for i in np.flatnonzero(~taken & (least < levels * (1 + SLACK))):
        gamma = (int(values[i]) ** 2 - int(anchors[i]) ** 2) / (2 * table.variance)
        taken[i] = below_exp(int(begun[i]), gamma, bits, length=table.accept_bits)
    return taken


def below_exp(
    word: int, gamma: Fraction, bits: BitSource, *, factor: Fraction = ONE, length: int = 64
) -> bool:
    """Return whether a uniform number in [0, 1) is below factor·exp(-gamma), which is at most 1.

    `word` holds its `length` leading bits. More bits and digits are taken until the answer is certain.
    """
    digits = 40
    while True:
        work = Context(prec=digits + len(str(int(gamma))), Emin=MIN_EMIN, Emax=MAX_EMAX)
        level = work.exp(work.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
        scaled = factor * Fraction(level) * 2**length if level.adjusted() > -(10**4) else Fraction(1, 2)
        margin = scaled / 10 ** (digits - 4) if level.adjusted() > -(10**4) else scaled
        if word + 1 <= scaled - margin:
            return True
        if word >= scaled + margin:
            return False
        word = word << 64 | int(bits.words(1)[0])
        length += 64
        digits += 40

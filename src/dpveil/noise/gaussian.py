"""Exact discrete Gaussian noise, by rejection sampling from blocks of integers (see `blocks`)."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from dpveil.core.numbers import float_above
from dpveil.errors import NoiseError
from dpveil.noise import backend
from dpveil.noise.bits import BitSource
from dpveil.noise.blocks import SLACK, BlockTable
from dpveil.noise.laplace import CHUNK, LARGEST_SCALE, discrete_laplace

SMALLEST_VARIANCE: Final = Fraction(1, 10**12)
"""The smallest variance: below it nearly every draw is 0."""
ONE: Final = Fraction(1)


def discrete_gaussian(variance: Fraction, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` independent integers z with P(z) proportional to exp(-z² / (2·variance)), exactly.

    `variance` is the parameter σ² of the law (its true variance is slightly smaller for σ < 1), a rational
    from 1e-12 to 2^98 (`NoiseError` otherwise). The result is a function of the bits alone. Source of the
    law: Canonne, Kamath & Steinke 2020; the sampler is described in `blocks` and in docs, "Exact noise".

    >>> from dpveil.noise.bits import SeededBits
    >>> discrete_gaussian(Fraction(9), 4, SeededBits(1)).dtype
    dtype('int64')
    """
    return draw(prepared(checked(Fraction(variance))), size, bits)


def checked(variance: Fraction) -> Fraction:
    """Return `variance` unchanged. Raises `NoiseError` unless it is from 1e-12 to 2^98."""
    if not SMALLEST_VARIANCE <= variance <= Fraction(LARGEST_SCALE, 2) ** 2:
        raise NoiseError(
            f"the noise variance {float_above(variance):.3g} is not between 1e-12 and 2^98",
            hint="change the budget, the neighbourhood or the size of the region",
        )
    return variance


@lru_cache(maxsize=64)
def prepared(variance: Fraction) -> BlockTable:
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
    taken[near] = accepted(table, values[near], outcomes[near], begun[near], bits)
    for i in np.flatnonzero(~near):
        beyond = int(discrete_laplace(table.variance / table.edge, 1, bits)[0])
        values[i] = beyond + (table.edge if beyond >= 0 else -table.edge)
        taken[i] = below_exp(int(begun[i]), beyond**2 / (2 * table.variance), bits, length=table.accept_bits)
    return values, taken


def accepted(
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

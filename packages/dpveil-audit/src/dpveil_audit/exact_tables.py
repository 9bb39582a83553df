"""Tables and decisions of the exact samplers, compared entry by entry with 70-digit decimals."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import UInt64

from dpveil.noise import gaussian
from dpveil.noise.bits import SeededBits
from dpveil.noise.blocks import BlockTable
from dpveil.noise.laplace import DigitTables
from dpveil_audit.findings import Finding

WORK: Final = Context(prec=70, Emin=MIN_EMIN, Emax=MAX_EMAX)
GAUSSIANS: Final = (Fraction(1, 4), Fraction(10**6), Fraction(10**12))


def unpacked(table: UInt64[np.ndarray, " columns"], *, total_bits: int, column_bits: int) -> list[int]:
    """Return the weight of every outcome of an alias table, summed over its columns."""
    weights = [0] * (1 << column_bits)
    capacity = 1 << (total_bits - column_bits)
    for column, entry in enumerate(int(e) for e in table):
        threshold, alias = entry >> column_bits, entry & ((1 << column_bits) - 1)
        weights[column] += threshold
        weights[alias] += capacity - threshold
    return weights


def laplace_tables() -> list[Finding]:
    """Compare every weight of every digit's table with ⌊2^63·p⌋, computed with 70 digits."""
    found = []
    for scale in (Fraction(1, 7), Fraction(255), Fraction(46 * 10**7)):
        tables = DigitTables(scale)
        wrong = 0
        for power, packed in zip(tables.powers, tables.packed, strict=True):
            weights = unpacked(packed, total_bits=tables.total_bits, column_bits=tables.column_bits)
            right = _digit_weights(int(power) / scale, tables.base, power == tables.powers[-1], 1 << 63)
            right.append((1 << 63) - sum(right))
            wrong += sum(a != b for a, b in zip(weights, right, strict=True))
        what = "weights unlike the distribution's"
        found.append(Finding("exact", what, f"scale {float(scale):.4g}", wrong, 0, wrong == 0, "weights"))
    return found


def _digit_weights(rate: Fraction, base: int, leading: bool, total: int) -> list[int]:
    """Return ⌊total·p⌋ of a geometric digit of ratio exp(-rate): truncated at `base`, or with its tail."""
    ratio = WORK.exp(WORK.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    powers = [Decimal(1)]
    for _ in range(base):
        powers.append(WORK.multiply(powers[-1], ratio))
    norm = Decimal(1) if leading else WORK.subtract(Decimal(1), powers[base])
    chances = [WORK.divide(WORK.subtract(powers[j], powers[j + 1]), norm) for j in range(base)]
    if leading:
        chances[-1] = powers[base - 1]
    return [int(WORK.multiply(chance, Decimal(total))) for chance in chances]


def gaussian_tables() -> list[Finding]:
    """Compare the tables of some variances, and acceptance decisions, with 70-digit decimals."""
    found = []
    for variance in GAUSSIANS:
        table, label = BlockTable(variance), f"variance {float(variance):.4g}"
        right = _block_weights(table)
        widths = {"total_bits": table.total_bits, "column_bits": table.column_bits}
        weights = unpacked(table.table.packed, **widths)
        wrong = sum(a != b for a, b in zip(weights, right, strict=True))
        found.append(
            Finding("exact", "weights unlike the distribution's", label, wrong, 0, wrong == 0, "weights")
        )
        wrong = sum(_wrong_decisions(table, outcome) for outcome in range(0, table.tail, 7))
        found.append(Finding("exact", "wrong decisions", label, wrong, 0, wrong == 0, "decisions"))
    return found


def _below(variance: Fraction, squares: int) -> Decimal:
    """Return exp(-squares / (2·variance))."""
    exponent = -squares / (2 * variance)
    return WORK.exp(WORK.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))


def _block_weights(table: BlockTable) -> list[int]:
    """Return ⌊2^total_bits·p⌋ of every block and the tail, and the remainder for ties."""
    variance, side = table.variance, 1 << table.block_bits
    ends = [min(abs(k * side), abs((k + 1) * side - 1)) for k in range(-table.blocks, table.blocks)]
    chances = [WORK.multiply(_below(variance, end**2), Decimal(side)) for end in ends]
    ratio = _below(variance, 2 * table.edge)
    spread = WORK.divide(WORK.add(Decimal(1), ratio), WORK.subtract(Decimal(1), ratio))
    chances.append(WORK.multiply(_below(variance, table.edge**2), spread))
    total = Decimal(0)
    for chance in chances:
        total = WORK.add(total, chance)
    unit = WORK.divide(Decimal(1 << table.total_bits), total)
    weights = [int(WORK.multiply(chance, unit)) for chance in chances]
    weights += [0] * ((1 << table.column_bits) - 1 - len(weights))
    return [*weights, (1 << table.total_bits) - sum(weights)]


def _wrong_decisions(table: BlockTable, outcome: int) -> int:
    """Return how often an integer of one block is accepted or rejected contrary to exact arithmetic.

    Checked are both ends and the middle of the block, with leading bits at the threshold and next to it.
    """
    side, wrong = 1 << table.block_bits, 0
    first = (outcome - table.blocks) * side
    anchor = min(abs(first), abs(first + side - 1))
    for value in {first, first + side // 2, first + side - 1}:
        level = WORK.multiply(_below(table.variance, value**2 - anchor**2), Decimal(1 << table.accept_bits))
        for begun in {0, int(level) - 1, int(level), int(level) + 1, int(table.sure[outcome])}:
            if 0 <= begun < 1 << table.accept_bits:
                more = int(SeededBits(1, "ties").words(1)[0])
                right = Decimal(begun << 64 | more) < WORK.multiply(level, Decimal(1 << 64))
                wrong += _accepted(table, outcome, value - first, begun) != right
    return wrong


def _accepted(table: BlockTable, outcome: int, place: int, begun: int) -> bool:
    """Return the sampler's decision on a position in a block, given the leading bits of the uniform
    number.
    """
    if begun < table.sure[outcome]:
        return True
    outcomes, many = np.array([outcome]), np.array([begun], np.uint64)
    value = (outcomes - table.blocks << table.block_bits) + place
    return bool(gaussian.accepted(table, value, outcomes, many, SeededBits(1, "ties"))[0])

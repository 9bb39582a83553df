"""The audits of the samplers: tables against 70-digit decimals, fits, and faults that must be detected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt64

from dpveil.noise import gaussian
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.gaussian import BlockTable
from dpveil.noise.laplace import DigitTables, discrete_laplace
from dpveil.noise.matrix import IntegerMatrix, certify_matrix
from dpveil_audit.distributions import (
    Distribution,
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
    laplace_residues,
)
from dpveil_audit.engine import (
    Audit,
    Drawn,
    Finding,
    Gate,
    Level,
    Version,
    count_finding,
    drawing,
    fits,
    p_value_finding,
    uniforms,
)
from dpveil_audit.fit import fit

WORK: Final = Context(prec=70, Emin=MIN_EMIN, Emax=MAX_EMAX)
UNLIKE: Final = "weights unlike the distribution's"
GAUSSIANS: Final = (Fraction(1, 4), Fraction(10**6), Fraction(10**12))


def alias_weights(table: UInt64[np.ndarray, " columns"], *, total_bits: int, column_bits: int) -> list[int]:
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
            weights = alias_weights(packed, total_bits=tables.total_bits, column_bits=tables.column_bits)
            right = _digit_weights(int(power) / scale, tables.base, power == tables.powers[-1], 1 << 63)
            right.append((1 << 63) - sum(right))
            wrong += sum(a != b for a, b in zip(weights, right, strict=True))
        found.append(count_finding("exact", UNLIKE, f"scale {float(scale):.4g}", wrong, "weights"))
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
        weights = alias_weights(table.table.packed, **widths)
        wrong = sum(a != b for a, b in zip(weights, right, strict=True))
        found.append(count_finding("exact", UNLIKE, label, wrong, "weights"))
        wrong = sum(_wrong_decisions(table, outcome) for outcome in range(0, table.tail, 7))
        found.append(count_finding("exact", "wrong decisions", label, wrong, "decisions"))
    return found


def _below(variance: Fraction, squares: int) -> Decimal:
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
                wrong += _accepts(table, outcome, value - first, begun) != right
    return wrong


def _accepts(table: BlockTable, outcome: int, place: int, begun: int) -> bool:
    """Return the sampler's decision on a position in a block, given leading bits of the uniform number."""
    if begun < table.sure[outcome]:
        return True
    outcomes, many = np.array([outcome]), np.array([begun], np.uint64)
    value = (outcomes - table.blocks << table.block_bits) + place
    return bool(gaussian.accept_blocks(table, value, outcomes, many, SeededBits(1, "ties"))[0])


LEVELS: Final = 16
BUDGET: Final = Fraction(4)

Sample = Int64[np.ndarray, " n"]
Fault = Callable[[Sample, Float64[np.ndarray, " n"]], Sample]
"""A function that spoils a sample, given as many uniform numbers."""
Draw = Callable[[int, BitSource], Sample]


@dataclass(frozen=True)
class SamplerCase:
    """One distribution that a sampler draws; `modulus` is for low digits, which coarse bins cannot test."""

    label: str
    draw: Draw
    distribution: Distribution
    residues: tuple[Distribution, int] | None = None

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, kw_only=True)
class SamplerVersion(Version):
    """A sampler, intact or with a fault that spoils its samples."""

    fault: Fault = lambda sample, uniform: sample


def exact_gate(version: SamplerVersion, tables: Callable[[], list[Finding]]) -> list[Finding]:
    return tables()


def fit_gate(version: SamplerVersion, setting: Drawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield the fit of one sample: all of it, adjacent draws, and its low digits if requested."""
    case, draws = setting.case, setting.draws
    sample = version.fault(case.draw(draws, bits), uniforms(bits, draws))
    found = fits("all", sample, case.distribution)
    if case.residues is not None:
        distribution, modulus = case.residues
        found["low digits"] = fit(np.abs(sample) % modulus, distribution).p_value
    yield p_value_finding(case, f"{draws:,} draws", found)


def _geometric_distribution(budget: Fraction) -> list[list[Fraction]]:
    steps = [WORK.exp(-Decimal(float(budget)) * d / (LEVELS - 1)) for d in range(LEVELS)]
    return [[Fraction(steps[abs(x - y)]) for y in range(LEVELS)] for x in range(LEVELS)]


@lru_cache(maxsize=1)
def _matrix() -> IntegerMatrix:
    return certify_matrix(_geometric_distribution, BUDGET)


def _matrix_tables() -> list[Finding]:
    """Compare the alias tables with the certified integers, and their largest log-ratio with the budget."""
    matrix = _matrix()
    size = {"total_bits": 64, "column_bits": matrix.column_bits}
    rows = [alias_weights(packed, **size)[: matrix.outcomes] for packed in matrix.alias_tables]
    wrong = sum(tuple(row) != right for row, right in zip(rows, matrix.weights, strict=True))
    ratio = max((Decimal(max(c)) / Decimal(min(c))).ln(WORK) for c in zip(*matrix.weights, strict=True))
    label, kept = f"{LEVELS} × {LEVELS}", ratio <= Decimal(int(BUDGET))
    return [
        count_finding("exact", "rows unlike the certified", label, wrong, "rows"),
        Finding("exact", "log-ratio of a column", label, float(ratio), float(BUDGET), kept, "ε"),
    ]


def _row(answer: int, count: int, bits: BitSource) -> Sample:
    return _matrix().sample(np.full(count, answer, np.int64), bits)


def _laplace_case(scale: Fraction, modulus: int | None = None) -> SamplerCase:
    residues = None if modulus is None else (laplace_residues(scale, modulus), modulus)
    return SamplerCase(
        f"scale {float(scale):.4g}", partial(discrete_laplace, scale), laplace_distribution(scale), residues
    )


def _gaussian_case(variance: Fraction) -> SamplerCase:
    return SamplerCase(
        f"variance {float(variance):.4g}",
        partial(gaussian.discrete_gaussian, variance),
        gaussian_distribution(variance),
    )


def _matrix_case(answer: int) -> SamplerCase:
    mass = [weight / 2**64 for weight in _matrix().weights[answer]]
    return SamplerCase(f"true answer {answer}", partial(_row, answer), finite_distribution(mass))


DRAWS: Final = {"quick": 100_000, "deep": 1_000_000}
INTACT: Final = SamplerVersion(name="intact")
GATES: Final = (Gate("exact", exact_gate, ties=True), drawing("fit", fit_gate))
REUSE: Final[dict[str, Fault]] = {
    "every draw used twice": lambda z, u: np.repeat(z[: len(z) // 2], 2),
    "one draw in 20 is the one before": lambda z, u: np.where(u < 0.05, np.roll(z, 1), z),
}
SHAPE: Final[dict[str, Fault]] = {
    "5 % narrower": lambda z, u: np.rint(0.95 * z).astype(np.int64),
    "half of the zeros missing": lambda z, u: np.where((z == 0) & (u < 0.5), 1, z),
    "one draw in 100 is zero": lambda z, u: np.where(u < 0.01, 0, z),
    "one sign in 10 lost": lambda z, u: np.where(u < 0.1, np.abs(z), z),
    "moved by one": lambda z, u: z + 1,
    "only even values": lambda z, u: z // 2 * 2,
    "the last digit always 0": lambda z, u: np.sign(z) * (np.abs(z) // 2047 * 2047),
}
"""Faults of samplers over all integers."""


def _audit(
    exact: Callable[[], list[Finding]], cases: tuple[SamplerCase, ...], faults: dict[str, Fault]
) -> Audit:
    mutants = tuple(SamplerVersion(name=fault, fault=spoil) for fault, spoil in faults.items())
    levels = {
        name: Level((exact,), tuple(Drawn(case, draws) for case in cases)) for name, draws in DRAWS.items()
    }
    return Audit(intact=INTACT, mutants=mutants, levels=levels, gates=GATES)


@cache
def samplers() -> dict[str, Audit]:
    """Return the audits of all samplers by name; their distributions take a while."""
    tails: dict[str, Fault] = {
        "tail cut at 8 scales": lambda z, u: z.clip(-8 * 255, 8 * 255),
        "tail too long": lambda z, u: np.where(u < 1e-3, 14 * z, z),
    }
    thin: dict[str, Fault] = {"tail cut at 4 deviations": lambda z, u: z.clip(-80, 80)}
    finite: dict[str, Fault] = {
        "row of another answer": lambda z, u: (z + 1) % LEVELS,
        "one outcome in two swapped": lambda z, u: z ^ 1,
        "one outcome never drawn": lambda z, u: np.where(z == 5, 6, z),
    }
    return {
        "discrete-laplace": _audit(
            laplace_tables,
            (
                _laplace_case(Fraction(1, 7)),
                _laplace_case(Fraction(255)),
                _laplace_case(Fraction(46 * 10**7), 2047),
            ),
            REUSE | SHAPE | tails,
        ),
        "discrete-gaussian": _audit(
            gaussian_tables,
            tuple(_gaussian_case(Fraction(v)) for v in ("1/4", "400", "1e10")),
            REUSE | SHAPE | thin,
        ),
        "integer-matrix": _audit(_matrix_tables, (_matrix_case(0), _matrix_case(7)), REUSE | finite),
    }

"""Audits of the samplers: tables compared entry by entry, fits, and faults that must be detected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.noise import gaussian
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import discrete_laplace
from dpveil.noise.matrix import IntegerMatrix, certified
from dpveil_audit.distributions import (
    Distribution,
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
    laplace_residues,
)
from dpveil_audit.entry import Bits, Check, Entry, Variant, computed
from dpveil_audit.exact_tables import WORK, gaussian_tables, laplace_tables, unpacked
from dpveil_audit.findings import Finding
from dpveil_audit.fit import ALPHA, Fit, fit, fit_pairs

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


@dataclass(frozen=True, kw_only=True)
class SamplerVersion(Variant):
    """A sampler, intact or with a fault that spoils its samples."""

    fault: Fault = lambda sample, uniform: sample


@dataclass(frozen=True, eq=False)
class Sampled:
    """A case with one sample, drawn once for all versions, and uniform numbers for faults."""

    case: SamplerCase
    draws: int
    bits: Callable[[str], BitSource]
    name: str

    @cached_property
    def sample(self) -> Sample:
        """The sample."""
        return self.case.draw(self.draws, self.bits(f"{self.name} {self.case.label}"))

    def by(self, version: SamplerVersion) -> Sample:
        """Return the sample as a version would give it."""
        if version is INTACT:
            return self.sample
        words = self.bits(f"{self.name} {version.name}").words(self.draws)
        return version.fault(self.sample, (words >> 11).astype(float) / 2**53)


@dataclass(frozen=True, kw_only=True)
class SamplerAudit(Entry[SamplerVersion, int]):
    """The audit of one sampler: exact comparisons, and distributions to fit; levels are numbers of draws."""

    name: str
    exact: Callable[[], list[Finding]]
    cases: tuple[SamplerCase, ...]

    def checks(self, level: int, bits: Bits) -> Iterator[Check[SamplerVersion]]:
        """Yield the comparisons, and the fits of every case."""
        yield Check("exact", self.name, lambda version: self.exact(), self.intact)
        made = [Sampled(case, level, bits, self.name) for case in self.cases]
        yield from computed("fit", lambda version, one: fit_findings(one.case, one.by(version)), made)


def fit_findings(case: SamplerCase, sample: Sample) -> list[Finding]:
    """Return the fits of one sample: all of it, its low digits if requested, and adjacent draws."""
    share = ALPHA / 3
    looks: dict[str, Fit] = {"distribution": fit(sample, case.distribution, alpha=share)}
    if case.residues is not None:
        distribution, modulus = case.residues
        looks["low digits"] = fit(np.abs(sample) % modulus, distribution, alpha=share)
    looks["neighbouring draws"] = fit_pairs(sample, case.distribution, alpha=share)
    limit = float(-np.log10(share))
    made = []
    for what, seen in looks.items():
        value = max(0.0, float(-np.log10(max(seen.p_value, 1e-300))))
        name = f"{len(sample):,} draws, {what}"
        made.append(Finding("fit", name, case.label, value, limit, not seen.rejected, "-log10 p"))
    return made


def _geometric_distribution(budget: Fraction) -> list[list[Fraction]]:
    steps = [WORK.exp(-Decimal(float(budget)) * d / (LEVELS - 1)) for d in range(LEVELS)]
    return [[Fraction(steps[abs(x - y)]) for y in range(LEVELS)] for x in range(LEVELS)]


@lru_cache(maxsize=1)
def _matrix() -> IntegerMatrix:
    return certified(_geometric_distribution, BUDGET)


def _matrix_tables() -> list[Finding]:
    """Compare the alias tables with the certified integers, and their largest log-ratio with the budget."""
    matrix = _matrix()
    size = {"total_bits": 64, "column_bits": matrix.column_bits}
    rows = [unpacked(packed, **size)[: matrix.outcomes] for packed in matrix.packed]
    wrong = sum(tuple(row) != right for row, right in zip(rows, matrix.weights, strict=True))
    ratio = max((Decimal(max(c)) / Decimal(min(c))).ln(WORK) for c in zip(*matrix.weights, strict=True))
    label, kept = f"{LEVELS} × {LEVELS}", ratio <= Decimal(int(BUDGET))
    return [
        Finding("exact", "rows unlike the certified", label, wrong, 0, wrong == 0, "rows"),
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
    name: str, exact: Callable[[], list[Finding]], cases: tuple[SamplerCase, ...], faults: dict[str, Fault]
) -> SamplerAudit:
    mutants = tuple(SamplerVersion(name=fault, fault=spoil) for fault, spoil in faults.items())
    return SamplerAudit(name=name, intact=INTACT, mutants=mutants, levels=DRAWS, exact=exact, cases=cases)


@cache
def samplers() -> dict[str, SamplerAudit]:
    """Return the audits of all samplers by name; their distributions take a while, and are computed once."""
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
    made = (
        _audit(
            "discrete-laplace",
            laplace_tables,
            (
                _laplace_case(Fraction(1, 7)),
                _laplace_case(Fraction(255)),
                _laplace_case(Fraction(46 * 10**7), 2047),
            ),
            REUSE | SHAPE | tails,
        ),
        _audit(
            "discrete-gaussian",
            gaussian_tables,
            tuple(_gaussian_case(Fraction(v)) for v in ("1/4", "400", "1e10")),
            REUSE | SHAPE | thin,
        ),
        _audit("integer-matrix", _matrix_tables, (_matrix_case(0), _matrix_case(7)), REUSE | finite),
    )
    return {audit.name: audit for audit in made}

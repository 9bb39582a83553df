"""The audits of the samplers: fits to distributions in closed form, and faults that must be detected.

Their tables are compared with exact probabilities, weight by weight, by tests of `dpveil.noise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.noise.bits import BitSource, uniforms
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.integer_matrix import IntegerMatrix, certify_matrix
from dpveil.noise.laplace import discrete_laplace
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
    drawing,
    fits,
    p_value_finding,
)
from dpveil_audit.fit import fit

WORK: Final = Context(prec=70)
LEVELS: Final = 16
BUDGET: Final = Fraction(4)
DRAWS: Final = 100_000

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


def fit_gate(version: SamplerVersion, setting: Drawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield the fit of one sample: all of it, adjacent draws, and its low digits if requested."""
    case, draws = setting.case, setting.draws
    sample = version.fault(case.draw(draws, bits), uniforms(draws, bits))
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


def exact_gate(version: SamplerVersion, matrix: Callable[[], IntegerMatrix]) -> Iterator[Finding]:
    """Yield the largest log-ratio of the integers of a certified matrix, which its budget bounds."""
    columns = zip(*matrix().weights, strict=True)
    ratio = max((Decimal(max(column)) / Decimal(min(column))).ln(WORK) for column in columns)
    label, kept = f"{LEVELS} × {LEVELS}", ratio <= Decimal(int(BUDGET))
    yield Finding("exact", "log-ratio of a column", label, float(ratio), float(BUDGET), kept, "ε")


def _row(answer: int, count: int, bits: BitSource) -> Sample:
    return _matrix().sample(np.full(count, answer, np.int64), bits)


def _laplace_case(scale: Fraction, modulus: int | None = None) -> SamplerCase:
    residues = None if modulus is None else (laplace_residues(scale, modulus), modulus)
    return SamplerCase(
        f"scale {float(scale):.4g}", partial(discrete_laplace, scale), laplace_distribution(scale), residues
    )


def _gaussian_case(variance: Fraction) -> SamplerCase:
    label = f"variance {float(variance):.4g}"
    return SamplerCase(label, partial(discrete_gaussian, variance), gaussian_distribution(variance))


def _matrix_case(answer: int) -> SamplerCase:
    mass = [weight / 2**64 for weight in _matrix().weights[answer]]
    return SamplerCase(f"true answer {answer}", partial(_row, answer), finite_distribution(mass))


REUSE: Final[dict[str, Fault]] = {
    "every draw used twice": lambda z, u: np.repeat(z[: len(z) // 2], 2),
    "one draw in 20 is the one before": lambda z, u: np.where(u < 0.05, np.roll(z, 1), z),
}
SHAPE: Final[dict[str, Fault]] = {
    "5 % narrower": lambda z, u: np.rint(0.95 * z).astype(np.int64),
    "half of the zeros missing": lambda z, u: np.where((z == 0) & (u < 0.5), 1, z),
    "one sign in 10 lost": lambda z, u: np.where(u < 0.1, np.abs(z), z),
    "moved by one": lambda z, u: z + 1,
    "the last digit always 0": lambda z, u: np.sign(z) * (np.abs(z) // 2047 * 2047),
}
"""Faults of samplers over all integers."""


def _audit(
    cases: tuple[SamplerCase, ...],
    faults: dict[str, Fault],
    exact: tuple[Callable[[], IntegerMatrix], ...] = (),
) -> Audit:
    return Audit(
        intact=SamplerVersion(name="intact"),
        mutants=tuple(SamplerVersion(name=fault, fault=spoil) for fault, spoil in faults.items()),
        level=Level(exact, tuple(Drawn(case, DRAWS) for case in cases)),
        gates=(Gate("exact", exact_gate, ties=True), drawing("fit", fit_gate)),
    )


@cache
def samplers() -> dict[str, Audit]:
    """Return the audits of all samplers by name; their distributions take a while."""
    tail: dict[str, Fault] = {"tail cut at 8 scales": lambda z, u: z.clip(-8 * 255, 8 * 255)}
    thin: dict[str, Fault] = {"tail cut at 4 deviations": lambda z, u: z.clip(-80, 80)}
    finite: dict[str, Fault] = {
        "row of another answer": lambda z, u: (z + 1) % LEVELS,
        "one outcome never drawn": lambda z, u: np.where(z == 5, 6, z),
    }
    scales = (Fraction(1, 7),), (Fraction(255),), (Fraction(46 * 10**7), 2047)
    variances = Fraction(1, 4), Fraction(400), Fraction(10**10)
    return {
        "discrete-laplace": _audit(tuple(_laplace_case(*one) for one in scales), REUSE | SHAPE | tail),
        "discrete-gaussian": _audit(tuple(map(_gaussian_case, variances)), REUSE | SHAPE | thin),
        "integer-matrix": _audit((_matrix_case(0), _matrix_case(7)), REUSE | finite, (_matrix,)),
    }

"""The explicit fair mechanism for counts, and the uniform one, which every other should beat."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpveil.mechanisms.scalar.base import ScalarMechanism
from dpveil.mechanisms.scalar.matrix_cost import Rows
from dpveil.mechanisms.scalar.noise_mechanisms import PRECISION
from dpveil.noise.laplace import exp_below


@dataclass(frozen=True, kw_only=True)
class Uniform(ScalarMechanism):
    """Uniform responses whatever the answer: costs nothing, and any mechanism should beat it.

    `epsilon` is accepted and not spent. Fields are those of `ScalarMechanism`. Source: Croft thesis §5.3.2.

    >>> Uniform(range=(0, 4), sensitivity=1, epsilon=1).matrix()[0].tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2]
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "any point of the range, whatever the answer"
    source: ClassVar[str] = "Croft thesis §5.3.2"

    @property
    def spent(self) -> Fraction:
        """0."""
        return Fraction(0)

    def _rows(self, epsilon: Fraction) -> Rows:
        size = self.lattice.size or 1
        return [[1] * size] * size


@dataclass(frozen=True, kw_only=True)
class ExplicitFair(ScalarMechanism):
    """Every answer is reported truly with the same probability; others follow with powers of e^-ε.

    With m the distance of an answer to its nearer end, a response at distance d has weight e^(-ε·d) up to m
    and e^(-ε·⌈(d + m)/2⌉) beyond, where a step of the lattice counts ε·step/ΔF. All columns have the same
    sum, also for odd sizes (errata E11). Fields as in `ScalarMechanism`. Source: Croft thesis 5.73, 5.74.

    >>> ExplicitFair(range=(0, 5), sensitivity=1, epsilon=0.5).matrix().diagonal().round(3).tolist()
    [0.315, 0.315, 0.315, 0.315, 0.315, 0.315]
    """

    name: ClassVar[str] = "explicit-fair"
    summary: ClassVar[str] = "counts: the true answer has the same chance everywhere"
    source: ClassVar[str] = "Croft thesis 5.73 and 5.74, errata E11"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range.gaps:
            self._refuse_gaps()

    def _rows(self, epsilon: Fraction) -> Rows:
        last = (self.lattice.size or 1) - 1
        rate = epsilon / self.lattice.reach
        power = [exp_below(rate * j, PRECISION) for j in range(last + 1)]
        power[0] = 1 << PRECISION
        rows = []
        for x in range(last + 1):
            near = min(x, last - x)
            distances = [abs(x - y) for y in range(last + 1)]
            rows.append([power[d if d < near else -(-(d + near) // 2)] for d in distances])
        return rows

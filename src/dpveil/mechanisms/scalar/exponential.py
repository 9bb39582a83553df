"""The exponential mechanism on a lattice, at the largest rate that keeps the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpveil.mechanisms.scalar.base import ANY, ScalarMechanism
from dpveil.mechanisms.scalar.certify import Rows
from dpveil.mechanisms.scalar.noises import PRECISION, LaplaceNoise
from dpveil.mechanisms.scalar.scales import least_scale
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
    sum, also for odd sizes (errata E11). Fields are those of `ScalarMechanism`. Source: Croft thesis 5.73,
    5.74.

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


@dataclass(frozen=True, kw_only=True)
class Exponential(ScalarMechanism):
    """A response y to the answer x has weight e^(-rate·|y - x|), over all points of a finite range.

    The general theorem allows a rate of ε/(2ΔF). Here the rate is the largest that is private on this
    lattice, up to ε/ΔF, as certified on the integers. This is the law of `TruncatedLaplace` on the lattice of
    the answers. Gaps are allowed. Fields are those of `ScalarMechanism`. Source: McSherry & Talwar 2007, with
    the scales of Croft thesis §5.1.3 and Holohan et al.

    >>> method = Exponential(range=(0, 5), sensitivity=1, epsilon=1, relation="database-record")
    >>> round(float(method.rate), 3)
    0.785
    """

    name: ClassVar[str] = "exponential"
    summary: ClassVar[str] = "weights that fall with the distance to the answer, at the largest sound rate"
    source: ClassVar[str] = "McSherry & Talwar 2007; Croft thesis §5.1.3"

    @property
    def rate(self) -> Fraction:
        """How much the logarithm of a weight falls per unit of the answer."""
        return 1 / (self._noise(self.budget).scale * self.lattice.step)

    def _noise(self, epsilon: Fraction) -> LaplaceNoise:
        return LaplaceNoise(least_scale(self.lattice, epsilon, metric=self.promise == ANY))

    def _rows(self, epsilon: Fraction) -> Rows:
        points = self.lattice.points
        near, _ = self._noise(epsilon).weights(int(points[-1] - points[0]) + 1)
        weights = np.array(near, dtype=object)
        return [weights[np.abs(points - point)].tolist() for point in points]

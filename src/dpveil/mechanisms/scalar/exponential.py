"""The exponential mechanism on a lattice, at the largest rate that keeps the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpveil.mechanisms.scalar.base import ANY, ScalarMechanism
from dpveil.mechanisms.scalar.certify import Rows
from dpveil.mechanisms.scalar.noises import LaplaceNoise
from dpveil.mechanisms.scalar.scales import least_scale


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

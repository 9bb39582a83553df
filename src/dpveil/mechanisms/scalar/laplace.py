"""The Laplace mechanism with boundary snapping (Croft thesis formula 5.68, definition 11)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

from dpveil.mechanisms.scalar.base import RECORD
from dpveil.mechanisms.scalar.noises import LaplaceNoise, StaircaseNoise
from dpveil.mechanisms.scalar.noisy import SnappedMechanism


@dataclass(frozen=True, kw_only=True)
class Staircase(SnappedMechanism):
    """Staircase noise: constant within γ·ΔF of the answer, then lower by e^-ε every ΔF; snapped to the range.

    γ = 1/(1 + e^(ε/2)), which has the least expected error without a range, rounded to the lattice. Promises
    ε for one record only: two close answers can already differ by ε. Fields are those of `ScalarMechanism`.
    Source: Croft thesis formulas 5.69 and 5.70.

    >>> Staircase(range=(0, 4), sensitivity=1, epsilon=1).guarantee().kind
    'pure'
    """

    name: ClassVar[str] = "staircase"
    summary: ClassVar[str] = "stair-shaped noise of least error, snapped to the range"
    source: ClassVar[str] = "Croft thesis 5.69 and 5.70"
    relations: ClassVar[tuple[str, ...]] = (RECORD,)

    def noise(self, epsilon: Fraction | None = None) -> StaircaseNoise:
        """Return staircase noise in steps."""
        reach = self.lattice.reach
        ahead = exp(-float(self.budget) / 2)
        inner = min(max(round(reach * ahead / (1 + ahead)), 1), reach)
        return StaircaseNoise(epsilon or self.budget, reach, inner)


@dataclass(frozen=True, kw_only=True)
class Laplace(SnappedMechanism):
    """Laplace noise of scale ΔF/ε on a fine lattice; responses outside the range move to its nearest end.

    Promises ε·d for any two databases, where d is the distance of their answers in ΔF, on any range. Fields
    are those of `ScalarMechanism`. Source: Croft thesis §5.2.3, formula 5.68.

    >>> from dpveil.noise.bits import SeededBits
    >>> Laplace(range="0:", sensitivity=1, epsilon=1).release(0.2, SeededBits(3)) >= 0
    True
    """

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "Laplace noise, snapped to the range"
    source: ClassVar[str] = "Croft thesis 5.68 and definition 11"

    def noise(self, epsilon: Fraction | None = None) -> LaplaceNoise:
        """Return discrete Laplace noise of scale ΔF/ε, in steps."""
        return LaplaceNoise(self.lattice.reach / (epsilon or self.budget))


@dataclass(frozen=True, kw_only=True)
class Geometric(SnappedMechanism):
    """Two-sided geometric noise on counts, snapped to the range: `Laplace` on the coarsest lattice.

    The step is the largest that divides ΔF and the range: 1 for counts. Fields are those of
    `ScalarMechanism`. Source: Croft thesis formula 5.71, over all integers (errata E11).

    >>> Geometric(range=(0, 2), sensitivity=1, epsilon=1).certificate.epsilon <= 1
    True
    """

    name: ClassVar[str] = "geometric"
    summary: ClassVar[str] = "two-sided geometric noise for counts, snapped to the range"
    source: ClassVar[str] = "Croft thesis 5.71, errata E11"

    def noise(self, epsilon: Fraction | None = None) -> LaplaceNoise:
        """Return discrete Laplace noise of scale ΔF/ε, in steps."""
        return LaplaceNoise(self.lattice.reach / (epsilon or self.budget))

    def _default_step(self) -> Fraction:
        return self.coarsest

"""The staircase mechanism with boundary snapping (Croft thesis formulas 5.69 and 5.70)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

from dpveil.mechanisms.scalar.base import RECORD
from dpveil.mechanisms.scalar.noises import StaircaseNoise
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

"""Responses that ignore the answer: the baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpveil.mechanisms.scalar.base import ScalarMechanism
from dpveil.mechanisms.scalar.certify import Rows


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

"""Laplace (Croft thesis formula 5.68, definition 11), truncated Laplace, geometric and staircase noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.core.rationals import show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar.base import ANY_DATABASE, DATABASE_RECORD
from dpveil.mechanisms.scalar.matrix_cost import Rows
from dpveil.mechanisms.scalar.noise_mechanisms import (
    LaplaceNoise,
    NoisyMechanism,
    SnappedMechanism,
    StaircaseNoise,
)
from dpveil.mechanisms.scalar.scales import least_scale
from dpveil.noise.bits import BitSource

HOPELESS: Final = 1 << 13
"""Points between the ends per allowed point beyond which a draw would take some 2^14 trials."""


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace(NoisyMechanism):
    """Laplace noise truncated to the range and normalised for every answer.

    The normalising constant depends on the answer, so a larger scale is needed: the smallest common scale
    that keeps the promise. any-database needs 2ΔF/ε if the range has an end, and less with gaps alone;
    database-record needs less, such as ΔF/ln((1 + e^ε)/2) above one end (Holohan et al. between two). Any
    range, with any gaps. Fields are those of `ScalarMechanism`. Source: Croft thesis §5.1.3, §5.1.4; its
    variable scale of §5.1.2 is not private (errata E1).

    >>> method = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1)
    >>> round(float(method.scale), 2), method.guarantee().kind
    (2.0, 'metric')
    """

    name: ClassVar[str] = "truncated-laplace"
    summary: ClassVar[str] = "Laplace noise, truncated to the range and normalised"
    source: ClassVar[str] = "Croft thesis §5.1, errata E1"

    def __post_init__(self) -> None:
        super().__post_init__()
        size, hull = self.lattice.size, self._hull
        if size and hull and not self._is_finite and hull > HOPELESS * size:
            raise InvalidParameter(
                "step",
                show(self.lattice.step),
                f"leaves {size} points of {hull}, which noise next to never hits",
                hint=f"choose a larger step, for at most {self.most} points",
            )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise in the units of the answer, rounded up."""
        return self.noise().scale * self.lattice.step

    def noise(self, epsilon: Fraction | None = None) -> LaplaceNoise:
        """Return the noise before truncation, of the smallest valid scale."""
        metric = self.promise == ANY_DATABASE
        return LaplaceNoise(least_scale(self.lattice, epsilon or self.budget, metric=metric))

    def _rows(self, epsilon: Fraction) -> Rows | None:
        if not self._is_finite:
            return None
        points = self.lattice.points
        near, _ = self.noise(epsilon).weights(int(points[-1] - points[0]) + 1)
        weights = np.array(near, dtype=object)
        return [weights[np.abs(points - point)].tolist() for point in points]

    def _shows(self) -> tuple[str, ...]:
        return ("how long the draw took, which depends a little on the answer",)

    @property
    def _hull(self) -> int | None:
        """The number of points between the ends, gaps included, or None without two ends."""
        first, last = self.lattice.spans[0][0], self.lattice.spans[-1][1]
        return None if first is None or last is None else last - first + 1

    def _draw(self, points: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return draws by rejection: untruncated noise until it is allowed.

        Between two ends the size of the noise is taken modulo the number of points. That keeps the
        conditional law (a geometric variable is memoryless), and about every second draw is accepted.
        """
        noise, out, missing, hull = self.noise(), points.copy(), np.arange(len(points)), self._hull
        while len(missing):
            drawn = noise.draw(len(missing), bits)
            minus_zero = np.zeros(len(drawn), bool)
            if hull is not None:
                folded = np.abs(drawn) % hull
                minus_zero = (drawn < 0) & (folded == 0)
                drawn = np.sign(drawn) * folded
            drawn += points[missing]
            good = self.lattice.is_allowed(drawn) & ~minus_zero
            out[missing[good]] = drawn[good]
            missing = missing[~good]
        return out

    def _masses(self, point: int, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " categories"]:
        masses, noise = np.zeros(len(edges) - 1), self.noise()
        for first, last in self.lattice.spans:
            low = np.maximum(edges[:-1], -np.inf if first is None else first)
            high = np.minimum(edges[1:] - 1, np.inf if last is None else last)
            masses += noise.mass(low - point, high - point)
        return np.asarray(masses / masses.sum())


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
    relations: ClassVar[tuple[str, ...]] = (DATABASE_RECORD,)

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

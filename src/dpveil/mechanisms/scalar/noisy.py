"""Mechanisms that add noise on a lattice and stay in range, by snapping or by normalisation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.scalar.base import ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice, Rows
from dpveil.mechanisms.scalar.noises import LatticeNoise
from dpveil.noise.bits import BitSource

FINE = 512
"""Points of the default lattice on a finite range."""
STEPS = 16
"""Steps to ΔF at which the default lattice is fine enough."""
FINER = 1 << 10
"""Steps to the noise scale on an infinite lattice."""


@dataclass(frozen=True, kw_only=True)
class NoisyMechanism(ScalarMechanism):
    """Additive noise of one law for every answer, which is rounded to a fine lattice if it is continuous."""

    finite_only: ClassVar[bool] = False
    most: ClassVar[int] = FINE + 1

    @abstractmethod
    def noise(self, epsilon: Fraction | None = None) -> LatticeNoise:
        """Return the noise for the budget `epsilon`, by default the mechanism's own."""

    def prepare(self) -> None:
        """Raise any error that would prevent a draw."""
        super().prepare()
        if self.integers is None:
            self.noise().prepare()

    def _default_step(self) -> Fraction:
        """Return ΔF over a power of two: at most FINE points on a finite range, else FINER steps to the noise
        scale.

        The latter also if FINE points would leave less than two steps to ΔF/ε and less than STEPS to ΔF.
        """
        step, width = self.coarsest, self.allowed.width
        if width is not None and width / step <= FINE:
            while 2 * width / step <= FINE:
                step /= 2
            sensitivity = Fraction(self.sensitivity)
            if STEPS * step <= sensitivity or 2 * step * self.budget <= sensitivity:
                return step
            step = self.coarsest
        while step > Fraction(self.sensitivity) / max(self.budget, Fraction(1)) / FINER:
            step /= 2
        return step


@dataclass(frozen=True, kw_only=True)
class SnappedMechanism(NoisyMechanism):
    """Noise is added, and what leaves the range is moved to the nearest point in range (thesis definition
    11).
    """

    def _rows(self, epsilon: Fraction) -> Rows | None:
        return snapped_rows(self.lattice, self.noise(epsilon)) if self._is_finite else None

    def _draw(self, points: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        return self.lattice.snap(points + self.noise().draw(len(points), bits))

    def _masses(self, point: int, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " categories"]:
        # a response is below an edge if the noise is below the middle of the gap around it
        cuts = _before_snapping(self.lattice, edges) - point
        return self.noise().mass(cuts[:-1], cuts[1:] - 1)


def _before_snapping(lattice: Lattice, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Return for each edge the first point that is snapped to a point at or above it."""
    first, last = lattice.spans[0][0], lattice.spans[-1][1]
    found = edges.copy()
    if first is not None:
        found[edges <= first] = -np.inf
    if last is not None:
        found[edges > last] = np.inf
    for left, right in lattice.gaps:
        inside = (edges > left) & (edges <= right)
        found[inside] = left + (right - left) // 2 + 1
    return found


def snapped_rows(lattice: Lattice, noise: LatticeNoise) -> Rows:
    """Return the integer weights of noise snapped to a finite lattice, for every pair of points."""
    points = lattice.points
    span = int(points[-1] - points[0])
    near, rest = noise.weights(span + 1)
    signed = np.array([*near[:0:-1], *near], dtype=object)
    beyond = [*np.cumsum(np.array([rest, *near[:0:-1]], dtype=object))[::-1]]
    every = np.arange(points[0], points[-1] + 1)
    place = np.searchsorted(points, lattice.snap(every))
    rows = []
    for point in points:
        weights = np.zeros(len(points), dtype=object)
        start = span - int(point - points[0])
        np.add.at(weights, place, signed[start : start + span + 1])
        weights[0] += beyond[int(point - points[0])]
        weights[-1] += beyond[int(points[-1] - point)]
        rows.append(weights.tolist())
    return rows

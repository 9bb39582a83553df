"""Directions in two coordinates, rounded to integer points: exact probabilities by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

NODES: Final = 16
"""Nodes of the Gauss-Legendre rule on every arc; as arcs are short, it is exact to the last digits."""
Angles = Float64[np.ndarray, "..."]


@dataclass(frozen=True)
class Circle:
    """The integer points next to a circle of integer `radius`, and the arcs of angles that round to them."""

    radius: int

    @cached_property
    def cuts(self) -> Float64[np.ndarray, " arcs"]:
        """The angles, from -π/2 to 3π/2, at which the rounding of a coordinate changes; closed."""
        halves = np.arange(-self.radius, self.radius) + 0.5
        sines, cosines = np.arcsin(halves / self.radius), np.arccos(halves / self.radius)
        turns = np.concatenate([cosines, -cosines, sines, math.pi - sines])
        around = np.unique(np.mod(turns + math.pi / 2, 2 * math.pi)) - math.pi / 2
        return np.concatenate([around, around[:1] + 2 * math.pi])

    @cached_property
    def arcs(self) -> Int64[np.ndarray, "arcs 2"]:
        """The point to which every arc is rounded."""
        middle = (self.cuts[1:] + self.cuts[:-1]) / 2
        places = self.radius * np.stack([np.cos(middle), np.sin(middle)], axis=1)
        points: Int64[np.ndarray, "arcs 2"] = np.rint(places).astype(np.int64)
        return points

    @cached_property
    def cells(self) -> Int64[np.ndarray, "cells 2"]:
        """All possible points, once each."""
        return np.unique(self.arcs, axis=0)

    def cells_of(self, points: Int64[np.ndarray, "n 2"]) -> Int64[np.ndarray, " n"]:
        """Return the index of every point's cell, -1 for impossible points."""
        known, keys = self._keys(self.cells), self._keys(points)
        at = np.searchsorted(known, keys).clip(max=len(known) - 1)
        inside = (np.abs(points) <= self.radius).all(axis=1)
        return np.where((known[at] == keys) & inside, at, -1)

    def logs(self, density: Callable[[Angles], Angles]) -> Float64[np.ndarray, " cells"]:
        """Return the log probability of every cell under a density of angles, which need not be
        normalised.
        """
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = (self.cuts[1:] - self.cuts[:-1]) / 2
        middle = (self.cuts[1:] + self.cuts[:-1]) / 2
        arcs = half * (density(middle[:, None] + half[:, None] * nodes) @ weights)
        masses = np.bincount(self.cells_of(self.arcs), arcs, len(self.cells))
        with np.errstate(divide="ignore"):
            logs: Float64[np.ndarray, " cells"] = np.log(masses / masses.sum())
        return logs

    def _keys(self, points: Int64[np.ndarray, "n 2"]) -> Int64[np.ndarray, " n"]:
        moved = points + self.radius
        keys: Int64[np.ndarray, " n"] = moved[:, 0] * (2 * self.radius + 1) + moved[:, 1]
        return keys

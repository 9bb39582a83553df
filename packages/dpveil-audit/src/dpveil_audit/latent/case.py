"""Latent mechanisms: small code spaces, and codes whose releases have to be alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.codecs import Bounds
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Number, show
from dpveil.mechanisms.latent import Directional, LatentMechanism, PCABasis
from dpveil_audit.engine import Outcomes

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

    def chances(self, density: Callable[[Angles], Angles]) -> Float64[np.ndarray, " cells"]:
        """Return the probability of every cell under a density of angles, normalised here."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = (self.cuts[1:] - self.cuts[:-1]) / 2
        middle = (self.cuts[1:] + self.cuts[:-1]) / 2
        arcs = half * (density(middle[:, None] + half[:, None] * nodes) @ weights)
        masses = np.bincount(self.cells_of(self.arcs), arcs, len(self.cells))
        chances: Float64[np.ndarray, " cells"] = masses / masses.sum()
        return chances

    def _keys(self, points: Int64[np.ndarray, "n 2"]) -> Int64[np.ndarray, " n"]:
        moved = points + self.radius
        keys: Int64[np.ndarray, " n"] = moved[:, 0] * (2 * self.radius + 1) + moved[:, 1]
        return keys


SIDE: Final = 1 << 16
"""Steps of a side of the box, independent of the mechanisms' own constant."""
Code = tuple[float, ...]
Codes = Float64[np.ndarray, "n m"]


@dataclass(frozen=True)
class AuditSpace:
    """A public box without a codec; `energy`, deviations (`spread`) and the usual radius (`far`) as given."""

    low: Code
    high: Code
    energy: Code
    spread: Code | None = None
    far: float = 0.5

    @property
    def length(self) -> int:
        """The number of coordinates of a code."""
        return len(self.low)

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """Squared grey levels in the picture per squared unit of each coordinate."""
        return np.array(self.energy)

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        """Standard deviations of the principal components."""
        return None if self.spread is None else np.array(self.spread)

    def radius(self, clip: Number = 0) -> float:
        """Return the usual distance from the centre, in half sides."""
        return self.far

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return the box; each per cent of `clip` removes a hundredth at both ends of every side."""
        low, high = np.array(self.low), np.array(self.high)
        cut = float(Fraction(clip)) / 100 * (high - low)
        return Bounds(low + cut, high - cut)


@dataclass(frozen=True)
class LatentCase:
    """One mechanism in one space, and the codes whose releases are distinguished."""

    mechanism: LatentMechanism
    space: AuditSpace
    codes: tuple[Code, ...]

    @cached_property
    def box(self) -> Bounds:
        """The public box."""
        return self.space.bounds(self.mechanism.clip)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The promise."""
        return self.mechanism.guarantee(self.space)

    @cached_property
    def circle(self) -> Circle | None:
        """The possible releases of a direction in two coordinates."""
        return Circle(round(self.space.far * SIDE / 2)) if isinstance(self.mechanism, Directional) else None

    @cached_property
    def coordinates_read(self) -> int:
        """How many leading coordinates are read: all except for pca-basis, where it is searched for."""
        method, spread = self.mechanism, self.space.spread
        if not isinstance(method, PCABasis) or spread is None:
            return self.space.length
        needed = self.box.width / float(Fraction(method.epsilon))
        room = [float(Fraction(method.ratio)) * deviation for deviation in spread]
        good = [c for c in range(1, len(room) + 1) if all(c * needed[i] < room[i] for i in range(c))]
        return max(good)

    def points(self, code: Code, *, clipped: bool = True) -> list[int]:
        """Return a code in steps from the lower end of every side."""
        inside = self.box.clip(np.array([code])) if clipped else np.array([code])
        return [int(step) for step in np.rint((inside[0] - self.box.low) / self.box.width * SIDE)]

    def direction(self, code: Code) -> tuple[float, float]:
        """Return a code of two coordinates relative to the centre, in half sides."""
        x, y = (2 * step / SIDE - 1 for step in self.points(code))
        return (x, y) if (x, y) != (0.0, 0.0) else (1.0, 0.0)

    def distance(self, first: Code, second: Code) -> float:
        """Return the distance of two codes in the mechanism's metric, by its definition."""
        if self.circle is not None:
            ends = [np.array(self.direction(code)) for code in (first, second)]
            return math.dist(*(end / math.hypot(*end) for end in ends))
        moved = [abs(a - b) for a, b in zip(self.points(first), self.points(second), strict=True)]
        return sum(moved[: self.coordinates_read]) / SIDE / self.coordinates_read

    def read(self, released: Codes) -> Outcomes:
        """Return the outcome of every part; -1 off the grid of the public box."""
        steps = (released - self.box.low) / self.box.width * SIDE
        whole = np.rint(steps)
        good = (np.abs(steps - whole) < 1e-6) & (whole >= 0) & (whole <= SIDE)
        points: Outcomes = np.where(good, whole, -1).astype(np.int64)
        if self.circle is not None:
            points = self.circle.cells_of(points - SIDE // 2)[:, None]
        return points

    def __str__(self) -> str:
        method = self.mechanism
        budget = {"epsilon": "ε", "rho": "ρ"}
        names = [f"{budget.get(k, k)} = {show_plain(v)}" for k, v in method.parameters().items()]
        return f"{self.space.length} coordinates, {', '.join(names)}"


def show_plain(value: Any) -> str:
    """Return a parameter as text."""
    return value if isinstance(value, str) and not value[:1].isdigit() else show(Fraction(value))

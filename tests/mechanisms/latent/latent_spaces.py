"""Code spaces without a codec, and the exact laws of what is drawn in them, from the written formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dpveil.codecs import Bounds


@dataclass(frozen=True)
class Space:
    """A box, and how much a unit of each coordinate weighs in the picture."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    energy: tuple[float, ...] | None = None
    spread: tuple[float, ...] | None = None
    far: float = 0.5

    @property
    def length(self) -> int:
        return len(self.low)

    @property
    def column_energy(self) -> np.ndarray:
        return np.ones(self.length) if self.energy is None else np.array(self.energy)

    @property
    def deviations(self) -> np.ndarray | None:
        return None if self.spread is None else np.array(self.spread)

    def radius(self, clip: Any = 0) -> float:
        return self.far

    def bounds(self, clip: Any = 0) -> Bounds:
        """Each per cent takes a hundredth of the width from each side."""
        low, high = np.array(self.low), np.array(self.high)
        cut = float(clip) / 100 * (high - low)
        return Bounds(low + cut, high - cut)


UNEVEN = Space((-1.0, 2.0, 0.0), (1.0, 12.0, 0.25), (1.0, 0.5, 40.0), (0.4, 2.0, 0.05))
FLAT = Space((0.0, -3.0), (1.0, 5.0), spread=(0.25, 2.0))


def clipped_law(at: int, scale: Fraction | float, steps: int) -> np.ndarray:
    """P(outcome) for 0..steps: a discrete Laplace draw around `at`, outcomes beyond counted to the ends."""
    r = math.exp(-1 / float(scale))
    far = np.arange(-at, steps - at + 1)
    law = (1 - r) / (1 + r) * r ** np.abs(far).astype(float)
    law[0] = r**at / (1 + r) if at else 1 / (1 + r)
    law[-1] = r ** (steps - at) / (1 + r) if at < steps else 1 / (1 + r)
    return law


def worst(scales: Any, steps: int) -> tuple[float, float]:
    """The largest log-ratio over every two points of the grid and every outcome, and over d as well.

    `scales` gives the scale of each coordinate at a point, in steps: the same everywhere, if it is sound.
    d is the mean of the differences of two points as parts of the box.
    """
    m = len(scales((0,) * 64))
    points, every = list(product(range(steps + 1), repeat=m)), []
    for point in points:
        laws = [np.log(clipped_law(at, scale, steps)) for at, scale in zip(point, scales(point), strict=True)]
        total = laws[0]
        for law in laws[1:]:
            total = np.add.outer(total, law)
        every.append(total.ravel())
    logs, places, most, per_distance = np.array(every), np.array(points), 0.0, 0.0
    for row, at in zip(logs, places, strict=True):
        ratios, distances = (row - logs).max(axis=1), np.abs(at - places).mean(axis=1) / steps
        others = distances > 0
        most = max(most, float(ratios.max()))
        per_distance = max(per_distance, float((ratios[others] / distances[others]).max()))
    return most, per_distance

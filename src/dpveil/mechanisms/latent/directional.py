"""Private directions of codes by the von Mises-Fisher distribution."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from dpveil.core.guarantee import Scope
from dpveil.core.parameters import Positive
from dpveil.mechanisms.latent.base import STEPS, TIME, CodeSpace, LatentMechanism, Points
from dpveil.noise.bits import BitSource
from dpveil.noise.spherical import check, von_mises_fisher

MIDDLE: Final = STEPS // 2  # the centre of the box, in steps of the grid
METRIC: Final = (
    "chord between the directions in which codes lie from the middle of the box, in half sides, {grid}"
)


@dataclass(frozen=True, kw_only=True)
class Directional(LatentMechanism):
    """The direction μ of a code from the centre of the box is drawn anew, with density ∝ e^(ε·⟨x, μ⟩).

    Promises ε·d for any two codes, where d is the chord between their directions: at most 2, so 2ε for any
    two inputs. Coordinates count in half sides of the box. The distance of a code from the centre is not
    used: the draw is placed at the median distance of the public training codes. A code at the centre has the
    direction of the first coordinate. Fields as in `LatentMechanism`; `epsilon`, the concentration κ of the
    von Mises-Fisher distribution, is for d = 1. Source: Weggenmann & Kerschbaum 2021; Wood 1994.

    *Proof.* A code's direction is exactly μ = v/‖v‖ for an integer vector v, and the draw is a rounded exact
    draw for this μ. The normalising constant is the same for all directions, so log-ratios are ε·⟨x, μ - μ′⟩
    ≤ ε·‖μ - μ′‖ = ε·d. ∎
    """

    name: ClassVar[str] = "directional"
    kind: ClassVar[str] = "metric"
    metric: ClassVar[str | None] = "chord"
    diameter: ClassVar[int | None] = 2
    summary: ClassVar[str] = "the direction of a code drawn anew, by the chord between directions"
    source: ClassVar[str] = "Weggenmann & Kerschbaum 2021; Wood 1994"

    epsilon: Positive = Positive()

    @property
    def distance(self) -> str:
        """The definition of d in words."""
        return METRIC.format(grid=self.grid)

    def prepare(self, space: CodeSpace) -> None:
        """Raise `NoiseError` if no draw is possible."""
        check(space.length, Fraction(self.epsilon))

    def scope(self, space: CodeSpace) -> Scope:
        """Return the scope: the direction only, as the distance from the centre is not released."""
        covers = f"the direction of the code of {space.length} coordinates"
        return Scope(covers, (TIME,))

    def radius(self, space: CodeSpace) -> Fraction:
        """Return the distance from the centre at which draws are placed, in steps: a public number."""
        return Fraction(max(1, round(space.radius(self.clip) * MIDDLE)))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out, radius, epsilon = np.empty_like(points), self.radius(space), Fraction(self.epsilon)
        for row, point in enumerate(points - MIDDLE):
            towards = [int(step) for step in point]
            if not any(towards):
                towards[0] = 1
            out[row] = [MIDDLE + step for step in von_mises_fisher(towards, epsilon, radius, bits)]
        return out

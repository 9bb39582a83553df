"""A noisy direction of a code, from the von Mises-Fisher distribution."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from dpveil.core.guarantee import Scope
from dpveil.core.parameters import Positive
from dpveil.mechanisms.latent.base import STEPS, TIME, CodeSpace, LatentMechanism, Points
from dpveil.noise.bits import BitSource
from dpveil.noise.directional import check, von_mises_fisher

MIDDLE: Final = STEPS // 2
METRIC: Final = (
    "chord between the directions in which codes lie from the middle of the box, in half sides, {grid}"
)


@dataclass(frozen=True, kw_only=True)
class Directional(LatentMechanism):
    """The direction μ of a code from the middle of the box is drawn anew, with density ∝ e^(ε·⟨x, μ⟩).

    ε·d for any two codes, d being the chord between their directions: at most 2, so 2ε for any two inputs.
    Coordinates count in half sides of the box. How far a code lies from the middle is not used at all: what
    is drawn is put at the distance that half of the public training codes do not exceed. A code in the very
    middle has the direction of the first coordinate. Fields as in `LatentMechanism`; `epsilon`, the
    concentration κ of von Mises and Fisher's law, is for d = 1.
    Source: Weggenmann & Kerschbaum 2021; Wood 1994.

    *Proof.* A code's direction μ is v/‖v‖ for a vector v of whole numbers, and the draw is that of exactly
    this μ, rounded. The law's normaliser is the same for all directions, so log-ratios are
    ε·⟨x, μ - μ′⟩ ≤ ε·‖μ - μ′‖ = ε·d. ∎
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
        """What d is."""
        return METRIC.format(grid=self.grid)

    def prepare(self, space: CodeSpace) -> None:
        """Raise `NoiseError` where nothing can be drawn."""
        check(space.length, Fraction(self.epsilon))

    def scope(self, space: CodeSpace) -> Scope:
        """Return the direction and what is shown beside it: of the distance nothing is."""
        covers = f"the direction of the code of {space.length} coordinates"
        return Scope(covers, (TIME,))

    def radius(self, space: CodeSpace) -> Fraction:
        """Return how far from the middle what is drawn is put, in steps: a public number."""
        return Fraction(max(1, round(space.radius(self.clip) * MIDDLE)))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out, radius, epsilon = np.empty_like(points), self.radius(space), Fraction(self.epsilon)
        for row, point in enumerate(points - MIDDLE):
            towards = [int(step) for step in point]
            if not any(towards):
                towards[0] = 1
            out[row] = [MIDDLE + step for step in von_mises_fisher(towards, epsilon, radius, bits)]
        return out

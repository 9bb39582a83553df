"""Discrete Gaussian noise on every coordinate of a bounded code, in zero-concentrated privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpveil.core.guarantee import Guarantee, Relation
from dpveil.core.parameters import Positive
from dpveil.mechanisms.latent.base import STEPS, CodeSpace, LatentMechanism, Points
from dpveil.mechanisms.latent.shares import optimal_gaussian, whole
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import checked, discrete_gaussian


@dataclass(frozen=True, kw_only=True)
class BoxGaussian(LatentMechanism):
    """Discrete Gaussian noise whose ρ_i sum to ρ, ρ_i ∝ S_i·√W_i, then snapped to the box.

    ρ-zCDP for any two inputs. The shares make the picture's squared error least, from public numbers only.
    Fields as in `LatentMechanism`; `rho` is ρ. Source: Canonne, Kamath & Steinke 2020; docs, "Latent".

    *Proof.* A coordinate moves by at most 2^16 steps and gets variance 2^32/(2ρ_i): ρ_i each. ∎
    """

    name: ClassVar[str] = "box-gaussian"
    kind: ClassVar[str] = "zcdp"
    summary: ClassVar[str] = "discrete Gaussian noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020"

    rho: Positive = Positive()

    def guarantee(self, space: CodeSpace) -> Guarantee:
        """Return ρ for any two inputs."""
        return Guarantee(kind="zcdp", rho=self.rho, relation=Relation("latent-cell"), scope=self.scope(space))

    def prepare(self, space: CodeSpace) -> None:
        """Raise `NoiseError` where the noise cannot be drawn."""
        for variance in self.variances(space):
            checked(variance)

    def variances(self, space: CodeSpace) -> tuple[Fraction, ...]:
        """Return the variance parameter of every coordinate, in steps squared."""
        box = space.bounds(self.clip)
        shares = whole(optimal_gaussian(box.high - box.low, space.column_energy))
        return tuple(STEPS**2 / (2 * share * Fraction(self.rho)) for share in shares)

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        drawn = [
            column + discrete_gaussian(variance, len(column), bits)
            for variance, column in zip(self.variances(space), points.T, strict=True)
        ]
        return np.stack(drawn, axis=1)

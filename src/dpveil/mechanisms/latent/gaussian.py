"""Discrete Gaussian noise on every coordinate of a bounded code, under zCDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpveil.core.parameters import Positive
from dpveil.mechanisms.latent.base import STEPS, CodeSpace, LatentMechanism, Points
from dpveil.mechanisms.latent.posterior import Law, optimal_gaussian, rounded_up, whole
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import checked, discrete_gaussian


@dataclass(frozen=True, kw_only=True)
class BoxGaussian(LatentMechanism):
    """Discrete Gaussian noise with shares ρ_i ∝ S_i·√W_i that sum to ρ, then clipped to the box.

    Promises ρ-zCDP for any two inputs. The shares minimise the squared error of the picture, from public
    numbers only. Fields as in `LatentMechanism`; `rho` is ρ. Source: Canonne, Kamath & Steinke 2020; docs,
    "Latent".

    *Proof.* A coordinate changes by at most 2^16 steps and gets variance 2^32/(2ρ_i), which costs ρ_i. ∎
    """

    name: ClassVar[str] = "box-gaussian"
    kind: ClassVar[str] = "zcdp"
    summary: ClassVar[str] = "discrete Gaussian noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020"

    rho: Positive = Positive()

    def prepare(self, space: CodeSpace) -> None:
        """Raise `NoiseError` if the noise cannot be drawn."""
        for variance in self.variances(space):
            checked(variance)

    def variances(self, space: CodeSpace) -> tuple[Fraction, ...]:
        """Return the variance parameter of every coordinate, in steps squared."""
        box = space.bounds(self.clip)
        shares = whole(optimal_gaussian(box.high - box.low, space.column_energy))
        return tuple(rounded_up(STEPS**2 / (2 * share * Fraction(self.rho))) for share in shares)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        """Return the law of every coordinate."""
        return tuple(Law("gaussian", math.sqrt(variance) / STEPS) for variance in self.variances(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out, variances = points.copy(), self.variances(space)
        for variance in dict.fromkeys(variances):
            columns = [i for i, own in enumerate(variances) if own == variance]
            noise = discrete_gaussian(variance, len(points) * len(columns), bits)
            out[:, columns] += noise.reshape(len(points), len(columns))
        return out

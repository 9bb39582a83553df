"""Noise on the leading principal components of a code, as many as the budget affords."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from dpveil.core.arrays import Float64
from dpveil.core.numbers import Distance, show, to_json
from dpveil.core.parameters import Positive
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.latent.base import LIKELY, SNAPPED, STEPS, CodeSpace, LatentMechanism, Points
from dpveil.mechanisms.latent.laplace import noisy
from dpveil.mechanisms.latent.posterior import Law
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import digit_tables

METRIC: Final = (
    "mean of |z_i - z′_i| / (high_i - low_i) over the leading principal components that epsilon {epsilon}"
    " affords at ratio {ratio}, {grid}; 0 for codes that differ in the others only"
)
Sides = Float64[np.ndarray, " m"]


def affordable(width: Sides, deviations: Sides, ratio: Fraction, epsilon: Fraction) -> int:
    """Return the largest c with c·width_i/ε < ratio·s_i for all i ≤ c, or 0.

    With c components, the noise on the i-th has scale c·width_i/ε, which should be small compared with its
    standard deviation s_i. As c grows, the left side grows and more components have to satisfy the condition,
    so it holds up to some c and then fails. Source: Croft thesis algorithm 1, as intended (errata E6).

    >>> affordable(np.array([8.0, 8.0, 8.0]), np.array([1.0, 1.0, 0.4]), Fraction(3, 2), Fraction(15))
    2
    """
    room = np.minimum.accumulate(float(ratio * epsilon) * deviations / width)
    return int(np.count_nonzero(np.arange(1, len(room) + 1) < room))


@dataclass(frozen=True, kw_only=True)
class PCABasis(LatentMechanism):
    """Laplace noise on the leading principal components; all others are replaced by their mean.

    Each of c components gets noise of scale c·(high_i - low_i)/ε, where c is the largest number for which
    this is below `ratio` times the standard deviation of every one of them. Promises ε·d for any two codes,
    where d is the mean difference of these components relative to the box: at most 1. It is 0 for codes that
    differ in dropped components only: they have the same release. Fields as in `LatentMechanism`; `epsilon`
    is for d = 1. Source: Croft thesis §6.5 with algorithm 1 corrected (errata E6); theorem 8.

    *Proof.* Clipping is to a box of the components themselves, so c coordinates get noise as in
    `croft-metric`. The others are not read, and c follows from public numbers only. ∎
    """

    name: ClassVar[str] = "pca-basis"
    kind: ClassVar[str] = "metric"
    metric: ClassVar[str | None] = "leading-mean"
    diameter: ClassVar[int | None] = 1
    summary: ClassVar[str] = "Laplace noise on as many principal components as the budget affords"
    source: ClassVar[str] = "Croft thesis §6.5, errata E6"
    codes: ClassVar[tuple[str, ...]] = (SNAPPED, LIKELY)

    epsilon: Positive = Positive()
    ratio: Positive = Positive(default=Fraction(3, 2))

    @property
    def distance(self) -> str:
        """The definition of d in words; it depends on ε, as another ε keeps other components."""
        epsilon, ratio = to_json(Fraction(self.epsilon)), to_json(Fraction(self.ratio))
        return METRIC.format(epsilon=epsilon, ratio=ratio, grid=self.grid)

    def distance_data(self, codec: str) -> Distance | None:
        """Return the distance as data; it includes ε and the ratio, which decide on the components kept."""
        plain = super().distance_data(codec)
        if plain is None:
            return None
        own = {"epsilon": to_json(Fraction(self.epsilon)), "ratio": to_json(Fraction(self.ratio))}
        return Distance.of(plain.name, **dict(plain.settings), **own)

    def prepare(self, space: CodeSpace) -> None:
        """Raise `InvalidParameter` if no component is affordable, and `NoiseError` if the noise cannot be
        drawn.
        """
        digit_tables(self.scale(space))

    def number_of_components(self, space: CodeSpace) -> int:
        """Return how many leading components are kept. Raises `InvalidParameter` if none is affordable."""
        deviations = space.deviations
        if deviations is None:
            raise InvalidParameter(
                "mechanism",
                self.name,
                "needs a code of principal components",
                hint="use a pca codec, or croft-metric",
            )
        box = space.bounds(self.clip)
        ratio, epsilon = Fraction(self.ratio), Fraction(self.epsilon)
        count = affordable(box.high - box.low, deviations, ratio, epsilon)
        if count == 0:
            least = float((box.high[0] - box.low[0]) / deviations[0]) / float(ratio)
            raise InvalidParameter(
                "epsilon",
                show(epsilon),
                "affords no component",
                hint=f"take more than {least:.4g}, or a larger ratio than {show(ratio)}",
            )
        return count

    def scale(self, space: CodeSpace) -> Fraction:
        """Return the noise scale in steps."""
        return self.number_of_components(space) * STEPS / Fraction(self.epsilon)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        """Return the law of every coordinate: those that are dropped say nothing."""
        count = self.number_of_components(space)
        own = Law("laplace", float(self.scale(space) / STEPS))
        return (own,) * count + (Law("none"),) * (space.length - count)

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        count, box = self.number_of_components(space), space.bounds(self.clip)
        means = np.clip(np.rint(-box.low / (box.high - box.low) * STEPS), 0, STEPS).astype(np.int64)
        out: Points = np.tile(means, (len(points), 1))
        out[:, :count] = noisy(points[:, :count], (self.scale(space),) * count, bits)
        return out

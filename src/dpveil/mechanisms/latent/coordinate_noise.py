"""Laplace noise on every coordinate of a code: sound versions of Croft, Li & Clifton, and FaceIDP."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64
from dpveil.core.guarantee import Distance, Scope
from dpveil.core.parameters import Positive
from dpveil.core.rationals import show, to_json
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.latent.base import LIKELY, SNAPPED, STEPS, TIME, CodeSpace, LatentMechanism, Points
from dpveil.mechanisms.latent.posterior import (
    Allocation,
    Law,
    divide,
    optimal_gaussian,
    rational_shares,
    rounded_up,
)
from dpveil.mechanisms.scalar.base import DATABASE_RECORD
from dpveil.mechanisms.scalar.laplace import TruncatedLaplace
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import check_variance, discrete_gaussian
from dpveil.noise.laplace import digit_tables, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class BoxGaussian(LatentMechanism):
    """Discrete Gaussian noise with shares ρ_i ∝ S_i·√W_i that sum to ρ, then clipped to the box.

    Promises ρ-zCDP for any two inputs. The shares minimise the picture's squared error, from public numbers
    only. Fields as in `LatentMechanism`; `rho` is ρ. Source: Canonne, Kamath & Steinke 2020; docs, "Latent".

    *Proof.* A coordinate changes by at most 2^16 steps and gets variance 2^32/(2ρ_i), which costs ρ_i. ∎
    """

    name: ClassVar[str] = "box-gaussian"
    kind: ClassVar[str] = "zcdp"
    summary: ClassVar[str] = "discrete Gaussian noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020"
    codes: ClassVar[tuple[str, ...]] = (LIKELY, SNAPPED)

    rho: Positive = Positive()

    def prepare(self, space: CodeSpace) -> None:
        for variance in self.variances(space):
            check_variance(variance)

    def variances(self, space: CodeSpace) -> tuple[Fraction, ...]:
        box = space.bounds(self.clip)
        shares = rational_shares(optimal_gaussian(box.high - box.low, space.column_energy))
        return tuple(rounded_up(STEPS**2 / (2 * share * Fraction(self.rho))) for share in shares)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        return tuple(Law("gaussian", math.sqrt(variance) / STEPS) for variance in self.variances(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out, variances = points.copy(), self.variances(space)
        for variance in dict.fromkeys(variances):
            columns = [i for i, own in enumerate(variances) if own == variance]
            noise = discrete_gaussian(variance, len(points) * len(columns), bits)
            out[:, columns] += noise.reshape(len(points), len(columns))
        return out


@dataclass(frozen=True, kw_only=True)
class BoxTruncatedLaplace(LatentMechanism):
    """Each coordinate is drawn from a Laplace law truncated to the box and normalised for its own position.

    Promises ε for any two inputs, divided by `allocation` as in `box-laplace`: coordinate i gets w_i·ε, at
    the smallest scale that a range with two ends allows, (high_i - low_i)/(w_i·ε). Fields as in
    `LatentMechanism`. Source: Croft thesis §5.1, thesis theorem 4 (errata E1); the family of
    `mechanisms.scalar`.

    *Proof.* Let f(a) be the sum of e^(-|y - a|/s) over the side. For a < b log-ratios are largest at y ≤ a,
    where they are (b - a)/s + ln f(b) - ln f(a), or symmetrically at y ≥ b. f changes by at most a factor
    e^(±1/s) per step, so this grows with b and falls with a: the two ends, where f is the same, are the
    worst, with 2^16/s. ∎
    """

    name: ClassVar[str] = "box-truncated-laplace"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "truncated Laplace noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Croft thesis §5.1, errata E1"
    codes: ClassVar[tuple[str, ...]] = (LIKELY, SNAPPED)

    epsilon: Positive = Positive()
    allocation: Allocation = Allocation(default="optimal")

    def scope(self, space: CodeSpace) -> Scope:
        """Return the scope, which adds that the time of a draw is revealed."""
        plain = super().scope(space)
        return replace(plain, in_the_clear=(*plain.in_the_clear, TIME))

    def prepare(self, space: CodeSpace) -> None:
        for one in self.coordinates(space):
            one.prepare()

    def coordinates(self, space: CodeSpace) -> tuple[TruncatedLaplace, ...]:
        box = space.bounds(self.clip)
        shares = divide(self.allocation, box.high - box.low, space.column_energy)
        return tuple(_coordinate(1 / rounded_up(1 / (share * Fraction(self.epsilon)))) for share in shares)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        return tuple(Law("truncated", float(1 / Fraction(one.epsilon))) for one in self.coordinates(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out = points.copy()
        alike: dict[TruncatedLaplace, list[int]] = {}
        for column, one in enumerate(self.coordinates(space)):
            alike.setdefault(one, []).append(column)
        for one, columns in alike.items():
            drawn = one.draw(points[:, columns].ravel(), bits)
            out[:, columns] = drawn.reshape(len(points), len(columns))
        return out


@lru_cache(maxsize=1024)
def _coordinate(epsilon: Fraction) -> TruncatedLaplace:
    """Return the mechanism of a coordinate: for one face, making it takes longer than drawing."""
    return TruncatedLaplace(
        range=(0, STEPS), sensitivity=STEPS, epsilon=epsilon, relation=DATABASE_RECORD, step=1
    )


METRIC: Final = "mean of |z_i - z′_i| / (high_i - low_i) over the code, {grid}"


def noisy(points: Points, scales: tuple[Fraction, ...], bits: BitSource) -> Points:
    """Return points plus discrete Laplace noise; `scales`, in steps, has one entry per coordinate."""
    out = points.copy()
    for scale in dict.fromkeys(scales):
        columns = [i for i, own in enumerate(scales) if own == scale]
        noise = discrete_laplace(scale, len(points) * len(columns), bits)
        out[:, columns] += noise.reshape(len(points), len(columns))
    return out


@dataclass(frozen=True, kw_only=True)
class CroftMetric(LatentMechanism):
    """Laplace noise of scale m·(high_i - low_i)/ε on each of m coordinates, then clipped to the box.

    Promises ε·d for any two codes, where d is the mean of their differences relative to the box: at most 1,
    so ε for any two inputs, and far less for similar ones. Fields as in `LatentMechanism`; `epsilon` is for d
    = 1. Source: Croft 2022 theorem 1; Croft thesis theorem 8.

    *Proof.* In grid steps, coordinate i gets discrete Laplace noise of scale m·2^16/ε, so two codes that
    differ by Δ_i steps have log-ratios of at most Σ Δ_i·ε/(m·2^16) = ε·d. Clipping is post-processing. ∎
    """

    name: ClassVar[str] = "croft-metric"
    kind: ClassVar[str] = "metric"
    metric: ClassVar[str | None] = "box-mean"
    diameter: ClassVar[int | None] = 1
    summary: ClassVar[str] = "Laplace noise on every coordinate, by the distance of codes"
    source: ClassVar[str] = "Croft 2022 theorem 1, Croft thesis theorem 8"
    codes: ClassVar[tuple[str, ...]] = (LIKELY, SNAPPED)

    epsilon: Positive = Positive()

    @property
    def distance(self) -> str:
        """The definition of d in words."""
        return METRIC.format(grid=self.grid)

    def prepare(self, space: CodeSpace) -> None:
        digit_tables(self.scales(space)[0])

    def scales(self, space: CodeSpace) -> tuple[Fraction, ...]:
        return (space.length * STEPS / Fraction(self.epsilon),) * space.length

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        return tuple(Law("laplace", float(scale / STEPS)) for scale in self.scales(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        return noisy(points, self.scales(space), bits)


@dataclass(frozen=True, kw_only=True)
class BoxLaplace(LatentMechanism):
    """Laplace noise of scale (high_i - low_i)/(w_i·ε) with Σ w_i = 1, then clipped to the box.

    Promises ε for any two inputs. `allocation` "equal" is w_i = 1/m; "optimal" minimises the squared error of
    the picture, w_i ∝ W_i^(1/3)·S_i^(2/3), from public numbers; or weights by hand: see `Allocation`. Fields
    as in `LatentMechanism`. Source: Li & Clifton 2021 algorithm 2 (errata E7); FaceIDP eq. 19 (errata E4).

    *Proof.* A coordinate moves by 2^16 steps at most and gets noise of scale 2^16/(w_i·ε): this costs w_i·ε.
    ∎
    """

    name: ClassVar[str] = "box-laplace"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "Laplace noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Li & Clifton 2021 algorithm 2, FaceIDP eq. 19, errata E4 and E7"
    codes: ClassVar[tuple[str, ...]] = (LIKELY, SNAPPED)

    epsilon: Positive = Positive()
    allocation: Allocation = Allocation(default="optimal")

    def prepare(self, space: CodeSpace) -> None:
        for scale in set(self.scales(space)):
            digit_tables(scale)

    def shares(self, space: CodeSpace) -> tuple[Fraction, ...]:
        """Return the shares w of the budget, which sum to 1."""
        box = space.bounds(self.clip)
        return divide(self.allocation, box.high - box.low, space.column_energy)

    def scales(self, space: CodeSpace) -> tuple[Fraction, ...]:
        """Return the noise scale of every coordinate, in steps, rounded up to few different values."""
        return tuple(rounded_up(STEPS / (share * Fraction(self.epsilon))) for share in self.shares(space))

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        return tuple(Law("laplace", float(scale / STEPS)) for scale in self.scales(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        return noisy(points, self.scales(space), bits)


LEADING_METRIC: Final = (
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
        return LEADING_METRIC.format(epsilon=epsilon, ratio=ratio, grid=self.grid)

    def distance_data(self, codec: str) -> Distance | None:
        """Return the distance as data; it includes ε and the ratio, which decide on the components kept."""
        plain = super().distance_data(codec)
        if plain is None:
            return None
        own = {"epsilon": to_json(Fraction(self.epsilon)), "ratio": to_json(Fraction(self.ratio))}
        return Distance.of(plain.name, **dict(plain.settings), **own)

    def prepare(self, space: CodeSpace) -> None:
        """Raise `InvalidParameter` if no component is affordable, `NoiseError` if noise cannot be drawn."""
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
        return self.number_of_components(space) * STEPS / Fraction(self.epsilon)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        count = self.number_of_components(space)
        own = Law("laplace", float(self.scale(space) / STEPS))
        return (own,) * count + (Law("none"),) * (space.length - count)

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        count, box = self.number_of_components(space), space.bounds(self.clip)
        means = np.clip(np.rint(-box.low / (box.high - box.low) * STEPS), 0, STEPS).astype(np.int64)
        out: Points = np.tile(means, (len(points), 1))
        out[:, :count] = noisy(points[:, :count], (self.scale(space),) * count, bits)
        return out

"""Divergences of exact distributions: Rényi, and hockey-stick from privacy loss distributions.

Written independently of the accountants that they check. A loss between two points of the grid is split
between them so that its mass and the mean of e^-loss stay: every hockey-stick divergence, a convex function
of e^-loss, can only grow (Doroshenko et al. 2022). So the result is never below the truth, up to the rounding
of 64-bit Fourier transforms (about 1e-15). Losses of discrete Laplace noise are multiples of 1/scale, so a
grid of these is exact; for smooth distributions the error is of the order of the squared step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.signal import fftconvolve

from dpveil.core.numbers import float_above
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.laplace import discrete_laplace
from dpveil_audit.distributions import REACH, Distribution, gaussian_distribution, laplace_distribution


@dataclass(frozen=True)
class NoiseKind:
    """One family of integer noise with one parameter.

    `power` is the power of the noise's width to which the parameter is proportional (1 for a scale, 2 for a
    variance). `log_mass(z, parameter)` is ln P(z) up to a constant; beyond `reach(parameter)` from both true
    answers nothing distinguishes them. `pld(parameter, move, step)` asks `dp_accounting`. Every privacy loss
    is a multiple of `unit(parameter)`, unless that is None.
    """

    name: str
    power: int
    draw: Callable[[Fraction, int, BitSource], Int64[np.ndarray, " n"]]
    distribution: Callable[[Fraction], Distribution]
    log_mass: Callable[[Int64[np.ndarray, " n"], Fraction], Float64[np.ndarray, " n"]]
    reach: Callable[[Fraction], int]
    pld: Callable[[Fraction, int, float], Any]
    unit: Callable[[Fraction], float | None]


def _laplace_log_mass(z: Int64[np.ndarray, " n"], scale: Fraction) -> Float64[np.ndarray, " n"]:
    mass: Float64[np.ndarray, " n"] = -np.abs(z) / float(scale)
    return mass


@lru_cache(maxsize=256)
def _laplace_pld(scale: Fraction, move: int, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_discrete_laplace_mechanism(
        parameter=float_above(1 / scale),
        sensitivity=move,
        value_discretization_interval=step,
        use_connect_dots=True,
    )


@lru_cache(maxsize=256)
def _gaussian_pld(variance: Fraction, move: int, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_discrete_gaussian_mechanism(
        sigma=math.sqrt(variance), sensitivity=move, value_discretization_interval=step, use_connect_dots=True
    )


LAPLACE: Final = NoiseKind(
    name="discrete Laplace",
    power=1,
    draw=discrete_laplace,
    distribution=lru_cache(maxsize=256)(laplace_distribution),
    log_mass=_laplace_log_mass,
    reach=lambda scale: 0,
    pld=_laplace_pld,
    unit=lambda scale: 1 / float(scale),
)
GAUSSIAN: Final = NoiseKind(
    name="discrete Gaussian",
    power=2,
    draw=discrete_gaussian,
    distribution=lru_cache(maxsize=256)(gaussian_distribution),
    log_mass=lambda z, variance: -(z.astype(np.float64) ** 2) / (2 * float(variance)),
    reach=lambda variance: math.ceil(REACH * math.sqrt(variance)) + REACH,
    pld=_gaussian_pld,
    unit=lambda variance: None,
)


# Divergences of exact distributions: Rényi, and hockey-stick from privacy loss distributions.
#
# Written independently of the accountants that they check. A loss between two points of the grid is split
# between them so that its mass and the mean of e^-loss stay: every hockey-stick divergence, a convex
# function of e^-loss, can only grow (Doroshenko et al. 2022). So the result is never below the truth, up to
# the rounding of 64-bit Fourier transforms (about 1e-15). Losses of discrete Laplace noise are multiples of
# 1/scale, so a grid of these is exact; for smooth distributions the error is of the order of the squared
# step.

GRID: Final = 1 << 15
"""Points of the grid over the range of losses."""
SNAP: Final = 1e-6
"""Distance, in steps of the grid, within which a loss counts as a grid point."""
ORDERS: Final = (1.01, 1.1, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
"""Orders α at which a Rényi divergence is compared with ρ·α."""

Masses = Float64[np.ndarray, " outcomes"]
Move = tuple[tuple[int, Fraction], ...]
"""How far each true answer moves between two neighbours, with the parameter of its noise."""


@dataclass(frozen=True)
class LossDistribution:
    """A privacy loss distribution: `mass[i]` at (`start` + i)·`step`, and `infinite` at infinity."""

    step: float
    start: int
    mass: Masses
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at `epsilon`: the smallest valid δ."""
        losses = (self.start + np.arange(len(self.mass))) * self.step
        return self.infinite + float(np.sum(self.mass * -np.expm1(np.minimum(0.0, epsilon - losses))))

    def above(self, epsilon: float) -> float:
        """Return the probability of a loss above `epsilon`: that of the most telling event."""
        losses = (self.start + np.arange(len(self.mass))) * self.step
        return self.infinite + float(self.mass[losses > epsilon].sum())

    def plus(self, other: LossDistribution) -> LossDistribution:
        """Return the distribution of the sum of two independent losses on the same grid."""
        mass = fftconvolve(self.mass, other.mass).clip(0.0)
        infinite = 1 - (1 - self.infinite) * (1 - other.infinite)
        return LossDistribution(self.step, self.start + other.start, mass, infinite)


def loss_distribution(first: Masses, second: Masses, step: float) -> LossDistribution:
    """Return the distribution of ln(first/second) under `first`, two distributions over the same outcomes."""
    seen = (first > 0) & (second > 0)
    losses = np.log(first[seen]) - np.log(second[seen])
    nearest = np.rint(losses / step) * step
    losses = np.where(np.abs(losses - nearest) < SNAP * step, nearest, losses)
    lower = np.floor(losses / step + SNAP / 2).astype(np.int64)
    upward = (np.expm1(-(losses - lower * step)) / math.expm1(-step)).clip(0.0, 1.0)
    start = int(lower.min()) if len(lower) else 0
    size = int(lower.max()) - start + 2 if len(lower) else 1
    mass = np.bincount(lower - start, weights=first[seen] * (1 - upward), minlength=size)
    mass += np.bincount(lower - start + 1, weights=first[seen] * upward, minlength=size)
    return LossDistribution(step, start, mass, float(first[second == 0].sum()))


def compose(parts: Sequence[tuple[Masses, Masses]], unit: float | None = None) -> LossDistribution:
    """Return the privacy loss distribution of independent parts, each given by its laws under both inputs.

    `unit`, if given, is a multiple of the grid's step: all losses that matter are multiples of it.
    """
    span = sum(_largest(first, second) for first, second in parts)
    step = max(2 * span / GRID, 1e-12)
    if unit is not None:
        step = unit / math.ceil(unit / step)
    total = LossDistribution(step, 0, np.ones(1), 0.0)
    for first, second in parts:
        total = total.plus(loss_distribution(first, second, step))
    return total


def _largest(first: Masses, second: Masses) -> float:
    seen = (first > 0) & (second > 0)
    return float(np.abs(np.log(first[seen]) - np.log(second[seen])).max(initial=0.0))


def shifted_masses(kind: NoiseKind, parameter: Fraction, gap: int) -> tuple[Masses, Masses]:
    """Return the laws of noise and of noise moved by `gap`, over the outcomes that distinguish them.

    The first and the last outcome stand for the whole tail.
    """
    distribution, reach = kind.distribution(parameter), kind.reach(parameter)
    ends = np.arange(-reach, gap + reach + 1)
    return _bin_masses(distribution, ends), _bin_masses(distribution, ends - gap)


def _bin_masses(distribution: object, ends: Int64[np.ndarray, " n"]) -> Masses:
    masses: Masses = distribution.between(ends - 1, ends)  # type: ignore[attr-defined]
    masses[0] = distribution.cdf(ends[:1])[0]  # type: ignore[attr-defined]
    masses[-1] = distribution.survival(ends[-1:] - 1)[0]  # type: ignore[attr-defined]
    return masses


def move_loss(kind: NoiseKind, move: Move) -> LossDistribution:
    """Return the privacy loss distribution of one move: by symmetry the same in both directions."""
    return compose([shifted_masses(kind, p, gap) for gap, p in move], unit_of(kind, [p for _, p in move]))


def unit_of(kind: NoiseKind, parameters: Sequence[Fraction]) -> float | None:
    """Return a common divisor of all losses for this noise and these parameters, if there is one."""
    return kind.unit(parameters[0]) if len(set(parameters)) == 1 else None


@lru_cache(maxsize=100_000)
def renyi_of_shift(kind: NoiseKind, parameter: Fraction, gap: int, order: float) -> float:
    """Return D_α of noise from the same noise moved by `gap`, by direct summation in logarithms."""
    if not kind.reach(parameter):  # both tails have one loss each
        return float(renyi_of_masses(np.stack(shifted_masses(kind, parameter, gap)), order)[0, 1])
    reach = kind.reach(parameter) + math.ceil(order * gap)
    z = np.arange(-reach, reach + 1)
    own, moved = kind.log_mass(z, parameter), kind.log_mass(z - gap, parameter)
    return float(log_sum(order * own + (1 - order) * moved) - log_sum(own)) / (order - 1)


def renyi_of_masses(
    masses: Float64[np.ndarray, "distinct outcomes"], order: float
) -> Float64[np.ndarray, "distinct distinct"]:
    """Return D_α of every row from every other; infinite if the supports differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(masses)
        terms = order * logs[:, None] + (1 - order) * logs[None]
    terms = np.where(masses[:, None] > 0, terms, -np.inf)  # 0^α · 0^(1-α) is nothing
    table: Float64[np.ndarray, "distinct distinct"] = log_sum(terms) / (order - 1)
    return table


def log_sum(logs: Float64[np.ndarray, "*rows terms"]) -> Any:
    """Return the logarithm of the sum of e^logs over the last axis, ten times as fast as SciPy's."""
    most = np.max(logs, axis=-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)  # nothing at all, or something infinite
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - most).sum(axis=-1)) + most[..., 0]

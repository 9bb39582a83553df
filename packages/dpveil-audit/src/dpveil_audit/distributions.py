"""Distributions over the integers in closed form, independent of the samplers that they check."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.errors import InvalidParameter

Integers = Int64[np.ndarray, "..."]
Chances = Float64[np.ndarray, "..."]
Flags = Bool[np.ndarray, "..."]
T = TypeVar("T")

REACH: Final = 12  # standard deviations beyond which a Gaussian's tail, below 1e-32, is dropped
FARTHEST: Final = 2**61  # limit of the search for quantiles


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution of integers: `cdf(z)` = P(Z ≤ z) and `survival(z)` = P(Z > z), over int64 arrays.

    Each has a small relative error in its own tail, where one minus the other would cancel. `impossible(z)`
    tells which outcomes have probability 0.
    """

    cdf: Callable[[Integers], Chances]
    survival: Callable[[Integers], Chances]
    impossible: Callable[[Integers], Flags] = lambda z: np.zeros(z.shape, np.bool_)
    rate: float | None = None  # of exponential tails on both sides of 0
    kept: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return `make()`, computed once per key: what fits need of a distribution, whatever the sample."""
        if key not in self.kept:
            self.kept[key] = make()
        found: T = self.kept[key]
        return found

    def between(self, low: Integers, high: Integers) -> Chances:
        """Return P(low < Z ≤ high), from whichever tail is smaller."""
        if self.rate is not None:  # differences 300 scales out would be off by 1e-11 of themselves
            share = -np.expm1(-self.rate * (high - low))
            left, right = self.cdf(high) * share, self.survival(low) * share
            both = np.where(low >= 0, right, self.cdf(high) - self.cdf(low))
            return np.asarray(np.where(high < 0, left, both))
        left = self.cdf(high) - self.cdf(low)
        right = self.survival(low) - self.survival(high)
        return np.asarray(np.where(self.cdf(high) < 0.5, left, right))

    def quantile(self, chances: Chances) -> Integers:
        """Return the smallest z with P(Z ≤ z) at least each of `chances`, to about 1e-16."""
        return _first(lambda z: self.cdf(z) >= chances, chances.shape)

    def upper(self, chances: Chances) -> Integers:
        """Return the smallest z with P(Z > z) at most each of `chances`; accurate in the tail."""
        return _first(lambda z: self.survival(z) <= chances, chances.shape)


def _first(reached: Callable[[Integers], Flags], shape: tuple[int, ...]) -> Integers:
    """Return by bisection the smallest integers at which a monotone condition holds."""
    reach = 16
    while reach < FARTHEST and not (
        reached(np.full(shape, reach)).all() and not reached(np.full(shape, -reach)).any()
    ):
        reach *= 16
    low, high = np.full(shape, -reach), np.full(shape, reach)
    while (high - low > 1).any():
        middle = (low + high) // 2
        holds = reached(middle)
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high


def laplace_distribution(scale: Fraction | float | int) -> Distribution:
    """Return the discrete Laplace distribution P(z) ∝ exp(-|z|/scale). Source: Inusah & Kozubowski 2006.

    >>> round(float(laplace_distribution(Fraction(1)).survival(np.array([0]))[0]), 6)
    0.268941
    """
    rate = 1 / float(scale)
    total = 1 + math.exp(-rate)

    def tail(steps: Chances) -> Chances:  # P(Z ≥ steps) for steps ≥ 1
        return np.exp(-rate * steps) / total

    def survival(z: Integers) -> Chances:
        at = z.astype(np.float64)
        return np.where(z >= 0, tail(np.maximum(at + 1, 1)), 1 - tail(np.maximum(-at, 1)))

    return Distribution(cdf=lambda z: survival(-z - 1), survival=survival, rate=rate)


def gaussian_distribution(variance: Fraction | float | int) -> Distribution:
    """Return the discrete Gaussian, P(z) ∝ exp(-z²/(2·variance)), for standard deviations up to 10⁶.

    Source: Canonne, Kamath & Steinke 2020.
    """
    deviation = math.sqrt(float(variance))
    reach = math.ceil(REACH * deviation) + REACH
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(support**2) / (2 * float(variance)))
    inside = finite_distribution(weights / math.fsum(weights), start=-reach)
    return Distribution(inside.cdf, inside.survival)


def finite_distribution(
    mass: Sequence[float] | Float64[np.ndarray, " outcomes"], *, start: int = 0
) -> Distribution:
    """Return the distribution P(start + i) = mass[i]. Raises `InvalidParameter` unless the masses sum to 1.

    >>> finite_distribution([0.25, 0.75]).cdf(np.array([-1, 0, 1])).tolist()
    [0.0, 0.25, 1.0]
    """
    chances = np.asarray(mass, np.float64)
    if chances.ndim != 1 or np.any(chances < 0) or abs(chances.sum() - 1) > 1e-9:
        raise InvalidParameter(
            "mass", None, "is not a distribution", hint="give chances of at least 0 that sum to 1"
        )
    below = np.minimum(np.concatenate([[0.0], np.cumsum(chances)]), 1.0)
    above = np.minimum(np.concatenate([np.cumsum(chances[::-1])[::-1], [0.0]]), 1.0)
    below[-1] = above[0] = 1.0
    size = len(chances)

    def place(z: Integers) -> Integers:
        places: Integers = np.minimum(np.maximum(z - (start - 1), 0), size)  # `clip` takes far longer
        return places

    def impossible(z: Integers) -> Flags:
        inside = (z >= start) & (z < start + size)
        flags: Flags = ~inside | (chances[np.clip(z - start, 0, size - 1)] == 0)
        return flags

    return Distribution(lambda z: below[place(z)], lambda z: above[place(z)], impossible)


def laplace_residues(scale: Fraction | float | int, modulus: int) -> Distribution:
    """Return the distribution of |Z| mod `modulus` for a discrete Laplace Z, which coarse bins cannot test.

    Source: the geometric series of P(|Z| = j) over j ≡ r.
    """
    rate = 1 / float(scale)
    first = -math.expm1(-rate) / (1 + math.exp(-rate))
    lap = -math.expm1(-rate * modulus)
    mass = 2 * first * np.exp(-rate * np.arange(modulus)) / lap
    mass[0] -= first
    return finite_distribution(mass / math.fsum(mass))

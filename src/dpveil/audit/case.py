"""One setting to audit: a method and the size of the image that it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Final

import numpy as np

from dpveil.audit.exact import cells
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import show
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian

Pixelisation = DPPix | DPPixGaussian
"""Methods that add noise to the exact sums of cells."""


@dataclass(frozen=True)
class Case:
    """A method on height × width × channels; `levels` are those of which exact gates try every image."""

    height: int
    width: int
    channels: int
    method: Pixelisation
    levels: tuple[int, ...] = (0, 255)

    @property
    def size(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    @property
    def guarantee(self) -> Guarantee:
        """What the method promises here."""
        return self.method.guarantee(height=self.height, width=self.width, channels=self.channels)

    def of(self, method: Pixelisation) -> Case:
        """Return the same setting with another method."""
        return replace(self, method=method)

    def __str__(self) -> str:
        m, promise = self.method.neighbourhood, self.guarantee
        budget = {"ε": promise.epsilon, "δ": promise.delta, "ρ": promise.rho}
        spent = ", ".join(f"{name} = {show(value)}" for name, value in budget.items() if value is not None)
        near = "any image" if m is None else f"m = {m}"
        return f"{self.height}×{self.width}×{self.channels}, b = {self.method.block}, {near}, {spent}"


@dataclass(frozen=True)
class Sensitivity:
    """The largest L1 distance of the sums of two neighbours, and the largest squared L2 distance."""

    absolute: int
    squared: int


def filled(case: Case) -> Sensitivity:
    """Return the sensitivity by filling the largest cells first, from the cells themselves (methods §3).

    >>> filled(Case(3, 3, 1, DPPix(epsilon=1, block=2, neighbourhood=5))) == Sensitivity(1275, 1105425)
    True
    """
    left = case.method.neighbourhood or case.height * case.width
    absolute = squared = 0
    for area in sorted((len(c) for c in cells(case.height, case.width, case.method.block)), reverse=True):
        taken = min(area, left)
        left -= taken
        absolute += 255 * taken
        squared += (255 * taken) ** 2
    return Sensitivity(absolute * case.channels, squared * case.channels)


@dataclass(frozen=True)
class Right:
    """What is right for one method, written apart from it: its noise, and the law of a cell's level.

    `power` is that of the noise's width with which the parameter grows.
    """

    parameter: Callable[[Case, Sensitivity], Fraction]
    level_law: Callable[[int, int, Fraction], tuple[float, ...]]
    power: int = 1


def right_scale(case: Case, found: Sensitivity) -> Fraction:
    """Return the Laplace scale of methods §3; for (ε, δ) there is no formula, and the method's own is taken.

    Whether that one keeps its promise is for the hockey-stick divergence to say.
    """
    promise = case.guarantee
    if promise.delta is not None and isinstance(case.method, DPPix):
        return case.method.sum_scale(height=case.height, width=case.width, channels=case.channels)
    return found.absolute / (promise.epsilon or Fraction(1))


def right_variance(case: Case, found: Sensitivity) -> Fraction:
    """Return the variance L2²/(2ρ) of methods §3, with ρ from (ε, δ) by a second hand's conversion."""
    promise = case.guarantee
    if promise.rho is not None:
        return found.squared / (2 * promise.rho)
    rho = largest_rho(float(promise.epsilon or 0), float(promise.delta or 0))
    return found.squared / Fraction(2 * rho)


ORDERS: Final = 1 + np.exp(np.linspace(-12, 16, 40_000))


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose δ at this ε is small enough, over a fine grid of orders.

    Source: Canonne, Kamath & Steinke 2020, proposition 12, in plain floating point.
    """
    fixed = ORDERS * np.log1p(-1 / ORDERS) - np.log(ORDERS - 1)
    low, high = 0.0, epsilon + 2 * sqrt(epsilon) + 1
    for _ in range(60):
        rho = (low + high) / 2
        smallest = np.min((ORDERS - 1) * (ORDERS * rho - epsilon) + fixed)
        low, high = (rho, high) if smallest <= np.log(delta) else (low, rho)
    return low

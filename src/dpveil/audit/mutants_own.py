"""Wrong calibrations that only one method can have: of the Laplace scale, and of the Gaussian variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpveil.accounting.laplace import laplace_scale, merged
from dpveil.audit.mutants import shared_mutants
from dpveil.audit.steps import INTACT, INTACT_GAUSSIAN, Size, Steps, method_areas
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.cells import fullest_cells

TOP: Final = 255
Calibration = Callable[[DPPix, Size], Fraction]
Variance = Callable[[DPPixGaussian, Size], Fraction]


def laplace_mutants() -> dict[str, Steps]:
    """Return every mutant of `dp-pix`. Those of (ε, δ) alone change nothing where the promise is pure."""
    own: dict[str, Calibration] = {
        "channels not counted": _without_channels,
        "m halved": lambda method, size: _scale(_halved(method, size), size),
        "(ε, δ): scale of 2ε without δ": lambda m, s: (
            _pure(m, s) / 2 if m.delta is not None else _scale(m, s)
        ),
        "(ε, δ): changed pixels spread over cells": _spread_over_cells,
        "(ε, δ): δ for every cell and channel": _delta_for_each,
    }
    return shared_mutants(INTACT) | {name: _laplace(name, scale) for name, scale in own.items()}


def _laplace(name: str, scale: Calibration) -> Steps:
    def parameters(method: DPPix, size: Size) -> list[Fraction]:
        return [scale(method, size)] * int(method_areas(method, size).size)

    return INTACT.with_parameters(name, parameters)


def _scale(method: DPPix, size: Size) -> Fraction:
    return method.sum_scale(height=size[0], width=size[1], channels=size[2])


def _pure(method: DPPix, size: Size) -> Fraction:
    return _scale(replace(method, delta=None), size)


def _without_channels(method: DPPix, size: Size) -> Fraction:
    return _scale(method, (size[0], size[1], 1))


def _halved(method: DPPix, size: Size) -> DPPix:
    return replace(method, neighbourhood=_half(method.neighbourhood, size))


def _half(neighbourhood: int | None, size: Size) -> int:
    return max(1, min(neighbourhood or size[0] * size[1], size[0] * size[1]) // 2)


def _spread_over_cells(method: DPPix, size: Size) -> Fraction:
    """Take the best case for the worst one: every changed pixel in a cell of its own."""
    epsilon, delta, _ = method.budget
    if epsilon is None or delta is None:
        return _scale(method, size)
    changed = min(method.neighbourhood or size[0] * size[1], size[0] * size[1])
    return laplace_scale(epsilon, delta, ((TOP, changed * size[2]),))


def _delta_for_each(method: DPPix, size: Size) -> Fraction:
    """Spend δ once for every moved sum, as if each were a release of its own."""
    epsilon, delta, _ = method.budget
    if epsilon is None or delta is None:
        return _scale(method, size)
    moved = fullest_cells(size[0], size[1], method.block, method.neighbourhood)
    shifts = merged({shift: count * size[2] for shift, count in moved.items()})
    draws = sum(count for _, count in shifts)
    return laplace_scale(epsilon, min(Fraction(9, 10), draws * delta), shifts)


def gaussian_mutants() -> dict[str, Steps]:
    """Return every mutant of `dp-pix-gaussian`. Those of (ε, δ) change nothing where ρ is given."""
    own: dict[str, Variance] = {
        "channels not counted": lambda m, s: _variance(m, s) / s[2],
        "m halved": lambda m, s: _variance(replace(m, neighbourhood=_half(m.neighbourhood, s)), s),
        "L2 sensitivity halved": lambda m, s: _variance(m, s) / 4,
        "changed pixels spread over cells": _spread_squares,
        "ρ doubled": lambda m, s: _variance(m, s) / 2,
        "(ε, δ): ρ = ε²/2": _rho(lambda epsilon, delta: epsilon**2 / 2),
        "(ε, δ): ρ from ε = ρ + 2ρ·ln(1/δ)": _rho(lambda e, d: e / (1 + 2 * math.log(1 / d))),
        "(ε, δ): decimal logarithm of 1/δ": _rho(
            lambda e, d: (math.sqrt(math.log10(1 / d) + e) - math.sqrt(math.log10(1 / d))) ** 2
        ),
    }
    return shared_mutants(INTACT_GAUSSIAN) | {name: _gaussian(name, v) for name, v in own.items()}


def _gaussian(name: str, variance: Variance) -> Steps:
    def parameters(method: DPPixGaussian, size: Size) -> list[Fraction]:
        return [variance(method, size)] * int(method_areas(method, size).size)

    return INTACT_GAUSSIAN.with_parameters(name, parameters)


def _variance(method: DPPixGaussian, size: Size) -> Fraction:
    return method.sum_variance(height=size[0], width=size[1], channels=size[2])


def _squares(method: DPPixGaussian, size: Size) -> int:
    moved = fullest_cells(size[0], size[1], method.block, method.neighbourhood)
    return size[2] * sum(shift**2 * count for shift, count in moved.items())


def _spread_squares(method: DPPixGaussian, size: Size) -> Fraction:
    """Return σ² for Σ t_j² = m: the formula for pixels that are all in different cells."""
    changed = min(method.neighbourhood or size[0] * size[1], size[0] * size[1])
    return _variance(method, size) * (TOP**2 * size[2] * changed) / _squares(method, size)


def _rho(conversion: Callable[[float, float], float]) -> Variance:
    def variance(method: DPPixGaussian, size: Size) -> Fraction:
        if method.epsilon is None or method.delta is None:
            return _variance(method, size)
        return _squares(method, size) / Fraction(2 * conversion(float(method.epsilon), float(method.delta)))

    return variance

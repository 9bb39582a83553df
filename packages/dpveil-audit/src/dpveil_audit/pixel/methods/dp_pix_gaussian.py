"""The audit of `dp-pix-gaussian`: its steps, wrong calibrations of the variance, and settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Final

from dpveil.mechanisms.pixel import DPPixGaussian
from dpveil.mechanisms.pixel.base import fullest_cells
from dpveil_audit.divergence import GAUSSIAN
from dpveil_audit.engine import BY_LAW, Drawn, Level
from dpveil_audit.pixel.case import Case, Size
from dpveil_audit.pixel.gates import MethodAudit
from dpveil_audit.pixel.methods.pixelisation import (
    Steps,
    for_all_cells,
    half,
    right_distribution,
    right_variance,
    shared_mutants,
)

TOP: Final = 255
DRAWS: Final = 20_000
Variance = Callable[[DPPixGaussian, Size], Fraction]


def _variance(method: DPPixGaussian, size: Size) -> Fraction:
    return method.sum_variance(height=size[0], width=size[1], channels=size[2])


GATES: Final = {
    "noise ×0.8": BY_LAW,
    "means rounded before noise": ("exact",),
    "(ε, δ): decimal logarithm of 1/δ": BY_LAW,
}
"""Gates that detect these mutants; fits reveal less of Gaussian than of Laplace noise."""
INTACT: Final = Steps(name=DPPixGaussian.name, kind=GAUSSIAN, parameters=partial(for_all_cells, _variance))


def mutants() -> tuple[Steps, ...]:
    """Return every mutant of `dp-pix-gaussian`. Those of (ε, δ) change nothing where ρ is given."""
    own: dict[str, Variance] = {
        "channels not counted": lambda m, s: _variance(m, s) / s[2],
        "m halved": lambda m, s: _variance(replace(m, neighbourhood=half(m.neighbourhood, s)), s),
        "changed pixels spread over cells": _spread_squares,
        "(ε, δ): decimal logarithm of 1/δ": _decimal_logarithm,
    }
    made = [*shared_mutants(INTACT), *(INTACT.with_parameter(*both) for both in own.items())]
    return tuple(replace(steps, gates=GATES.get(steps.name, steps.gates)) for steps in made)


def _squares(method: DPPixGaussian, size: Size) -> int:
    moved = fullest_cells(size[0], size[1], method.block, method.neighbourhood)
    return size[2] * sum(shift**2 * count for shift, count in moved.items())


def _spread_squares(method: DPPixGaussian, size: Size) -> Fraction:
    """Return σ² for Σ t_j² = m: the formula for pixels that are all in different cells."""
    changed = min(method.neighbourhood or size[0] * size[1], size[0] * size[1])
    return _variance(method, size) * (TOP**2 * size[2] * changed) / _squares(method, size)


def _decimal_logarithm(method: DPPixGaussian, size: Size) -> Fraction:
    if method.epsilon is None or method.delta is None:
        return _variance(method, size)
    log = math.log10(1 / Fraction(method.delta))
    rho = (math.sqrt(log + float(method.epsilon)) - math.sqrt(log)) ** 2
    return _squares(method, size) / Fraction(2 * rho)


def levels() -> dict[str, Level]:
    """Return the settings: the deep level has more small images, and five times the draws."""

    def rho(h: int, w: int, c: int, b: int, m: int | None, r: object) -> Case:
        return Case(h, w, c, DPPixGaussian(rho=r, block=b, neighbourhood=m))  # type: ignore[arg-type]

    def both(h: int, w: int, c: int, b: int, m: int | None, e: object, d: object) -> Case:
        method = DPPixGaussian(epsilon=e, delta=d, block=b, neighbourhood=m)  # type: ignore[arg-type]
        return Case(h, w, c, method)

    exact = (
        rho(2, 3, 1, 2, 3, 1),
        rho(1, 3, 3, 2, 2, "0.3"),
        rho(2, 3, 1, 1, None, 2),
        both(2, 3, 1, 2, 3, 2, "0.01"),
        both(1, 3, 3, 2, 1, 1, "1e-5"),
    )
    drawn = (
        rho(3, 5, 1, 2, 2, 2),
        both(3, 5, 1, 2, 3, 20, "0.01"),
        rho(3, 4, 3, 2, 4, 50),
        rho(17, 17, 1, 16, 1, 2),
        rho(24, 24, 1, 24, 1, 2),
        rho(2, 2, 1, 1, None, 2),
        both(3, 5, 1, 2, 3, 2, "0.05"),
        rho(3, 5, 3, 2, 2, 2),
        rho(3, 5, 1, 2, 1, 2),
    )
    more = (
        rho(3, 3, 1, 2, 5, "0.01"),
        rho(2, 2, 3, 2, 1, 5),
        both(3, 3, 1, 2, 5, 1, "1e-4"),
        both(1, 3, 3, 1, None, 5, "1e-3"),
    )
    return Level(exact, tuple(Drawn(case, DRAWS) for case in drawn)).levels(more)


AUDIT: Final = MethodAudit(
    method=DPPixGaussian,
    intact=INTACT,
    mutants=mutants(),
    levels=levels(),
    right=right_distribution(INTACT, right_variance),
)

"""The audit of `dp-pix`: its steps, wrong calibrations of the Laplace scale, and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Final

from dpveil.accounting.zcdp import laplace_scale, merge_shifts
from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.base import fullest_cells
from dpveil_audit.divergence import LAPLACE
from dpveil_audit.engine import Drawn, Level
from dpveil_audit.pixel.case import Case, Size
from dpveil_audit.pixel.gates import MethodAudit
from dpveil_audit.pixel.methods.pixelisation import (
    Steps,
    for_all_cells,
    half,
    right_distribution,
    right_scale,
    shared_mutants,
)

TOP: Final = 255
DRAWS: Final = 20_000
Calibration = Callable[[DPPix, Size], Fraction]


def _scale(method: DPPix, size: Size) -> Fraction:
    return method.sum_scale(height=size[0], width=size[1], channels=size[2])


INTACT: Final = Steps(name=DPPix.name, kind=LAPLACE, parameters=partial(for_all_cells, _scale))


def mutants() -> tuple[Steps, ...]:
    """Return every mutant of `dp-pix`. Those of (ε, δ) alone change nothing for a pure promise."""
    own: dict[str, Calibration] = {
        "channels not counted": lambda method, size: _scale(method, (size[0], size[1], 1)),
        "m halved": lambda m, s: _scale(replace(m, neighbourhood=half(m.neighbourhood, s)), s),
        "(ε, δ): changed pixels spread over cells": _spread_over_cells,
        "(ε, δ): δ for every cell and channel": _delta_for_each,
    }
    return (*shared_mutants(INTACT), *(INTACT.with_parameter(name, scale) for name, scale in own.items()))


def _spread_over_cells(method: DPPix, size: Size) -> Fraction:
    """Use the best case as the worst one: every changed pixel in a cell of its own."""
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
    shifts = merge_shifts({shift: count * size[2] for shift, count in moved.items()})
    draws = sum(count for _, count in shifts)
    return laplace_scale(epsilon, min(Fraction(9, 10), draws * delta), shifts)


def pure(h: int, w: int, c: int, b: int, m: int | None, e: object = 1, *levels: int) -> Case:
    """Return a setting of ε alone."""
    method = DPPix(epsilon=e, block=b, neighbourhood=m)  # type: ignore[arg-type]
    return Case(h, w, c, method, levels or (0, 255))


def both(h: int, w: int, c: int, b: int, m: int | None, e: object, d: object) -> Case:
    """Return a setting of ε and δ."""
    method = DPPix(epsilon=e, delta=d, block=b, neighbourhood=m)  # type: ignore[arg-type]
    return Case(h, w, c, method)


def rho(h: int, w: int, c: int, b: int, m: int | None, r: object) -> Case:
    """Return a setting of ρ."""
    return Case(h, w, c, DPPix(rho=r, block=b, neighbourhood=m))  # type: ignore[arg-type]


def levels() -> dict[str, Level]:
    """Return the settings: the deep level has more small images, and five times the draws."""
    exact = (
        pure(2, 3, 1, 2, 2, 1, 0, 1, 255),
        pure(1, 3, 3, 2, 1),
        both(2, 3, 1, 2, 3, 2, "0.01"),
        both(1, 3, 3, 2, 2, 2, "0.01"),
        both(2, 4, 1, 1, None, 3, "1e-6"),
        rho(2, 3, 1, 2, 3, 1),
        rho(1, 3, 3, 2, 2, "0.3"),
    )
    drawn = (
        pure(3, 5, 1, 2, 2),
        both(3, 4, 3, 2, 4, 60, "0.01"),
        pure(3, 4, 3, 2, 1, 50),
        rho(3, 5, 1, 2, 3, 5),
        pure(17, 17, 1, 16, 1),
        pure(24, 24, 1, 24, 1),
        pure(2, 2, 1, 1, None),
        both(2, 2, 3, 2, 4, 2, "0.05"),
        both(2, 3, 1, 1, None, 2, "0.05"),
        pure(3, 5, 3, 2, 2),
        rho(2, 2, 3, 1, None, 2),
        pure(3, 5, 1, 2, 1),
    )
    more = (
        pure(2, 3, 1, 2, 1, 1, 0, 1, 100, 255),
        pure(2, 3, 1, 2, None, "0.3", 0, 1, 255),
        pure(3, 3, 1, 2, 4, 3),
        pure(2, 2, 3, 2, 1),
        both(3, 3, 1, 2, 5, 1, "1e-4"),
        both(1, 3, 3, 1, None, 5, "1e-3"),
        rho(3, 3, 1, 2, 5, "0.01"),
        rho(1, 3, 3, 1, None, 5),
    )
    return Level(exact, tuple(Drawn(case, DRAWS) for case in drawn)).levels(more)


AUDIT: Final = MethodAudit(
    method=DPPix,
    intact=INTACT,
    mutants=mutants(),
    levels=levels(),
    right=right_distribution(INTACT, right_scale),
)

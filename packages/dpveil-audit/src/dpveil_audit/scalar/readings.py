"""Mutants of the rounding of answers and of its sensitivity, for every scalar mechanism."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from dpveil.core.numbers import exact
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.mechanisms.scalar.certify import log_ratio
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil_audit.scalar.arrivals import Read
from dpveil_audit.scalar.case import ScalarCase, ScalarVersion, wrong
from dpveil_audit.scalar.distributions import distribution_of

HALF: Final = Fraction(1, 2)


def shortest_decimal(lattice: Lattice, answer: Any) -> int:
    """Return the point nearest to the shortest decimal of a float, halves up (errata E21)."""
    return _steps(lattice, exact(answer)).__floor__()


def halves_to_even(lattice: Lattice, answer: Any) -> int:
    """Return the nearest point, halves to the even one, as Python and NumPy round."""
    return round(_steps(lattice, exact(answer)) - HALF)


def _steps(lattice: Lattice, value: Fraction) -> Fraction:
    """Return the steps of a number from point 0, plus a half."""
    return (value - lattice.origin) / lattice.step + HALF


def _reading(name: str, read: Read) -> ScalarVersion:
    return ScalarVersion(name=name, read=read, fits=_halves_matter, gates=("arrive",))


def _halves_matter(case: ScalarCase) -> bool:
    """Return whether the noise covers only the steps of ΔF, and one step more costs more than is promised."""
    lattice = case.method.lattice
    return lattice.reach * lattice.step == lattice.sensitivity and _over(case.method, case, 1)


def _over(method: ScalarMechanism, case: ScalarCase, more: int) -> bool:
    """Return whether the noise of `method` costs too much for answers `more` steps further apart than a
    record.
    """
    if method.integers is None:
        return True
    return log_ratio(method.integers, method.lattice.points, case.reach + more) > case.limit


def _rounded_down(method: ScalarMechanism) -> ScalarMechanism:
    """Return the mechanism for ⌊ΔF/step⌋ steps."""
    lattice = method.lattice
    whole = (lattice.sensitivity / lattice.step).__floor__()
    return replace(method, sensitivity=whole * lattice.step, step=lattice.step)


def _does_not_divide(case: ScalarCase) -> bool:
    lattice = case.method.lattice
    uneven = lattice.sensitivity % lattice.step and lattice.sensitivity > lattice.step
    return bool(uneven) and _over(_rounded_down(case.method), case, 0)


READINGS: Final = (
    _reading("floats read as their shortest decimals", shortest_decimal),
    _reading("halves rounded to even", halves_to_even),
    wrong(
        "steps to ΔF rounded down", lambda method: distribution_of(_rounded_down(method)), _does_not_divide
    ),
)

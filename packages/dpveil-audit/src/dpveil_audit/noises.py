"""Integer noise added to exact integers: its samplers, and its distributions in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

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


def _gaussian_log_mass(z: Int64[np.ndarray, " n"], variance: Fraction) -> Float64[np.ndarray, " n"]:
    return -(z.astype(np.float64) ** 2) / (2 * float(variance))


def _gaussian_reach(variance: Fraction) -> int:
    return math.ceil(REACH * math.sqrt(variance)) + REACH


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
    log_mass=_gaussian_log_mass,
    reach=_gaussian_reach,
    pld=_gaussian_pld,
    unit=lambda variance: None,
)

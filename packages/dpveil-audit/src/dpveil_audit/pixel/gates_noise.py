"""Gates for additive noise: divergences before division and clamping, and a second accountant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.accounting.zcdp import zcdp_delta
from dpveil_audit.divergence import ORDERS, LossDistribution, Move, move_loss, renyi_of_shift, unit_of
from dpveil_audit.findings import Finding
from dpveil_audit.noises import NoiseKind
from dpveil_audit.pixel.case import Case, Known
from dpveil_audit.pixel.images import all_images
from dpveil_audit.pixel.product import Images, Pairs
from dpveil_audit.pixel.version import AddedNoise, Version

TOLERANCE: Final = 1e-9
ROUNDING: Final = {"δ": 1e-13, "ρ": 1e-12}
"""Absolute errors of floats: in Fourier transforms, and in Rényi divergences of orders next to 1."""
AGREEMENT: Final = 0.02
FLOOR: Final = 1e-5
"""Two accountants may differ by the share `AGREEMENT` of δ plus this: connecting dots costs less."""
STEP: Final = 4e-3


def tolerance(unit: str, limit: float) -> float:
    """Return by how much a divergence in floats may exceed the promise."""
    return limit * TOLERANCE + ROUNDING[unit]


def excess(unit: str, limit: float, slack: float = 0.0) -> str:
    """Return in words which excess over `limit` is detected: any, or one beyond the tolerance."""
    return f"{unit} above {limit:.4g} by {slack:.2g}" if slack else "any excess"


def held(
    what: str, case: Case, value: float, limit: float, kept: bool, unit: str, slack: float = 0.0
) -> Finding:
    """Return the finding of an exact divergence; `slack` is the tolerance of one in floats."""
    return Finding("exact", what, str(case), value, limit, kept, unit, sees=excess(unit, limit, slack))


def sums_finding(noise: AddedNoise, case: Case, images: Images, pairs: Pairs) -> Finding:
    """Return the largest divergence of noisy answers over all neighbours, before post-processing."""
    return SUMS[case.guarantee.kind](noise, case, noise.moves(case.method, images, pairs))


def _pure(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    promised = case.guarantee.epsilon or Fraction(0)
    if noise.kind.unit(Fraction(1)) is None:
        return held("loss of the sums", case, float("inf"), float(promised), False, "ε")
    value = max(sum((gap / parameter for gap, parameter in move), Fraction(0)) for move in moves)
    return held("loss of the sums", case, float(value), float(promised), value <= promised, "ε")


def _zcdp(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    limit = float(case.guarantee.rho or 0)
    value = max(renyi_rate(noise.kind, move, order) for move in moves for order in ORDERS)
    slack = tolerance("ρ", limit)
    return held("Rényi rate of the sums", case, value, limit, value <= limit + slack, "ρ", slack)


def _approximate(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    epsilon, limit = float(case.guarantee.epsilon or 0), float(case.guarantee.delta or 0)
    value = max(move_loss(noise.kind, move).delta(epsilon) for move in moves)
    slack = tolerance("δ", limit)
    return held("divergence of the sums", case, value, limit, value <= limit + slack, "δ", slack)


SUMS: Final[dict[str, Callable[[AddedNoise, Case, list[Move]], Finding]]] = {
    "pure": _pure,
    "zcdp": _zcdp,
    "approximate": _approximate,
}


def renyi_rate(kind: NoiseKind, move: Move, order: float) -> float:
    """Return D_α/α of one move, a lower bound on ρ."""
    return sum(renyi_of_shift(kind, parameter, gap, order) for gap, parameter in move) / order


def pld_gate(version: Version, case: Case, entry: Known) -> Iterator[Finding]:
    """Yield the result of `dp_accounting` for the worst move, against the promise and against our own δ.

    The worst move is that of the largest divergence of ours among all neighbours; the promise is evaluated at
    several ε where it implies a δ at each.
    """
    if version.noise is None:
        return
    kind = version.noise.kind
    images = all_images(case.height, case.width, case.channels, case.levels)
    moves = version.noise.moves(case.method, images, entry.neighbours(case, images))
    promises = implied(case)
    worst = max(
        ((move, loss) for move in moves for loss in [move_loss(kind, move)]),
        key=lambda made: made[1].delta(promises[0][0]),
    )
    theirs = _their_pld(kind, worst[0])
    for epsilon, delta in promises:
        value = float(theirs.get_delta_for_epsilon(epsilon))
        slack = tolerance("δ", delta)
        kept, sees = value <= delta + slack, excess("δ", delta, slack)
        label = f"{case}, at ε = {epsilon:.4g}"
        yield Finding("pld", "δ by dp_accounting", label, value, delta, kept, "δ", sees=sees)
    apart = max(_apart(theirs, worst[1], share * promises[0][0]) for share in (0.5, 0.8, 1.0))
    what = "both accountants apart"
    yield Finding("pld", what, str(case), apart, AGREEMENT, apart <= AGREEMENT, "share of δ")


def _apart(theirs: Any, ours: LossDistribution, epsilon: float) -> float:
    first, second = float(theirs.get_delta_for_epsilon(epsilon)), ours.delta(epsilon)
    return max(0.0, abs(first - second) - FLOOR) / max(first, second, FLOOR)


def implied(case: Case) -> list[tuple[float, float]]:
    """Return pairs (ε, δ) that the promise implies, the most telling first."""
    promise = case.guarantee
    if promise.rho is not None:
        spread = 2 * float(promise.rho) ** 0.5
        points = [float(promise.rho) + spread * share for share in (0.25, 0.75, 1.5)]
        return [(e, float(zcdp_delta(promise.rho, Fraction(e)))) for e in points]
    return [(float(promise.epsilon or 0), float(promise.delta or 0))]


def _their_pld(kind: NoiseKind, move: Move) -> Any:
    unit = unit_of(kind, [parameter for _, parameter in move])
    step = STEP if unit is None else unit / np.ceil(unit / STEP)
    composed = None
    for gap, parameter in move:
        one = kind.pld(parameter, gap, step)
        composed = one if composed is None else composed.compose(one)
    return composed

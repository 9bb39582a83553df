"""Gates that compute: the steps are the method, exact divergences over all neighbours, a second accountant.

Each gate returns findings, one for everything it looked at. Nothing is drawn but one release, so nothing is
left to chance: what these gates see at all, they see to the tolerances below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.accounting.zcdp import zcdp_delta
from dpveil.audit.case import Case, Pixelisation, Right, Sensitivity
from dpveil.audit.divergence import (
    ORDERS,
    LossLaw,
    Move,
    compose,
    move_loss,
    renyi_of_masses,
    renyi_of_shift,
    unit_of,
)
from dpveil.audit.exact import (
    Images,
    Pairs,
    ProductLaw,
    all_images,
    neighbours,
    pixelisation_law,
    sensitivity,
    squared_sensitivity,
)
from dpveil.audit.findings import Finding
from dpveil.audit.noises import NoiseKind
from dpveil.audit.pairs import adversarial_pairs, uneven_image
from dpveil.audit.steps import Steps
from dpveil.noise.bits import SeededBits

LOSS_TOLERANCE: Final = 1e-9
ANY: Final = "any excess"
LAW_TOLERANCE: Final = 1e-7
PLD_TOLERANCE: Final = 1e-9
AGREEMENT: Final = 0.02
FLOOR: Final = 1e-5
"""Two accountants may be apart by this share of δ and this much: connecting dots costs less."""
STEP: Final = 4e-3


def same_gate(steps: Steps, case: Case) -> list[Finding]:
    """Return whether the steps give what `release` gives from the same bits: how many values differ."""
    image = uneven_image(case.size)
    released = case.method.release(image, bits=SeededBits(3, "same"))
    differ = int(np.sum(steps.releases(case.method, image, 1, SeededBits(3, "same"))[0] != released))
    what = "values unlike release()"
    return [Finding("same", what, str(case), differ, 0, differ == 0, "values", sees="any")]


def exact_gate(steps: Steps, case: Case, right: Right) -> list[Finding]:
    """Return the largest divergences over all neighbours on the case's levels, and how far the law is off.

    The right law has the noise that brute force over all neighbours asks for, not the method's own.
    """
    images = all_images(case.height, case.width, case.channels, case.levels)
    pairs = neighbours(images, case.method.neighbourhood)
    law = steps.law(case.method, images)
    block = case.method.block
    found = Sensitivity(sensitivity(images, pairs, block), squared_sensitivity(images, pairs, block))
    right_law = pixelisation_law(images, block, right.parameter(case, found), right.level_law)
    gap = law.distance(right_law)
    return [
        *DIVERGENCES[case.guarantee.kind](steps, case, images, pairs, law),
        Finding("exact", "distance to the right law", str(case), gap, LAW_TOLERANCE, gap <= LAW_TOLERANCE),
    ]


def _held(what: str, case: Case, value: float, limit: float, tolerance: float, unit: str) -> Finding:
    """Return a finding of an exact divergence, which shows any excess beyond its tolerance."""
    return Finding("exact", what, str(case), value, limit, value <= limit + tolerance, unit, sees=ANY)


def _pure(steps: Steps, case: Case, images: Images, pairs: Pairs, law: ProductLaw) -> list[Finding]:
    promised = Fraction(case.guarantee.epsilon or 0)
    before, after = steps.sum_losses(case.method, images, pairs), law.largest_loss(pairs)
    sums = _held("loss of the sums", case, float(before), float(promised), 0.0, "ε")
    return [
        replace(sums, passed=before <= promised),  # in rationals, without rounding
        _held("loss of the levels", case, after, float(promised), LOSS_TOLERANCE, "ε"),
    ]


def _zcdp(steps: Steps, case: Case, images: Images, pairs: Pairs, law: ProductLaw) -> list[Finding]:
    limit = float(case.guarantee.rho or 0)
    moves = steps.moves(case.method, images, pairs)
    before = max(renyi_rate(steps.kind, move, order) for move in moves for order in ORDERS)
    after = max(float(_level_divergences(law, pairs, order).max()) / order for order in ORDERS)
    return [
        _held("Rényi rate of the sums", case, before, limit, limit * LOSS_TOLERANCE + 1e-12, "ρ"),
        _held("Rényi rate of the levels", case, after, limit, limit * LOSS_TOLERANCE + 1e-12, "ρ"),
    ]


def renyi_rate(kind: NoiseKind, move: Move, order: float) -> float:
    """Return D_α/α of one move: what ρ must not be below."""
    return sum(renyi_of_shift(kind, parameter, gap, order) for gap, parameter in move) / order


def _level_divergences(law: ProductLaw, pairs: Pairs, order: float) -> Any:
    total = np.zeros(len(pairs))
    for part, masses in enumerate(law.masses):
        total += renyi_of_masses(masses, order)[law.index[pairs[:, 0], part], law.index[pairs[:, 1], part]]
    return total


def _approximate(steps: Steps, case: Case, images: Images, pairs: Pairs, law: ProductLaw) -> list[Finding]:
    epsilon, limit = float(case.guarantee.epsilon or 0), float(case.guarantee.delta or 0)
    moves = steps.moves(case.method, images, pairs)
    before = max(move_loss(steps.kind, move).delta(epsilon) for move in moves)
    after = max(loss.delta(epsilon) for loss in level_losses(steps, case))
    return [
        _held("divergence of the sums", case, before, limit, limit * LOSS_TOLERANCE + 1e-12, "δ"),
        _held("divergence of the levels", case, after, limit, limit * LOSS_TOLERANCE + 1e-12, "δ"),
    ]


def level_losses(steps: Steps, case: Case) -> list[LossLaw]:
    """Return the laws of the loss of the released levels for every adversarial pair, in both directions."""
    made = adversarial_pairs(
        height=case.height,
        width=case.width,
        channels=case.channels,
        block=case.method.block,
        neighbourhood=case.method.neighbourhood,
    )
    images = np.stack([image for pair in made for image in (pair.first, pair.second)])
    law = steps.law(case.method, images)
    losses, unit = [], unit_of(steps.kind, steps.parameters(case.method, case.size))
    for pair in range(len(made)):
        rows = [[m[law.index[2 * pair + k, part]] for part, m in enumerate(law.masses)] for k in (0, 1)]
        losses += [compose(list(zip(*sides, strict=True)), unit) for sides in (rows, rows[::-1])]
    return losses


Divergences = Callable[[Steps, Case, Images, Pairs, ProductLaw], list[Finding]]
DIVERGENCES: Final[dict[str, Divergences]] = {"pure": _pure, "zcdp": _zcdp, "approximate": _approximate}


def pld_gate(steps: Steps, case: Case) -> list[Finding]:
    """Return what `dp_accounting` says about the worst move, against the promise and against our own δ.

    The worst move is found by our own divergence among all that neighbours make; the promise is taken at
    several ε where it implies one at each.
    """
    images = all_images(case.height, case.width, case.channels, case.levels)
    moves = steps.moves(case.method, images, neighbours(images, case.method.neighbourhood))
    promises = implied(case.method, case)
    worst = max(
        ((move, loss) for move in moves for loss in [move_loss(steps.kind, move)]),
        key=lambda entry: entry[1].delta(promises[0][0]),
    )
    theirs = _their_pld(steps.kind, worst[0])
    found = []
    for epsilon, delta in promises:
        value = float(theirs.get_delta_for_epsilon(epsilon))
        kept = value <= delta * (1 + PLD_TOLERANCE) + PLD_TOLERANCE
        label = f"{case}, at ε = {epsilon:.4g}"
        found.append(Finding("pld", "δ by dp_accounting", label, value, delta, kept, "δ", sees=ANY))
    apart = max(_apart(theirs, worst[1], share * promises[0][0]) for share in (0.5, 0.8, 1.0))
    agree = apart <= AGREEMENT
    found.append(Finding("pld", "both accountants apart", str(case), apart, AGREEMENT, agree, "share of δ"))
    return found


def _apart(theirs: Any, ours: LossLaw, epsilon: float) -> float:
    first, second = float(theirs.get_delta_for_epsilon(epsilon)), ours.delta(epsilon)
    return max(0.0, abs(first - second) - FLOOR) / max(first, second, FLOOR)


def implied(method: Pixelisation, case: Case) -> list[tuple[float, float]]:
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

"""Findings that gates of all families share: fits, lower bounds, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.errors import DPVeilError
from dpveil_audit.findings import Finding
from dpveil_audit.fit import ALPHA
from dpveil_audit.lower_bound import Bound, Draws, lower_bound
from dpveil_audit.measures import MISSED, Measure, epsilon_at, epsilon_event, smallest_detectable

UNBOUNDED: Final = 1e6
"""Stands for an infinite budget, of inputs that are distinguished with certainty."""
CHANCE: Final = 0.3
"""Probability of the event with which the smallest detectable ε is computed."""


def refused(gate: str, case: object, error: DPVeilError) -> Finding:
    """Return the finding of a release that is refused without reason."""
    return Finding(gate, f"refused: {error.message}", str(case), 1, 0, False, "releases")


def fit_finding(
    case: object, what: str, p_values: dict[str, float], *, alpha: float = ALPHA, sees: str = ""
) -> Finding:
    """Return the finding of several fits, by the name of what was fitted; alpha covers all of them together.

    `value` is -log10 of the smallest p-value, corrected for their number.
    """
    worst = min(p_values, key=lambda name: p_values[name])
    value = max(0.0, float(-np.log10(max(1e-300, p_values[worst]) * len(p_values))))
    limit = float(-np.log10(alpha))
    what = f"{what}, worst at {worst}"
    return Finding("fit", what, str(case), value, limit, value <= limit, "-log10 p", sees=sees)


@dataclass(frozen=True)
class ComparedPair:
    """Two inputs to distinguish: a description, the budget allowed, and the bound as a function of alpha."""

    where: str
    limit: float
    bound: Callable[[float], Bound]


def of_releases(
    sides: tuple[Draws, Draws], draws: int, alpha: float, measure: Measure | None = None
) -> Bound:
    """Return the lower bound from releases of two inputs, as bytes; the first `draws` of each are for
    training.

    Releases of different shapes are distinguished with certainty.
    """
    if sides[0].shape != sides[1].shape:
        return Bound(UNBOUNDED, "counts of numbers that differ", (draws, 0), draws, alpha)
    first, second = (side.reshape(2 * draws, -1) for side in sides)
    train, test = (first[:draws], second[:draws]), (first[draws:], second[draws:])
    return lower_bound(train, test, measure=measure, alpha=alpha)


@lru_cache(maxsize=512)
def least_epsilon(draws: int, limit: float, alpha: float) -> float:
    """Return the smallest ε above `limit` that so many test draws a side show to be above it."""
    event = epsilon_event(CHANCE, 0.0)
    return smallest_detectable(draws, limit, event, epsilon_at(0.0), alpha=alpha, missed=MISSED)


def bound_findings(
    pairs: Sequence[ComparedPair],
    what: str,
    *,
    unit: str = "ε",
    alpha: float = ALPHA,
    least: Callable[[float, float], float | None] = lambda limit, alpha: None,
) -> Iterator[Finding]:
    """Yield a lower bound on the budget for every pair; alpha covers all pairs together.

    `what` names the draws. `least(limit, alpha)` is the smallest violation that they detect, if known.
    """
    share = alpha / max(1, len(pairs))
    for pair in pairs:
        found, seen = pair.bound(share), least(pair.limit, share)
        sees = ""
        if seen is not None and math.isfinite(seen) and pair.limit:
            sees = f"{unit} ≥ {seen:.3g} for {pair.limit:.3g}"
        label, kept = f"{what}, {found.event}", found.lower <= pair.limit
        yield Finding("bound", label, pair.where, found.lower, pair.limit, kept, unit, seen, sees)

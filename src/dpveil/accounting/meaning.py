"""What a guarantee means for somebody who guesses: odds, success among candidates, false alarms, strength.

All are upper bounds over every adversary, whatever they know or compute, and are rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpveil.accounting.zcdp import zcdp_delta
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import float_above

STRENGTHS: Final = {"strong": Fraction(3, 4), "moderate": Fraction(19, 20), "weak": Fraction(9999, 10000)}
"""The most that a guess between two equally likely candidates may reach; beyond: practically none."""
NONE: Final = "practically none"
HARM: Final = {"strong": Fraction(1, 10**4), "moderate": Fraction(1, 10**3), "weak": Fraction(1, 10)}
"""The largest δ of each strength: in the worst case there is no protection at all with probability δ."""
CURVE_STEPS: Final = 48
ROUNDING: Final = 2.0**-50
"""More than what the few roundings of a bound near or below one can lose together, each 2^-53 or an ulp."""

Line = tuple[float, float]
"""One (ε, δ) that holds; a guarantee is the intersection of its lines."""


@lru_cache(maxsize=256)
def lines(guarantee: Guarantee) -> tuple[Line, ...]:
    """Return pairs (ε, δ) that the guarantee implies, rounded up; none for heuristic ones.

    ρ-zCDP implies one for every ε; metric guarantees are taken at the diameter of their domain.
    """
    if guarantee.kind == "heuristic":
        return ()
    if guarantee.kind == "zcdp":
        rho = guarantee.rho or Fraction(0)
        middle, spread = float(rho), 2 * math.sqrt(float(rho))
        grid = [middle + spread * (step - 8) / 8 for step in range(CURVE_STEPS)]
        return tuple((e, float_above(zcdp_delta(rho, Fraction(e)))) for e in grid if e >= 0)
    epsilon = guarantee.epsilon or Fraction(0)
    if guarantee.diameter is not None:
        epsilon *= guarantee.diameter
    return ((float_above(epsilon), float_above(guarantee.delta or Fraction(0))),)


def odds(guarantee: Guarantee) -> float | None:
    """Return e^ε, by which a release can change anybody's odds at most; None where no such bound exists.

    None for ρ-zCDP and wherever δ > 0: δ bounds how far odds go too far *on average*, and more than e^ε comes
    up far more often than with probability δ (docs: explain, "Odds").
    """
    if guarantee.kind in ("heuristic", "zcdp") or guarantee.delta:
        return None
    return _exp_above(lines(guarantee)[0][0])


def success_bound(guarantee: Guarantee, candidates: int) -> float:
    """Return the best chance of naming the true one among k equally likely candidates, all neighbours.

    Under (ε, δ): (e^ε + (k - 1)δ) / (e^ε + k - 1), by averaging the definition over all pairs.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> one = Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a photo"))
    >>> round(success_bound(one, 2), 3), round(success_bound(one, 10), 3)
    (0.731, 0.232)
    """
    others = candidates - 1
    return min((_share(epsilon, delta, others) for epsilon, delta in lines(guarantee)), default=1.0)


def _share(epsilon: float, delta: float, others: int) -> float:
    least = math.exp(-epsilon) * others  # never overflows
    return min(1.0, (1 + least * delta) / (1 + least) * (1 + ROUNDING))


def detection_bound(guarantee: Guarantee, false_alarm: float) -> float:
    """Return the highest chance of detection of any test with this rate of false alarms.

    Under (ε, δ): min(δ + e^ε·α, 1 - e^-ε·(1 - δ - α)) (Kairouz, Oh & Viswanath 2015).
    """
    bounds = (_detected(e, delta, false_alarm) for e, delta in lines(guarantee))
    return max(false_alarm, min(bounds, default=1.0))


def _detected(epsilon: float, delta: float, false_alarm: float) -> float:
    raised = _exp_above(epsilon) * false_alarm if false_alarm else 0.0  # e^ε may be infinite
    missed = math.exp(-epsilon) * (1 - delta - false_alarm) - ROUNDING
    return min((delta + raised) * (1 + ROUNDING), 1 - missed, 1.0)


def strength(guarantee: Guarantee) -> str:
    """Return strong, moderate, weak or practically none: the rule is `STRENGTHS` and `HARM`."""
    return next((name for name in STRENGTHS if reaches(guarantee, name)), NONE)


def reaches(guarantee: Guarantee, name: str) -> bool:
    """Return whether the guarantee is at least as strong as `name` says."""
    if not guarantee.formal or (guarantee.delta or 0) > HARM[name]:
        return False
    return success_bound(guarantee, 2) <= float_above(STRENGTHS[name])


def _exp_above(epsilon: float) -> float:
    try:
        return math.nextafter(math.exp(epsilon), math.inf)
    except OverflowError:
        return math.inf

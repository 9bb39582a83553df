"""ρ-zCDP as (ε, δ) and back, by the tight conversion, every result on the private side.

δ(ε) = inf over α > 1 of exp((α - 1)(αρ - ε)) · (1 - 1/α)^α / (α - 1)  (Canonne, Kamath & Steinke 2020,
proposition 12). Any α gives a valid δ, so the best α is searched for in floating point and the formula is
then evaluated at that rational α with fifty digits and rounded up: no interpolation is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Final

from dpveil.core.numbers import Number, exact
from dpveil.core.parameters import probability
from dpveil.errors import InvalidParameter

WORK: Final = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
SLACK: Final = Decimal(10) ** -30
STEPS: Final = 48
SMALLEST_RHO: Final = 1e-300
TINIEST: Final = Fraction(1, 10**2100)
"""More than any δ that is smaller than e^-5000, and less than any that can be asked for."""


def zcdp_delta(rho: Number, epsilon: Number) -> Fraction:
    """Return a δ, rounded up, for which every ρ-zCDP release is (ε, δ)-DP.

    Raises `InvalidParameter` for numbers below zero. Source: Canonne, Kamath & Steinke 2020, proposition 12.

    >>> float(zcdp_delta("0.5", 5)) < 1e-5
    True
    """
    return _delta(_at_least_zero(rho, "rho"), _at_least_zero(epsilon, "epsilon"))


def zcdp_epsilon(rho: Number, delta: Number) -> Fraction:
    """Return an ε for which ρ-zCDP is (ε, δ)-DP by `zcdp_delta`: the smallest to a relative 2^-40 or so.

    >>> round(float(zcdp_epsilon("0.5", "1e-5")), 2)
    4.73
    """
    wanted, given = _reachable(delta), _at_least_zero(rho, "rho")
    if given == 0:
        return Fraction(0)
    likely = math.log(wanted.denominator) - math.log(wanted.numerator)
    high = given + 2 * Fraction(math.sqrt(float(given) * likely))
    while _delta(given, high) > wanted:
        high *= 2
    return smallest(lambda epsilon: _delta(given, epsilon) <= wanted, high)


def zcdp_rho(epsilon: Number, delta: Number) -> Fraction:
    """Return a ρ for which ρ-zCDP is (ε, δ)-DP by `zcdp_delta`: the largest to a relative 2^-40 or so.

    >>> zcdp_delta(zcdp_rho(5, "1e-5"), 5) <= Fraction(1, 10**5)
    True
    """
    wanted, given = _reachable(delta), _at_least_zero(epsilon, "epsilon")
    if given == 0:
        raise InvalidParameter("epsilon", epsilon, "is not above 0", hint="no noise reaches epsilon 0")
    inverse = 1 / given
    while _delta(1 / inverse, given) > wanted:
        inverse *= 2
    return 1 / smallest(lambda tried: _delta(1 / tried, given) <= wanted, inverse)


def smallest(valid: Callable[[Fraction], bool], good: Fraction, *, steps: int = STEPS) -> Fraction:
    """Return the smallest value found that `valid` itself accepted, by bisection between 0 and `good`.

    `good` must be valid; what is returned was tested, never interpolated.
    """
    low, high = Fraction(0), good
    for _ in range(steps):
        middle = Fraction(float((low + high) / 2))
        if not low < middle < high:
            break
        if valid(middle):
            high = middle
        else:
            low = middle
    return high


def _delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return δ at the best order found, or 1 where the formula says nothing."""
    if rho == 0:
        return Fraction(0)
    gap = _best_gap(max(float(rho), SMALLEST_RHO), float(epsilon))  # α - 1
    alpha = gap + 1
    exponent = _decimal(gap * (alpha * rho - epsilon))
    shrink = WORK.multiply(_decimal(alpha), WORK.ln(_decimal(gap / alpha)))
    power = WORK.subtract(WORK.add(exponent, shrink), WORK.ln(_decimal(gap)))
    if power > 0:
        return Fraction(1)
    if power < -5000:
        return TINIEST  # an exact value could have a billion digits
    return min(Fraction(1), Fraction(WORK.multiply(WORK.exp(power), 1 + SLACK)))


def _best_gap(rho: float, epsilon: float) -> Fraction:
    """Return α - 1 near its best value; a worse one only makes δ larger."""
    from scipy.optimize import minimize_scalar  # a third of a second that most releases need not pay

    def log_delta(log_gap: float) -> float:
        gap = math.exp(log_gap)
        return gap * ((1 + gap) * rho - epsilon) - log_gap - (1 + gap) * math.log1p(1 / gap)

    guess = math.log(max((epsilon - rho) / (2 * rho), 1 / (1 + rho)))
    best = minimize_scalar(log_delta, bounds=(guess - 6, guess + 6), method="bounded")
    return Fraction(math.exp(float(best.x)))


def _decimal(value: Fraction) -> Decimal:
    return WORK.divide(Decimal(value.numerator), Decimal(value.denominator))


def _reachable(delta: Number) -> Fraction:
    wanted = probability(delta, "delta")
    if wanted < TINIEST:
        raise InvalidParameter("delta", None, "is below 1e-2100", hint="such as 1e-6")
    return wanted


def _at_least_zero(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise InvalidParameter(name, value, "is below 0", hint="budgets are not negative")
    return number

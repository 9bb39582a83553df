"""Conversion between ρ-zCDP and (ε, δ)-DP, tight and rounded towards more cost.

δ(ε) = inf over α > 1 of exp((α - 1)(αρ - ε)) · (1 - 1/α)^α / (α - 1)  (Canonne, Kamath & Steinke 2020,
proposition 12). Any α gives a valid δ. So the best α is searched for in floating point, and the formula is
then evaluated at that rational α and rounded up. In the same way an ε or ρ found in floating point is only
returned after it passed this evaluation.

*Rounding.* With g = α - 1, log δ is E + S - ln g, where E = g(αρ - ε) is exact until it is rounded once, and
S = α·ln(1 - 1/α), of which the logarithm is within ±701, as g is between e^-700 and e^700. The work has 60
digits, so an operation is off by 5e-60 of its result. A quotient g/α near 1 loses 5e-60 before its logarithm
is taken, and S loses α times that: below 1e-39 for α < 2^64. Beyond, S is replaced by -1 - 1/(2α), which is
above it by the series, every term being negative. |E| matters only below 10^4, as S - ln g is within ±1500,
and then loses 1e-55. So log δ is known to 1e-39, which the relative 1e-30 added in rational numbers covers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.core.array_types import Float, Int64
from dpveil.core.parameters import probability
from dpveil.core.rationals import Number, exact, float_above
from dpveil.errors import InvalidParameter

WORK: Final = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
SLACK: Final = Fraction(1, 10**30)  # relative amount added to δ for the rounding of its logarithm
FAR: Final = 2**64  # α beyond which S is replaced by a bound (docstring of the module)
STEPS: Final = 60  # bisection steps
GUESSED: Final = (2.0**-42, 2.0**-30, 2.0**-15)
"""Relative distances around a guess that are tried before bisection."""
PRECISION: Final = Fraction(1, 2**41)  # relative precision at which bisection ends
MOST_LOG: Final = 700.0  # largest |ln(α - 1)| that is searched
SMALLEST_RHO: Final = 1e-300
TINIEST: Final = Fraction(1, 10**2100)
"""A bound on every δ below e^-5000, and smaller than any δ that can be requested."""
LARGEST_COST: Final = 10**300  # largest ε or ρ that is accepted
SMALLEST_EPSILON: Final = Fraction(1, 10**100)  # smallest ε for which a ρ is computed


def zcdp_delta(rho: Number, epsilon: Number) -> Fraction:
    """Return the δ, rounded up, for which every ρ-zCDP release is (ε, δ)-DP by the tight conversion.

    Raises `InvalidParameter` for numbers below zero or above 1e300. Source: Canonne, Kamath & Steinke 2020,
    proposition 12.

    >>> float(zcdp_delta("0.5", 5)) < 1e-5
    True
    """
    return _delta(_at_least_zero(rho, "rho"), _at_least_zero(epsilon, "epsilon"))


def zcdp_epsilon(rho: Number, delta: Number) -> Fraction:
    """Return the smallest ε, to a relative 2^-40 or so, for which ρ-zCDP is (ε, δ)-DP by `zcdp_delta`.

    Raises `InvalidParameter` for ρ below 0 or above 1e300, and δ not in (0, 1) or below 1e-2100.

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
    near = _root(lambda epsilon: _log_delta(float(given), epsilon) + likely, 0.0, float(high))
    return smallest(lambda epsilon: _delta(given, epsilon) <= wanted, high, near=near)


def zcdp_rho(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest ρ, to a relative 2^-40 or so, for which ρ-zCDP is (ε, δ)-DP by `zcdp_delta`.

    Raises `InvalidParameter` for ε below 1e-100 or above 1e300, and δ not in (0, 1) or below 1e-2100.

    >>> zcdp_delta(zcdp_rho(5, "1e-5"), 5) <= Fraction(1, 10**5)
    True
    """
    wanted, given = _reachable(delta), _at_least_zero(epsilon, "epsilon")
    if given < SMALLEST_EPSILON:
        problem = "is below 1e-100" if given else "is not above 0"
        raise InvalidParameter("epsilon", epsilon, problem, hint="no noise reaches epsilon 0")
    inverse = 1 / given
    while _delta(1 / inverse, given) > wanted:
        inverse *= 2
    likely = math.log(wanted.denominator) - math.log(wanted.numerator)
    near = _root(lambda tried: _log_delta(1 / tried, float(given)) + likely, 0.0, float(inverse))
    return 1 / smallest(lambda tried: _delta(1 / tried, given) <= wanted, inverse, near=near)


def smallest(
    valid: Callable[[Fraction], bool], good: Fraction, *, near: float = 0.0, steps: int = STEPS
) -> Fraction:
    """Return the smallest value that `valid` accepted, by bisection between 0 and `good`.

    `good` must be valid. The result was itself accepted, never interpolated. `near` is a guess that only
    saves time: values just around it are tried first.
    """
    low, high = Fraction(0), good
    for width in GUESSED:
        for tried in (Fraction(near * (1 + width)), Fraction(near * (1 - width))):
            if low < tried < high:
                low, high = (low, tried) if valid(tried) else (tried, high)
    for _ in range(steps):
        middle = Fraction(float((low + high) / 2))
        if high - low <= high * PRECISION or not low < middle < high:
            break
        low, high = (low, middle) if valid(middle) else (middle, high)
    return high


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return approximately where a decreasing function crosses zero between `low` and `high`."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return δ at the best order found, or 1 if the formula gives no more."""
    if rho == 0:
        return Fraction(0)
    gap = Fraction(_best_gap(max(float(rho), SMALLEST_RHO), float(epsilon)))  # α - 1
    alpha = gap + 1
    exponent = _decimal(gap * (alpha * rho - epsilon))
    power = WORK.subtract(WORK.add(exponent, _shrink(gap, alpha)), WORK.ln(_decimal(gap)))
    if power > 0:
        return Fraction(1)
    if power < -5000:
        return TINIEST  # an exact value could have a billion digits
    return min(Fraction(1), Fraction(WORK.exp(power)) * (1 + SLACK))


def _shrink(gap: Fraction, alpha: Fraction) -> Decimal:
    """Return S = α·ln(1 - 1/α) to 1e-39, or for large α an upper bound (docstring of the module)."""
    if alpha > FAR:
        return _decimal(-1 - 1 / (2 * alpha))
    return WORK.multiply(_decimal(alpha), WORK.ln(_decimal(gap / alpha)))


def _best_gap(rho: float, epsilon: float) -> float:
    """Return α - 1 near its optimum, where the derivative of log δ, (2α - 1)ρ - ε - ln(α/(α - 1)), is 0.

    The derivative grows with α. Any other α is valid too and gives a larger δ.
    """

    def falling(log_gap: float) -> float:
        gap = math.exp(log_gap)
        return math.log1p(1 / gap) - ((1 + 2 * gap) * rho - epsilon)

    return math.exp(_root(falling, -MOST_LOG, MOST_LOG))


def _log_delta(rho: float, epsilon: float) -> float:
    rho = max(rho, SMALLEST_RHO)
    gap = _best_gap(rho, epsilon)
    return gap * ((1 + gap) * rho - epsilon) - math.log(gap) - (1 + gap) * math.log1p(1 / gap)


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
    if number > LARGEST_COST:
        raise InvalidParameter(name, None, "is above 1e300", hint="nothing is left to state")
    return number


FLOAT_SLACK: Final = 1e-12
"""Taken off δ before the accountant is asked: more than ten times the rounding of its Fourier transforms."""
SLACK_PER_DRAW: Final = 1e-15
"""Further slack per draw.

A transform is raised to the power of the number of draws, and its rounding with it: 200 000 draws have been
seen to lose 7e-12 of δ (docs: accounting; a test compares with the binomial law).
"""
MOST_LOSS: Final = 500  # mean pure ε per draw above which no privacy loss distribution is computed
SMALLEST_DELTA: Final = Fraction(1, 10**10)
"""δ below which only closed formulas are used: the accountant's transforms are too coarse."""
MOST_DRAWS: Final = 200_000  # draws above which no privacy loss distribution is computed
GRID: Final = 20  # points of the accountant's grid per largest loss of one draw
WHOLE: Final = 20_000
"""Losses up to which a composition is computed in full; truncating tails would take longer."""
TAIL: Final = 1e-15  # mass of the tails that are truncated beyond that; it counts as an infinite loss
CLOSE: Final = Fraction(7, 8)  # first step of the search for a scale, as a factor

Shifts = tuple[tuple[int, int], ...]
"""Pairs (shift, number of draws): how far a neighbour moves so many of the integer answers."""


def pure_epsilon(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact pure ε of draws of one scale: Σ shift / scale."""
    return sum((moved * count for moved, count in shifts), 0) / scale


def laplace_rho(scale: Fraction, shifts: Shifts) -> Fraction:
    """Return the exact ρ of draws of one scale: Σ (shift / scale)² / 2 (Bun & Steinke 2016, prop. 1.4)."""
    return sum((Fraction(moved**2 * count) for moved, count in shifts), Fraction(0)) / scale**2 / 2


def laplace_epsilon(scale: Fraction, shifts: Shifts, delta: Fraction) -> Fraction:
    """Return an ε for which draws of one `scale`, moved by at most `shifts`, are (ε, δ)-DP.

    It is the smallest of pure composition, zCDP (ε-DP is ε²/2-zCDP) and the pessimistic privacy loss
    distribution of `dp_accounting` with connected dots. The last is left out above 200 000 draws and for δ
    below 1e-10 or near the accountant's own rounding.
    """
    rho = laplace_rho(scale, shifts)
    least = pure_epsilon(scale, shifts)
    draws = sum(count for _, count in shifts)
    slack = float_slack(draws)
    if (
        draws <= MOST_DRAWS
        and delta >= max(SMALLEST_DELTA, Fraction(2 * slack))
        and least <= MOST_LOSS * draws
    ):
        least = min(least, _pld_epsilon(scale, shifts, float(delta) - slack))
    return min(least, zcdp_epsilon(rho, delta)) if zcdp_delta(rho, least) <= delta else least


def float_slack(draws: int) -> float:
    """Return what to take off δ before 64-bit Fourier transforms of this many draws are asked about it."""
    return FLOAT_SLACK + SLACK_PER_DRAW * draws


@lru_cache(maxsize=256)
def laplace_scale(epsilon: Fraction, delta: Fraction, shifts: Shifts) -> Fraction:
    """Return the smallest scale, to one part in 10^5, for which `laplace_epsilon` is at most ε."""
    spent = lru_cache(maxsize=None)(lambda scale: laplace_epsilon(scale, shifts, delta))
    good = pure_epsilon(Fraction(1), shifts) / epsilon
    squares = sum(moved**2 * count for moved, count in shifts)
    # slightly above the scale at which zCDP alone gives (ε, δ)
    by_zcdp = Fraction(math.sqrt(squares / zcdp_rho(epsilon, delta) / 2)) * (1 + TOLERANCE)
    if by_zcdp < good and spent(by_zcdp) <= epsilon:
        good = by_zcdp
    return least_scale(spent, epsilon, good, close=CLOSE)


def _pld_epsilon(scale: Fraction, shifts: Shifts, delta: float) -> Fraction:
    from dp_accounting.pld import pld_pmf  # slow to import

    loss = float(max((moved for moved, _ in shifts), default=0) / scale)
    grid, inverse = max(1e-4, loss / GRID), float_above(1 / scale)
    composed = None
    for moved, count in shifts:
        places = _places(moved, inverse, grid)
        deltas = _one_delta(moved, inverse, places * grid)
        one = pld_pmf.create_pmf_pessimistic_connect_dots(grid, places, deltas)
        many = one.self_compose(count, 0 if count * len(places) <= WHOLE else TAIL)
        composed = many if composed is None else pld_pmf.compose_pmfs(composed, many)
    if composed is None:
        return Fraction(0)
    found = composed.get_epsilon_for_delta(delta)
    return Fraction(found) if math.isfinite(found) else pure_epsilon(scale, shifts)


def _places(moved: int, inverse: float, grid: float) -> Int64[np.ndarray, " n"]:
    """Return the multiples of `grid` next below and above the losses (t - 2j)/s of one draw, j = 0..t."""
    top = math.ceil(moved * inverse / grid)
    if 2 * inverse <= grid:  # every grid interval contains a loss
        return np.arange(-top, top + 1)
    losses = np.arange(-moved, moved + 1, 2) * (inverse / grid)
    return np.unique(np.concatenate([np.floor(losses), np.ceil(losses)])).astype(np.int64)


def _one_delta(moved: int, inverse: float, epsilon: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return δ(ε) of one draw moved by t, at scale 1/`inverse`, up to a few roundings of each value.

    With u = t - εs, the outputs T < J = ⌈u/2⌉ are those whose loss is above ε; summing the table of T, δ =
    ((1 - q^J) + q·(1 - q^(u - J))) / (1 + q), without cancellation.
    """
    above = moved - epsilon / inverse
    count = np.ceil(above / 2)
    q = math.exp(-inverse)
    inner = -(np.expm1(-count * inverse) + q * np.expm1((count - above) * inverse)) / (1 + q)
    delta = np.where(count > moved, -np.expm1(np.minimum(epsilon, 0)), np.where(above > 0, inner, 0))
    return np.minimum.accumulate(np.clip(delta, 0, 1))


def merge_shifts(shifts: Mapping[int, int]) -> Shifts:
    """Return shifts with their counts as pairs, the largest first, without those of size or count zero."""
    return tuple((moved, count) for moved, count in sorted(shifts.items(), reverse=True) if moved and count)


TRIALS: Final = 40  # most scales that are tried
TOLERANCE: Final = Fraction(1, 10**5)  # relative precision of a calibrated scale
NOTHING: Final = 1e-12  # replaces a cost of zero, which has no logarithm


def least_scale(
    spent: Callable[[Fraction], Fraction],
    budget: Fraction,
    good: Fraction,
    *,
    close: Fraction = Fraction(1, 2),
) -> Fraction:
    """Return the smallest scale, to one part in 10^5, for which `spent` is at most `budget`.

    `good` has to be such a scale; `close` is the factor of the first step down from it. An accountant takes a
    tenth of a second, so the next scale to test is interpolated: log cost is nearly linear in log scale. The
    scale returned was itself accepted by `spent`.
    """
    cost = lru_cache(maxsize=None)(spent)
    bad = good * close
    while cost(bad) <= budget:
        good, bad = bad, bad * close
    for step in range(TRIALS):
        if good <= bad * (1 + TOLERANCE):
            break
        over, under = (math.log(cost(scale) / budget or NOTHING) for scale in (bad, good))
        part = over / (over - under) if step % 4 < 3 and over > under else 0.5
        aim = float(bad) * float(good / bad) ** part
        near = Fraction(aim * (1 + float(TOLERANCE) / 3 * (-1) ** step))  # from alternating sides
        middle = near if bad < near < good else (bad + good) / 2
        good, bad = (middle, bad) if cost(middle) <= budget else (good, middle)
    return good

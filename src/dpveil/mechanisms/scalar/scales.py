"""The smallest scale at which a truncated, normalised Laplace distribution on a lattice is private.

Let r = e^(-1/s) and Z(x) the sum of r^|y - x| over all allowed points y. The law of an answer x is r^|y - x|
/ Z(x), and for answers x < x' the largest |log-ratio| over all y is (x' - x)/s + |ln Z(x) - ln Z(x')|, at y =
x or y = x'. Within a span Z is a constant minus sums of exponentials of x and -x, so it is concave, ln Z is
concave, and its steps are largest at the ends.

*Any database* (metric): log-ratios add up over a chain of points, so it suffices to check the first and last
step of every span and every jump over a gap: 3n + 2 conditions for n gaps, as in Croft thesis theorem 2. *One
record*: the log-ratio of x and x + j does not decrease in j (no term of Z changes by more than a factor r per
step), so only the largest j that ΔF allows matters. In a single span the ends are the worst; with gaps every
x near one is checked.

Sums are computed with 60 digits, and a scale counts as valid only with 10^-30 to spare, far more than their
error; where many pairs are checked, with 64-bit floats and 10^-9. The scale is a fraction, rounded up.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import mpmath
import numpy as np

from dpveil.core.array_types import Float64
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar.lattice import Lattice, Spans

DIGITS: Final = 60  # digits of the sums
SPARE: Final = mpmath.mpf(10) ** -30  # margin on ε for their error
PARTS: Final = 1 << 40  # the scale is found to one part in this number
FLOAT_SPARE: Final = 1e-9  # margin on ε for sums in 64-bit floats
ROUGH: Final = 1 / 16
HULL: Final = 1 << 16  # most points around gaps that are checked one by one
Pair = tuple[int, int]


@lru_cache(maxsize=256)
def least_scale(lattice: Lattice, epsilon: Fraction, *, metric: bool) -> Fraction:
    """Return the smallest valid scale in steps, to a part in 2^40, for ε per sensitivity.

    `metric` requires ε·d between any two answers, otherwise ε within one sensitivity. The scale is between
    reach/ε and 2·reach/ε, which is always valid. Raises `InvalidParameter` if there are too many points
    around gaps. Source: Croft thesis §5.1.3, §5.1.4, theorem 4; Holohan et al. for one record.
    """
    low, high = lattice.reach / epsilon, 2 * lattice.reach / epsilon
    if lattice.spans == ((None, None),):
        return low  # nothing is truncated, and the normaliser is constant
    many = not metric and len(lattice.spans) > 1
    pairs = _near_gaps(lattice, float(high)) if many else _chain(lattice) if metric else _ends(lattice)
    budgets = [epsilon * (b - a) / lattice.reach if metric else epsilon for a, b in pairs]
    bounds = np.array([float(budget) for budget in budgets]) - (FLOAT_SPARE if many else 0)

    def at(part: int) -> Fraction:
        return low + (high - low) * Fraction(part, PARTS)

    def rough(part: int) -> bool:
        return bool((_costs(lattice.spans, pairs, float(1 / at(part))) <= bounds).all())

    def fine(part: int) -> bool:
        with mpmath.workdps(DIGITS):
            return all(
                cost(lattice.spans, pair, at(part)) <= mpmath.mpf(b.numerator) / b.denominator - SPARE
                for pair, b in zip(pairs, budgets, strict=True)
            )

    valid = rough if many else fine
    if valid(0):
        return low
    guess = _first_true(rough, 0, PARTS)
    return at(guess if many else _first_near(fine, guess))


def _first_true(holds: Callable[[int], bool], left: int, right: int) -> int:
    """Return the first part in (left, right] at which a monotone condition holds."""
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (left, middle) if holds(middle) else (middle, right)
    return right


def _first_near(holds: Callable[[int], bool], guess: int) -> int:
    """Return the first part up to PARTS at which a monotone condition holds, searching from `guess`."""
    left, right, step = guess - 1, guess, 1
    while left > 0 and holds(left):
        left, right, step = max(0, left - step), left, 4 * step
    while right < PARTS and not holds(right):
        left, right, step = right, min(PARTS, right + step), 4 * step
    return _first_true(holds, left, right)


def cost(spans: Spans, pair: Pair, scale: Fraction) -> mpmath.mpf:
    """Return the largest log-ratio of two answers."""
    first, last = pair
    rate = mpmath.mpf(scale.denominator) / scale.numerator
    total = [_log_total(spans, point, rate) for point in pair]
    return (last - first) * rate + abs(total[0] - total[1])


def _log_total(spans: Spans, x: int, rate: mpmath.mpf) -> mpmath.mpf:
    """Return ln Z(x)."""
    ratio = mpmath.exp(-rate)

    def beyond(steps: int | None) -> mpmath.mpf:  # the sum of r^j for j ≥ steps
        return mpmath.mpf(0) if steps is None else mpmath.exp(-rate * steps) / (1 - ratio)

    total = mpmath.mpf(0)
    for low, high in spans:
        if low is not None and low > x:
            total += beyond(low - x) - beyond(None if high is None else high - x + 1)
        elif high is not None and high < x:
            total += beyond(x - high) - beyond(None if low is None else x - low + 1)
        else:
            total += (1 + ratio) / (1 - ratio)
            total -= beyond(None if low is None else x - low + 1) + beyond(
                None if high is None else high - x + 1
            )
    return mpmath.log(total)


def _chain(lattice: Lattice) -> list[Pair]:
    """Return the steps whose log-ratios bound those of all others."""
    found = list(lattice.gaps)
    for low, high in lattice.spans:
        if low is not None and high != low:
            found.append((low, low + 1))
        if high is not None and high != low:
            found.append((high - 1, high))
    return found or [(0, 1)]


def _ends(lattice: Lattice) -> list[Pair]:
    """Return the pairs at most a sensitivity apart that can be the worst in a single span."""
    low, high = lattice.spans[0]
    reach = lattice.reach if low is None or high is None else min(lattice.reach, high - low)
    ends = [] if low is None else [(low, low + reach)]
    return ends + ([] if high is None else [(high - reach, high)]) or [(0, reach)]


def _near_gaps(lattice: Lattice, widest: float) -> list[Pair]:
    """Return for every point near a gap or end the farthest point within one sensitivity above it."""
    edges = [edge for span in lattice.spans for edge in span if edge is not None]
    low, high = min(edges) - lattice.reach, max(edges) + lattice.reach
    if widest > HULL / ROUGH:
        raise InvalidParameter(
            "epsilon",
            None,
            f"is too small: noise of {widest:.3g} steps is not worked out between gaps for one record",
            hint="choose a larger step or epsilon, or relation any-database",
        )
    if high - low > HULL:
        raise InvalidParameter(
            "step",
            str(lattice.step),
            f"leaves {high - low} points around the gaps, too many for one record",
            hint="choose a larger step, or relation any-database",
        )
    points = np.arange(low, high + 1)
    points = points[lattice.is_allowed(points)]
    furthest = np.searchsorted(points, points + lattice.reach, side="right") - 1
    return [
        (point, other)
        for point, other in zip(points.tolist(), points[furthest].tolist(), strict=True)
        if other > point
    ]


def _costs(spans: Spans, pairs: list[Pair], rate: float) -> Float64[np.ndarray, " pairs"]:
    """Return `cost` of many pairs in floating point: sums of s terms of at most 1, off by at most s·2^-50."""
    places = np.array(pairs, np.float64)
    totals = np.zeros(places.shape)
    one = -np.expm1(-rate)
    for low, high in spans:
        first = -np.inf if low is None else low
        last = np.inf if high is None else high
        near = np.clip(places, first, last)
        ahead = np.exp(-rate * np.abs(near - places))
        left = -np.expm1(-rate * (near - first + 1))
        right = -np.expm1(-rate * (last - near + 1))
        totals += (
            ahead * np.where(near == places, left + right - one, np.where(near > places, right, left)) / one
        )
    return np.asarray(np.diff(places, axis=1)[:, 0] * rate + np.abs(np.diff(np.log(totals), axis=1)[:, 0]))

"""Calibration: the smallest noise that an accountant accepts, found with few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

STEPS: Final = 40
"""Most steps of the search."""
TOLERANCE: Final = Fraction(1, 10**5)
"""Relative precision of the scale."""
NOTHING: Final = 1e-12
"""Replaces a cost of zero, which has no logarithm."""


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
    for step in range(STEPS):
        if good <= bad * (1 + TOLERANCE):
            break
        over, under = (math.log(cost(scale) / budget or NOTHING) for scale in (bad, good))
        part = over / (over - under) if step % 4 < 3 and over > under else 0.5
        aim = float(bad) * float(good / bad) ** part
        near = Fraction(aim * (1 + float(TOLERANCE) / 3 * (-1) ** step))  # from alternating sides
        middle = near if bad < near < good else (bad + good) / 2
        good, bad = (middle, bad) if cost(middle) <= budget else (good, middle)
    return good

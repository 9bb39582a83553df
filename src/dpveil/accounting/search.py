"""Calibration: the smallest noise that an accountant accepts, found with few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

STEPS: Final = 40
TOLERANCE: Final = Fraction(1, 10**5)
NOTHING: Final = 1e-12
"""Replaces a cost of zero, which has no logarithm."""


def least_scale(
    spent: Callable[[Fraction], Fraction],
    budget: Fraction,
    good: Fraction,
    *,
    close: Fraction = Fraction(1, 2),
) -> Fraction:
    """Return a scale for which `spent` itself is at most `budget`: the smallest to one part in 10^5.

    `good` has to be one; `close` is the first step down from it. An accountant takes a tenth of a second, so
    the next scale to test is guessed from the last two: log cost is nearly linear in log scale. A guess only
    saves time; what is returned was accepted.
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
        near = Fraction(aim * (1 + float(TOLERANCE) / 3 * (-1) ** step))  # from both sides in turn
        middle = near if bad < near < good else (bad + good) / 2
        good, bad = (middle, bad) if cost(middle) <= budget else (good, middle)
    return good

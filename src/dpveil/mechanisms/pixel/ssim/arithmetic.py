"""Arithmetic of the window loops: only + - × ÷ on doubles, so that compiled and plain results agree.

Every function here and in `proposals` runs plain or compiled (`noise.backend.loops`).
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.array_types import Float64, Int64, UInt8

_WORK = Context(prec=60)
_STEP = _WORK.divide(_WORK.ln(Decimal(2)), Decimal(128))
STEP_HIGH: Final = int(_STEP * 2**44) / 2**44
"""Leading bits of ln(2)/128, the step of `exp_minus`; `STEP_LOW` is the rest."""
STEP_LOW: Final = float(_STEP - Decimal(STEP_HIGH))
STEPS_PER_ONE: Final = float(1 / _STEP)
PARTS: Final = np.array([float(_WORK.exp(-_STEP * part)) for part in range(128)])
"""e^-x at multiples of the step below ln 2."""
POWERS: Final = 2.0 ** -np.arange(1024.0)  # powers of 1/2
FARTHEST: Final = 690.0  # largest exponent of `exp_minus`

WORD: Final = 62  # bits of a random word in use, so that words are non-negative 64-bit integers
WHOLE: Final = 2.0**WORD
GUARD: Final = 2.0**-31  # relative margin of `choose` and `cut` for the rounding of sums
ROUNDED: Final = 1024.0  # a bound on what a 62-bit word loses when it becomes a double

REDRAW, SHOWN, UNSURE = 0, 1, 2
"""What became of an attempt: nothing, a draw, or a draw if more digits say so."""


def exp_minus(x):
    """Return e^-x for x ≥ 0 with a relative error below 2^-49; above x = 690 the larger e^-690."""
    x = min(x, FARTHEST)
    steps = int(x * STEPS_PER_ONE + 0.5)
    r = (x - steps * STEP_HIGH) - steps * STEP_LOW  # the first product is exact: 17 and 36 bits
    series = 1.0 - r * (1.0 - r * 0.5 * (1.0 - r * (1.0 / 3.0) * (1.0 - r * 0.25 * (1.0 - r * 0.2))))
    return PARTS[steps & 127] * series * POWERS[steps >> 7]


def similarity(cells, x_sum, x_spread, y_sum, y_spread, cross):
    """Return SSIM from the integers of `quality`, with an error below 2^-51 and the exact sign.

    `cross` is nΣxy - ΣxΣy. The four factors are exact doubles; their products and quotient round three times.
    """
    square = cells * cells
    top = float(800 * x_sum * y_sum + 2601 * square) * float(800 * cross + 23409 * square)
    bottom = float(400 * (x_sum * x_sum + y_sum * y_sum) + 2601 * square)
    return top / (bottom * float(400 * (x_spread + y_spread) + 23409 * square))


def slope(cells, x_sum, x_spread, y_sum, y_spread):
    """Return the derivative of SSIM by Σxy at fixed Σy and Σy²."""
    square = cells * cells
    top = float(800 * x_sum * y_sum + 2601 * square) * float(800 * cells)
    bottom = float(400 * (x_sum * x_sum + y_sum * y_sum) + 2601 * square)
    return top / (bottom * float(400 * (x_spread + y_spread) + 23409 * square))


def choose(weights, count, drawn, whole):
    """Return an outcome with its width, its importance weight, and the sum of the weights.

    Outcome j is chosen by `width` of the `whole` = 2^bits equally likely values of `drawn`: an exact
    probability, at least weight/sum·(1 - count/whole - 2^-31), and zero only if the weight is. The remaining
    values give outcome -1. The importance weight, `deserved`, is
    weight/sum divided by that probability.
    """
    total = 0.0
    for j in range(count):
        total += weights[j]
    unit = (whole - count - whole * GUARD) / total
    outcome, outcome_width, end = -1, 0, 0
    for j in range(count):
        width = int(weights[j] * unit) + (1 if weights[j] > 0.0 else 0)
        start = end
        end += width
        inside = start <= drawn < end
        outcome = j if inside else outcome
        outcome_width = width if inside else outcome_width
    deserved = 0.0 if outcome < 0 else weights[outcome] * whole / (total * outcome_width)
    return outcome, outcome_width, deserved, total


def cut(weights, ends, whole):
    """Fill `ends` with the cumulated widths of `choose`, for many draws from one law; return the sum.

    The sum has four independent parts, as each addition would wait for the previous one.
    """
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    even = len(weights) - len(weights) % 4
    for j in range(0, even, 4):
        first += weights[j]
        second += weights[j + 1]
        third += weights[j + 2]
        fourth += weights[j + 3]
    for j in range(even, len(weights)):
        first += weights[j]
    total = (first + second) + (third + fourth)
    unit = (whole - len(weights) - whole * GUARD) / total
    end = 0
    for j in range(len(weights)):
        end += int(weights[j] * unit) + (1 if weights[j] > 0.0 else 0)
        ends[j] = end
    return total


def find(ends, drawn):
    """Return the first outcome whose end is above `drawn`, and its width; (-1, 0) if there is none."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ends[middle] <= drawn else (low, middle)
    if low == len(ends):
        return -1, 0
    return low, ends[low] - (ends[low - 1] if low > 0 else 0)


def decide(drawn, probability, margin):
    """Return whether a uniform number is below a probability; `drawn` are its leading 62 bits.

    The true probability is within a factor 1 ± `margin` of the given one; if that matters, return `UNSURE`.
    """
    level = float(drawn)
    if level + ROUNDED < probability * (1.0 - margin) * WHOLE:
        return SHOWN
    if level - ROUNDED > probability * (1.0 + margin) * WHOLE:
        return REDRAW
    return UNSURE


def moments(window):
    """Return Σx and nΣx² - (Σx)² of a window."""
    total, squares = 0, 0
    for i in range(len(window)):
        level = int(window[i])
        total += level
        squares += level * level
    return total, len(window) * squares - total * total


class Law(NamedTuple):
    """Parameters of the law for the loops.

    `epsilon` is ε′; `keep`, slightly below 1, keeps acceptance probabilities below 1; `margin` bounds the
    relative rounding error of a weight; `whole` is the number of values of a word that chooses.
    """

    epsilon: float
    keep: float
    margin: float
    whole: float


class Draws(NamedTuple):
    """Results of the loops, one row per window: level indices, a status, and what decided on it.

    `status` is `REDRAW`, `SHOWN` or `UNSURE`. `trace` holds the widths of all choices (`whole` if there
    was none) and then the word that decided. With `scale` = (c, r), a proposal of quality q was accepted with
    probability c·e^(-ε′(r - q))·Π whole/width.
    """

    shown: UInt8[np.ndarray, "windows cells"]
    status: Int64[np.ndarray, " windows"]
    trace: Int64[np.ndarray, "windows choices"]
    scale: Float64[np.ndarray, "windows 2"]

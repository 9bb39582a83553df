"""What multisets weigh for one window: bounds for all, tables for the heaviest (docs: ssim-exponential).

Loops over all multisets have no branch, so that a compiler does several at once. The functions run as they
stand or compiled (`noise.backend.loops`).
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import exp_minus
from dpveil.mechanisms.pixel.ssim.tables import tabulate

FARTHEST_BOUND = 0.7
WORTH_A_TABLE = 8.0
"""How many proposals take about as long as one table, and half as many more: its bound may save less."""


def rank(window, desk):
    """Put the cells in order of rising level (there are few: insertion)."""
    order, ranked, rising = desk.order, desk.ranked, desk.rising
    for i in range(len(window)):
        level, place = int(window[i]), i
        while place > 0 and ranked[place - 1] > level:
            ranked[place], order[place] = ranked[place - 1], order[place - 1]
            place -= 1
        ranked[place], order[place] = level, i
    for i in range(len(window)):
        rising[i + 1] = rising[i] + ranked[i]


def weigh(x, levels, sets, epsilon, desk):
    """Fill the weights of all options and return the reference quality: the highest, or 0.

    A set of positive best quality weighs orders·f, with f a little more than e^(-ε′(reference - best)): a
    bound. Or it weighs what the dynamic programme says, which is less. The bound costs proposals, at most its
    quotient by the sum of all outputs' weights, of which lower bounds are at hand: 1, option 0, and what
    tables have summed so far. The programme costs a table; sets get one from the heaviest down.
    """
    weights, factors = desk.weights, desk.factor
    reference = most_alike(x, levels, sets, desk)
    bound(epsilon, reference, sets.orders, desk)
    factors[0] = exp_minus(epsilon * reference)
    weights[0] = factors[0] * float(len(levels)) ** len(desk.order)
    desk.places[:] = -1
    desk.used[0] = 0
    known, left = weights[0], heavy_ones(WORTH_A_TABLE * max(1.0, weights[0]), weights, desk.heavy)
    while left > 0:
        place = heaviest(weights, desk.heavy, left)
        option = desk.heavy[place]
        if weights[option] <= WORTH_A_TABLE * max(1.0, known):
            break
        weights[option] = factors[option] * tabulate(option - 1, x, levels, sets, epsilon, desk)
        known += weights[option]
        factors[option] = -factors[option]  # the sign says that the set has a table
        left -= 1
        desk.heavy[place] = desk.heavy[left]
    return reference


def heavy_ones(least, weights, heavy):
    """Write the sets' options that weigh more than `least`, and return how many there are."""
    found = 0
    for option in range(1, len(weights)):
        heavy[found] = option
        found += 1 if weights[option] > least else 0
    return found


def heaviest(weights, heavy, count):
    """Return the place of the heaviest of the first `count` options in `heavy`."""
    best = 0
    for place in range(1, count):
        best = place if weights[heavy[place]] > weights[heavy[best]] else best
    return best


def bound(epsilon, reference, orders, desk):
    """Fill factor and weight of every set: orders·factor, or 0 where its best quality is not positive.

    The factor is at least e^-x for x = ε′(reference - best): as e^t ≥ 1 + t + t²/2, it is the power of
    1/(1 + t + t²/2) by 256 with t = x/256, which is 2 % too much at x = 20. Rounding changes it by less than
    a part in 2^42. Beyond x = 179 it stays what it is there.
    """
    best, factors, weights = desk.best, desk.factor, desk.weights
    rate = epsilon / 256.0
    for s in range(len(best)):
        t = min(rate * (reference - best[s]), FARTHEST_BOUND)
        power = 1.0 + t * (1.0 + 0.5 * t)
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        factors[s + 1] = 1.0 / power
        weights[s + 1] = orders[s] / power if best[s] > 0.0 else 0.0


def most_alike(x, levels, sets, desk):
    """Fill in the best quality of every set, and return the highest, or 0.

    Σxy is largest where both rise. It is the highest level times Σx, less, for every gap between two levels,
    the gap times the sum of the cells below it. All numbers are whole and doubles, as in `similarity`.
    """
    cells, best, rising, below = len(desk.order), desk.best, desk.rising, sets.below
    square, x_sum, x_spread = float(cells * cells), float(x[0]), float(x[1])
    best[:] = float(levels[-1]) * rising[-1]
    for j in range(len(below)):
        gap, ends = float(levels[j + 1] - levels[j]), below[j]
        for s in range(len(best)):
            best[s] -= gap * rising[ends[s]]
    sums, spreads = sets.float_sums, sets.float_spreads
    for s in range(len(best)):
        y_sum = sums[s]
        top = 800.0 * x_sum * y_sum + 2601.0 * square
        top *= 800.0 * (cells * best[s] - x_sum * y_sum) + 23409.0 * square
        bottom = 400.0 * (x_sum * x_sum + y_sum * y_sum) + 2601.0 * square
        best[s] = top / (bottom * (400.0 * (x_spread + spreads[s]) + 23409.0 * square))
    return largest(best)


def largest(values):
    """Return the largest of the values and 0: four at a time, as each comparison waits for the last one."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    end = len(values) - len(values) % 4
    for i in range(0, end, 4):
        first = max(first, values[i])
        second = max(second, values[i + 1])
        third = max(third, values[i + 2])
        fourth = max(fourth, values[i + 3])
    for i in range(end, len(values)):
        first = max(first, values[i])
    return max(max(first, second), max(third, fourth))

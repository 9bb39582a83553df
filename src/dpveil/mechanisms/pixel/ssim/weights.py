"""Weights of multisets for one window: bounds for all, tables for the heaviest (docs: ssim-exponential).

Loops over all multisets have no branches, so that compilers vectorise them. The functions run plain or
compiled (`noise.backend.loops`).
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import exp_minus
from dpveil.mechanisms.pixel.ssim.tables import tabulate

FARTHEST_BOUND = 0.7  # largest t in `fill_bounds`
WORTH_A_TABLE = 8.0
"""Proposals that take about 1.5 times as long as one table, as its bound may save less than it promises."""


def rank(window, work):
    """Sort the cells by level, by insertion as there are few."""
    order, ranked, rising = work.order, work.ranked, work.rising
    for i in range(len(window)):
        level, place = int(window[i]), i
        while place > 0 and ranked[place - 1] > level:
            ranked[place], order[place] = ranked[place - 1], order[place - 1]
            place -= 1
        ranked[place], order[place] = level, i
    for i in range(len(window)):
        rising[i + 1] = rising[i] + ranked[i]


def weigh(x, levels, sets, epsilon, work):
    """Fill the weights of all options and return the reference quality: the highest, at least 0.

    A multiset of positive best quality has weight orders·f, where f is slightly more than e^(-ε′(reference -
    best)): an upper bound. Or it has its exact weight by the dynamic programme, which is smaller. A bound
    costs proposals, at most its quotient by the sum of all outputs' weights, for which lower bounds are
    known: 1, option 0, and the sums of the tables so far. The programme costs a table; multisets get one from
    the heaviest down.
    """
    weights, factors = work.weights, work.factor
    reference = most_alike(x, levels, sets, work)
    fill_bounds(epsilon, reference, sets.orders, work)
    factors[0] = exp_minus(epsilon * reference)
    weights[0] = factors[0] * float(len(levels)) ** len(work.order)
    work.places[:] = -1
    work.used[0] = 0
    known, left = weights[0], heavy_ones(WORTH_A_TABLE * max(1.0, weights[0]), weights, work.heavy)
    while left > 0:
        place = heaviest(weights, work.heavy, left)
        option = work.heavy[place]
        if weights[option] <= WORTH_A_TABLE * max(1.0, known):
            break
        weights[option] = factors[option] * tabulate(option - 1, x, levels, sets, epsilon, work)
        known += weights[option]
        factors[option] = -factors[option]  # the sign marks a multiset with a table
        left -= 1
        work.heavy[place] = work.heavy[left]
    return reference


def heavy_ones(least, weights, heavy):
    """Write the multisets' options that weigh more than `least`, and return their number."""
    found = 0
    for option in range(1, len(weights)):
        heavy[found] = option
        found += 1 if weights[option] > least else 0
    return found


def heaviest(weights, heavy, count):
    """Return the index of the heaviest of the first `count` options in `heavy`."""
    best = 0
    for place in range(1, count):
        best = place if weights[heavy[place]] > weights[heavy[best]] else best
    return best


def fill_bounds(epsilon, reference, orders, work):
    """Fill factor and weight of every multiset: orders·factor, or 0 if its best quality is not positive.

    The factor is at least e^-x for x = ε′(reference - best): as e^t ≥ 1 + t + t²/2, it is 1/(1 + t + t²/2) to
    the power of 256 with t = x/256, which is 2 % too much at x = 20. Rounding changes it by less than a part
    in 2^42. Above x = 179 it stays constant.
    """
    best, factors, weights = work.best, work.factor, work.weights
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


def most_alike(x, levels, sets, work):
    """Fill in the best quality of every multiset, and return the highest, at least 0.

    Σxy is largest when both are sorted. It is the highest level times Σx, minus, for every gap between two
    levels, the gap times the sum of the cells below it. All numbers are integers stored as doubles, as in
    `similarity`.
    """
    cells, best, rising, below = len(work.order), work.best, work.rising, sets.below
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
    """Return the largest of the values and 0, in four parts, so that no comparison waits for the last."""
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

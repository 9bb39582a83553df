"""Counts, then arrangement: propose a multiset of levels, then an order of it (docs: ssim-exponential).

For a fixed multiset Σy and Σy² are constants, SSIM is linear in Σxy, and exp(ε′·SSIM) is a product over
cells, which a dynamic programme over the counts that remain sums and draws from. The functions
run as they stand or compiled (`noise.backend.loops`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.pixel.ssim.arithmetic import (
    AGAIN,
    FARTHEST,
    SHOWN,
    UNSURE,
    choose,
    cut,
    decide,
    exp_minus,
    find,
    moments,
    similarity,
    slope,
)
from dpveil.mechanisms.pixel.ssim.loops import compare

LEAST_STEP = 2.0**-30
LEAST_FACTOR = 2.0**-200
WORTH_A_TABLE = 6.0
"""How many proposals take about as long as one table."""


class Desk(NamedTuple):
    """Room for one window: cells by rising level, options, sets, steps and table of one set."""

    order: Int64[np.ndarray, " cells"]
    ranked: Int64[np.ndarray, " cells"]
    weights: Float64[np.ndarray, " options"]
    ends: Int64[np.ndarray, " options"]
    best: Float64[np.ndarray, " sets"]
    factor: Float64[np.ndarray, " options"]
    steps: Float64[np.ndarray, "cells levels"]
    strides: Int64[np.ndarray, " levels"]
    edges: Int64[np.ndarray, " levels"]
    left: Int64[np.ndarray, " levels"]
    choice: Float64[np.ndarray, " levels"]
    table: Float64[np.ndarray, " states"]


def set_up(cells, sets, levels):
    """Return an empty desk; no table is larger than that of counts that are as equal as can be."""
    states = int((cells / levels + 1.0) ** levels + 1.0)
    return Desk(
        np.empty(cells, np.int64),
        np.empty(cells, np.int64),
        np.empty(sets + 1),
        np.empty(sets + 1, np.int64),
        np.empty(sets),
        np.empty(sets + 1),
        np.empty((cells, levels)),
        np.empty(levels, np.int64),
        np.empty(levels, np.int64),
        np.empty(levels, np.int64),
        np.empty(levels),
        np.empty(states),
    )


def count_then_arrange(windows, levels, sets, law, words, draws):
    """Propose until a proposal is accepted or the words are used up.

    Option 0 proposes every output alike and shows those of quality 0; option s + 1 proposes arrangements of
    multiset s and shows those of positive quality.
    """
    desk = set_up(windows.shape[1], len(sets.sums), len(levels))
    for w in range(len(windows)):
        x = moments(windows[w])
        rank(windows[w], desk)
        reference = weigh(x, levels, sets, law.epsilon, desk)
        total = cut(desk.weights, desk.ends, law.whole)
        for attempt in range(words.shape[1]):
            word = words[w, attempt]
            option, width = find(desk.ends, word[0])
            if option < 0:
                continue
            deserved = desk.weights[option] * law.whole / (total * width)
            draws.trace[w, 0] = width
            draws.scale[w, 0], draws.scale[w, 1] = law.keep / total, reference
            fit = arrange(option, x, levels, sets, law, word, desk, draws.shown[w], draws.trace[w])
            y_sum, y_spread, cross = compare(windows[w], x[0], levels, draws.shown[w])
            near = similarity(len(desk.order), x[0], x[1], y_sum, y_spread, cross)
            if fit == 0.0 or (near > 0.0) != (option > 0):
                continue
            gap = law.epsilon * max(0.0, reference - max(0.0, near))
            verdict = decide(word[-1], law.keep * deserved * fit * exp_minus(gap), law.margin)
            if verdict != AGAIN:
                draws.status[w] = UNSURE if verdict == SHOWN and gap >= FARTHEST else verdict
                draws.trace[w, -1] = word[-1]
                break


def rank(window, desk):
    """Put the cells in order of rising level (there are few: insertion)."""
    for i in range(len(window)):
        level, place = int(window[i]), i
        while place > 0 and desk.ranked[place - 1] > level:
            desk.ranked[place] = desk.ranked[place - 1]
            desk.order[place] = desk.order[place - 1]
            place -= 1
        desk.ranked[place], desk.order[place] = level, i


def weigh(x, levels, sets, epsilon, desk):
    """Fill the weights of all options and return the reference quality: the highest, or 0.

    A set of positive best quality weighs orders·e^(-ε′(reference - best)), a bound, or what the dynamic
    programme says, which is less. The bound costs proposals, at most its quotient by the sum of all outputs'
    weights, of which two lower bounds are at hand; the programme costs a table.
    """
    cells, count = len(desk.order), len(sets.sums)
    reference = 0.0
    for s in range(count):
        cross = cells * most_alike(levels, sets.counts[s], desk.ranked) - x[0] * sets.sums[s]
        desk.best[s] = similarity(cells, x[0], x[1], sets.sums[s], sets.spreads[s], cross)
        reference = max(reference, desk.best[s])
    desk.factor[0] = exp_minus(epsilon * reference)
    desk.weights[0] = desk.factor[0] * float(len(levels)) ** cells
    least = WORTH_A_TABLE * max(1.0, desk.weights[0])
    for s in range(count):
        desk.weights[s + 1] = 0.0
        if desk.best[s] > 0.0:
            factor = max(LEAST_FACTOR, exp_minus(epsilon * (reference - desk.best[s])))
            desk.factor[s + 1] = factor
            desk.weights[s + 1] = sets.orders[s] * factor
            if desk.weights[s + 1] > least:
                desk.weights[s + 1] = factor * tabulate(s, x, levels, sets, epsilon, desk)
                desk.factor[s + 1] = -factor  # the sign says that the set has a table
    return reference


def most_alike(levels, counts, ranked):
    """Return the largest Σxy of all arrangements: both in rising order."""
    total, i = 0, 0
    for j in range(len(levels)):
        for _ in range(counts[j]):
            total += ranked[i] * levels[j]
            i += 1
    return total


def tabulate(s, x, levels, sets, epsilon, desk):
    """Fill steps and table of set s and return Σ e^(-ε′(best - SSIM)) over its arrangements.

    Entry r of the table (counts r remain, in mixed radix) is the sum over arrangements of the last Σr cells.
    """
    cells, counts = len(desk.order), sets.counts[s]
    step_down(epsilon * slope(cells, x[0], x[1], sets.sums[s], sets.spreads[s]), levels, counts, desk)
    states = 1
    for j in range(len(counts)):
        desk.strides[j], desk.left[j] = states, 0
        states *= counts[j] + 1
    desk.table[0], remaining = 1.0, 0
    for state in range(1, states):
        j = 0
        while desk.left[j] == counts[j]:
            remaining -= counts[j]
            desk.left[j] = 0
            j += 1
        desk.left[j] += 1
        remaining += 1
        total = 0.0
        for j in range(len(counts)):
            if desk.left[j] > 0:
                total += desk.steps[cells - remaining, j] * desk.table[state - desk.strides[j]]
        desk.table[state] = total
    return desk.table[states - 1]


def step_down(rate, levels, counts, desk):
    """Fill steps[i, j]: by how much weight falls if cell i of the order shows level j instead of its own.

    Sorted against sorted is best. Between two of the levels lies an edge, the last true level of the lower
    one's cells. With the optimal dual prices u, v of that assignment, u_i + v_j - x_i·y_j is the sum over the
    edges between cell i's own level and j of (gap between the levels)·|x_i - edge|: at least 0, and over all
    cells of an arrangement it adds up to what Σxy falls short.
    """
    end = 0
    for j in range(len(counts)):
        end += counts[j]
        desk.edges[j] = desk.ranked[end - 1] if end > 0 else 0
    i = 0
    for own in range(len(counts)):
        for _ in range(counts[own]):
            desk.steps[i, own] = 1.0
            step_away(i, own, 1, rate, levels, counts, desk)
            step_away(i, own, -1, rate, levels, counts, desk)
            i += 1


def step_away(i, own, direction, rate, levels, counts, desk):
    """Fill the steps of cell i to one side; none below 2^-30, which only makes proposals likelier."""
    weight, last, j = 1.0, own, own + direction
    while 0 <= j < len(counts):
        if counts[j] > 0:
            if weight > LEAST_STEP:
                distance = abs(desk.ranked[i] - desk.edges[min(j, last)])
                weight *= exp_minus(rate * float(abs(levels[j] - levels[last]) * distance))
            desk.steps[i, j] = max(weight, LEAST_STEP)
            last = j
        j += direction


def arrange(option, x, levels, sets, law, word, desk, shown, trace):
    """Propose an output of this option, cell by cell.

    Return the product of what its choices deserve, over the weight that it has in floating point; 0 where a
    word fell on what is left over.
    """
    tabulated = desk.factor[option] < 0.0
    state = 0
    if tabulated:
        tabulate(option - 1, x, levels, sets, law.epsilon, desk)
    for j in range(len(levels)):
        desk.left[j] = sets.counts[option - 1, j] if option > 0 else 1
        state += desk.left[j] * desk.strides[j] if tabulated else 0
    fit = 1.0 / abs(desk.factor[option])
    for i in range(len(desk.order)):
        for j in range(len(levels)):
            desk.choice[j] = float(desk.left[j])
            if tabulated and desk.left[j] > 0:
                desk.choice[j] = desk.steps[i, j] * desk.table[state - desk.strides[j]]
        j, width, deserved, _ = choose(desk.choice, len(levels), word[i + 1], law.whole)
        if j < 0:
            return 0.0
        shown[desk.order[i]], trace[i + 1] = j, width
        fit *= deserved
        if tabulated:
            fit /= desk.steps[i, j]
            state -= desk.strides[j]
        if option > 0:
            desk.left[j] -= 1
    return fit

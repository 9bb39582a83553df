"""Tables of the dynamic programme: total weights of all arrangements of a multiset (docs: ssim-exponential).

The functions run plain or compiled (`noise.backend.loops`).
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import exp_minus, slope

LEAST_STEP = 2.0**-30  # smallest weight of a step


def tabulate(s, x, levels, sets, epsilon, work):
    """Return Σ e^(-ε′(best - SSIM)) over arrangements of multiset s, from its table, made if missing.

    Entry r of the table (r are the remaining counts, in mixed radix) is the sum over arrangements of the last
    Σr cells. If the workspace is full, all other tables are discarded.
    """
    cells, count = len(work.order), len(levels)
    states = stride(s, sets.counts, work.strides)
    if work.places[s] < 0:
        needed = cells * count + states
        if work.used[0] + needed > len(work.room):
            work.places[:] = -1
            work.used[0] = 0
        work.places[s] = work.used[0]
        work.used[0] += needed
        rate = epsilon * slope(cells, x[0], x[1], sets.sums[s], sets.spreads[s])
        steps = work.room[work.places[s] : work.places[s] + cells * count]
        step_down(rate, levels, sets.counts, s, work.ranked, work.edges, steps)
        table = work.room[work.places[s] + cells * count : work.used[0]]
        add_up(s, sets.counts, cells, steps, work.strides, work.left, table)
    return work.room[work.places[s] + cells * count + states - 1]


def stride(s, counts, strides):
    """Fill in the distances between entries whose counts differ by one, and return the number of entries."""
    states = 1
    for j in range(len(strides)):
        strides[j] = states
        states *= counts[s, j] + 1
    return states


def add_up(s, counts, cells, steps, strides, left, table):
    """Fill the table of multiset s in runs of entries that differ in the first count only."""
    count, run = len(strides), counts[s, 0] + 1
    left[:] = 0
    table[:] = 0.0
    table[0] = 1.0
    start, first = 0, cells
    while start < len(table):
        for j in range(1, count):
            if left[j] > 0:
                before, row = start - strides[j], first * count + j
                for k in range(run):
                    table[start + k] += steps[row - k * count] * table[before + k]
        for k in range(1, run):
            table[start + k] += steps[(first - k) * count] * table[start + k - 1]
        start += run
        j = 1
        while j < count and left[j] == counts[s, j]:
            first += left[j]
            left[j] = 0
            j += 1
        if j < count:
            left[j] += 1
            first -= 1


def step_down(rate, levels, counts, s, ranked, edges, steps):
    """Fill steps[i·levels + j]: the factor on the weight if cell i of the order shows level j, not its own.

    Sorted against sorted is best. Between adjacent levels in use lies an edge: the last true level of the
    lower one's cells. With the optimal dual prices u, v of that assignment, u_i + v_j - x_i·y_j is the sum
    over the edges between cell i's own level and j of (gap between the levels)·|x_i - edge|: at least 0, and
    summed over all cells of an arrangement it is the difference of Σxy from its maximum.
    """
    end = 0
    for j in range(len(levels)):
        end += counts[s, j]
        edges[j] = ranked[end - 1] if end > 0 else 0
    i = 0
    for own in range(len(levels)):
        for _ in range(counts[s, own]):
            steps[i * len(levels) + own] = 1.0
            for direction in (1, -1):
                step_away(i, own, direction, rate, levels, counts, s, ranked, edges, steps)
            i += 1


def step_away(i, own, direction, rate, levels, counts, s, ranked, edges, steps):
    """Fill the steps of cell i to one side; none is below 2^-30, which only makes proposals more likely."""
    weight, last, j = 1.0, own, own + direction
    while 0 <= j < len(levels):
        if counts[s, j] > 0:
            if weight > LEAST_STEP:
                distance = abs(ranked[i] - edges[min(j, last)])
                weight *= exp_minus(rate * float(abs(levels[j] - levels[last]) * distance))
            steps[i * len(levels) + j] = max(weight, LEAST_STEP)
            last = j
        j += direction

"""Counts, then arrangement: propose a multiset of levels, then an order of it (docs: ssim-exponential).

For a fixed multiset Σy and Σy² are constants, SSIM is linear in Σxy, and exp(ε′·SSIM) is a product over
cells, which a dynamic programme over the counts that remain sums and draws from. The functions
run as they stand or compiled (`noise.backend.loops`).
"""

from __future__ import annotations

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
)
from dpveil.mechanisms.pixel.ssim.tables import tabulate
from dpveil.mechanisms.pixel.ssim.weights import rank, weigh

HALF = 31
MASK = (1 << HALF) - 1
"""Two choices take a word of 62 bits."""


def count_then_arrange(windows, levels, sets, law, words, desk, draws):
    """Propose for one window after the other until a proposal is accepted or the words are used up.

    Whose words they are does not matter: each proposal takes the next ones, and a window that they do not
    reach, or leave in the middle, starts again with fresh ones. Option 0 proposes every output alike and
    shows those of quality 0; option s + 1 proposes arrangements of multiset s and shows those of positive
    quality.
    """
    attempt, status = 0, draws.status
    for w in range(len(windows)):
        if attempt == len(words):
            break
        x = moments(windows[w])
        rank(windows[w], desk)
        reference = weigh(x, levels, sets, law.epsilon, desk)
        total = cut(desk.weights, desk.ends, law.whole)
        draws.scale[w, 0], draws.scale[w, 1] = law.keep / total, reference
        found = x, reference, total
        while attempt < len(words) and status[w] == AGAIN:
            row = words[attempt]
            status[w] = propose(w, windows, found, levels, sets, law, row, desk, draws.shown, draws.trace)
            attempt += 1


def propose(w, windows, found, levels, sets, law, word, desk, shown, trace):
    """Propose one output for window w, write it and its evidence, and return what becomes of it.

    `found` are the window's moments, its reference quality and the sum of its options' weights.
    """
    x, reference, total = found
    option, width = find(desk.ends, part(word, 0))
    if option < 0:
        return AGAIN
    fit = desk.weights[option] * law.whole / (total * width)
    if desk.factor[option] < 0.0:
        tabulate(option - 1, x, levels, sets, law.epsilon, desk)
        fit *= arrange(w, option - 1, levels, sets.counts, law.whole, word, desk, shown, trace)
    else:
        fit *= arrange_alike(w, option - 1, levels, sets.counts, word, desk, shown, trace)
    if fit == 0.0:
        return AGAIN
    near = seen(w, option - 1, x, levels, sets, desk, shown)
    if (near > 0.0) != (option > 0):
        return AGAIN
    gap = law.epsilon * max(0.0, reference - max(0.0, near))
    trace[w, 0], trace[w, -1] = width, word[-1]
    verdict = decide(word[-1], law.keep * fit * exp_minus(gap), law.margin)
    return UNSURE if verdict == SHOWN and gap >= FARTHEST else verdict


def part(word, i):
    """Return the number of `HALF` bits that decides choice i of a proposal."""
    return (word[i >> 1] >> (HALF * (i & 1))) & MASK


def seen(w, s, x, levels, sets, desk, shown):
    """Return SSIM of the proposal for window w: of set s, whose sums are known, or with -1 of any."""
    cells, y_sum, y_squares, products = len(desk.order), 0, 0, 0
    for i in range(cells):
        products += desk.ranked[i] * levels[shown[w, desk.order[i]]]
    if s >= 0:
        return similarity(
            cells, x[0], x[1], sets.sums[s], sets.spreads[s], cells * products - x[0] * sets.sums[s]
        )
    for i in range(cells):
        level = levels[shown[w, i]]
        y_sum += level
        y_squares += level * level
    y_spread = cells * y_squares - y_sum * y_sum
    return similarity(cells, x[0], x[1], y_sum, y_spread, cells * products - x[0] * y_sum)


def arrange(w, s, levels, counts, whole, word, desk, shown, trace):
    """Propose an arrangement of set s by its table, cell by cell, for window w.

    Return the product of what its choices deserve, over the weight that it has in floating point; 0 where a
    word fell on what is left over.
    """
    count, room, left, choice, strides = len(levels), desk.room, desk.left, desk.choice, desk.strides
    row = desk.places[s]
    entry, fit = row + len(desk.order) * count, 1.0 / abs(desk.factor[s + 1])
    for j in range(count):
        left[j] = counts[s, j]
        entry += left[j] * strides[j]
    for i in range(len(desk.order)):
        for j in range(count):
            choice[j] = room[row + j] * room[entry - strides[j]] if left[j] > 0 else 0.0
        j, width, deserved, _ = choose(choice, count, part(word, i + 1), whole)
        if j < 0:
            return 0.0
        shown[w, desk.order[i]], trace[w, i + 1] = j, width
        fit *= deserved / room[row + j]
        entry -= strides[j]
        row += count
        left[j] -= 1
    return fit


def arrange_alike(w, s, levels, counts, word, desk, shown, trace):
    """Propose an arrangement of set s, or with -1 any output, all of them alike; return what `arrange` does.

    A level is met by its share of a word's values: no table, no rounding.
    """
    left, shares = desk.left, desk.shares
    remaining = len(desk.order) if s >= 0 else len(levels)
    for j in range(len(levels)):
        left[j] = counts[s, j] if s >= 0 else 1
    for i in range(len(desk.order)):
        drawn, share, end, chosen = part(word, i + 1), shares[remaining], 0, 0
        for j in range(len(levels)):
            end += left[j] * share
            chosen += 1 if end <= drawn else 0
        if chosen == len(levels):
            return 0.0
        shown[w, desk.order[i]], trace[w, i + 1] = chosen, left[chosen] * share
        if s >= 0:
            left[chosen] -= 1
            remaining -= 1
    return desk.alike[1 if s >= 0 else 0] / desk.factor[s + 1]

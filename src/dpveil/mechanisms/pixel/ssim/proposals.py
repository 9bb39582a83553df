"""Both ways to propose outputs (docs: ssim-exponential); the functions run plain or compiled
(`noise.backend.loops`).

*Rejection*: from all outputs uniformly. `windows` are the true levels, one row per window; `levels` the
possible output levels; `words` are uniform 62-bit integers, a row for each window and attempt.

*Counts*: first a multiset of levels, then an arrangement of it. For a fixed multiset Σy and Σy² are constant,
SSIM is linear in Σxy, and exp(ε′·SSIM) is a product over cells, which dynamic programming over the remaining
counts sums and draws from.
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import (
    FARTHEST,
    REDRAW,
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


def reject(windows, levels, law, words, per_word, draws):
    """Propose uniformly random outputs; accept with probability exp(-ε′·(1 - quality))."""
    cells, count = windows.shape[1], len(levels)
    end, shift = words_that_count(per_word, count), power_of_two(count)
    unlike = exp_minus(law.epsilon)  # for quality 0, as for half of all proposals
    for w in range(len(windows)):
        window, shown = windows[w], draws.shown[w]
        x_sum, x_spread = moments(window)
        for attempt in range(words.shape[1]):
            word = words[w, attempt]
            if not spell(word, per_word, count, shift, end, shown):
                continue
            y_sum, y_spread, cross = compare(window, x_sum, levels, shown)
            chance = unlike
            if alike(cells, cross):
                near = similarity(cells, x_sum, x_spread, y_sum, y_spread, cross)
                chance = exp_minus(law.epsilon * (1.0 - near))
            verdict = decide(word[-1], chance, law.margin)
            if verdict != REDRAW:
                draws.status[w] = verdict
                draws.trace[w, -1] = word[-1]
                break


def words_that_count(per_word, count):
    """Return the largest multiple of count^per_word up to 2^62; words from there on are rejected."""
    base = 1
    for _ in range(per_word):
        base *= count
    return (1 << 62) // base * base


def power_of_two(count):
    """Return log₂(count) if `count` is a power of two, else 0."""
    shift = 0
    while count > 1 << shift:
        shift += 1
    return shift if count == 1 << shift else 0


def spell(word, per_word, count, shift, end, shown):
    """Write uniform level indices, `per_word` from each word; return False for a word at or above `end`."""
    for start in range(0, len(shown), per_word):
        drawn = int(word[start // per_word])
        if drawn >= end:
            return False
        for i in range(start, min(start + per_word, len(shown))):
            rest = drawn >> shift if shift > 0 else drawn // count
            shown[i] = drawn - rest * count
            drawn = rest
    return True


def alike(cells, cross):
    """Return whether SSIM is positive, exactly: only its second factor can be negative (`quality`)."""
    return 800 * cross + 23409 * cells * cells > 0


def compare(window, x_sum, levels, shown):
    """Return Σy, nΣy² - (Σy)² and nΣxy - ΣxΣy."""
    cells = len(window)
    total, squares, cross = 0, 0, 0
    for i in range(cells):
        level = int(levels[shown[i]])
        total += level
        squares += level * level
        cross += int(window[i]) * level
    return total, cells * squares - total * total, cells * cross - x_sum * total


HALF = 31  # bits of one choice; two choices share a 62-bit word
MASK = (1 << HALF) - 1  # mask of these bits


def count_then_arrange(windows, levels, sets, law, words, work, draws):
    """Propose for one window after another until a proposal is accepted or the words are used up.

    Words are not assigned to windows: each proposal takes the next ones, and a window whose words run out
    starts again with fresh ones. Option 0 proposes every output with the same probability and accepts those
    of quality 0; option s + 1 proposes arrangements of multiset s and accepts those of positive quality.
    """
    attempt, status = 0, draws.status
    for w in range(len(windows)):
        if attempt == len(words):
            break
        x = moments(windows[w])
        rank(windows[w], work)
        reference = weigh(x, levels, sets, law.epsilon, work)
        total = cut(work.weights, work.ends, law.whole)
        draws.scale[w, 0], draws.scale[w, 1] = law.keep / total, reference
        found = x, reference, total
        while attempt < len(words) and status[w] == REDRAW:
            row = words[attempt]
            status[w] = propose(w, windows, found, levels, sets, law, row, work, draws.shown, draws.trace)
            attempt += 1


def propose(w, windows, found, levels, sets, law, word, work, shown, trace):
    """Propose one output for window w, write it with its trace, and return its status.

    `found` are the window's moments, its reference quality and the sum of its options' weights.
    """
    x, reference, total = found
    option, width = find(work.ends, part(word, 0))
    if option < 0:
        return REDRAW
    fit = work.weights[option] * law.whole / (total * width)
    if work.factor[option] < 0.0:
        tabulate(option - 1, x, levels, sets, law.epsilon, work)
        fit *= arrange(w, option - 1, levels, sets.counts, law.whole, word, work, shown, trace)
    else:
        fit *= arrange_alike(w, option - 1, levels, sets.counts, word, work, shown, trace)
    if fit == 0.0:
        return REDRAW
    near = proposal_ssim(w, option - 1, x, levels, sets, work, shown)
    if (near > 0.0) != (option > 0):
        return REDRAW
    gap = law.epsilon * max(0.0, reference - max(0.0, near))
    trace[w, 0], trace[w, -1] = width, word[-1]
    verdict = decide(word[-1], law.keep * fit * exp_minus(gap), law.margin)
    return UNSURE if verdict == SHOWN and gap >= FARTHEST else verdict


def part(word, i):
    """Return the `HALF` bits that decide choice i of a proposal."""
    return (word[i >> 1] >> (HALF * (i & 1))) & MASK


def proposal_ssim(w, s, x, levels, sets, work, shown):
    """Return SSIM of the proposal for window w, a member of multiset s; s = -1 means any output."""
    cells, y_sum, y_squares, products = len(work.order), 0, 0, 0
    for i in range(cells):
        products += work.ranked[i] * levels[shown[w, work.order[i]]]
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


def arrange(w, s, levels, counts, whole, word, work, shown, trace):
    """Propose an arrangement of multiset s for window w from its table, cell by cell.

    Return the product of the choices' importance weights over the arrangement's weight in floating point, or
    0 if a word met no outcome.
    """
    count, room, left, choice, strides = len(levels), work.room, work.left, work.choice, work.strides
    row = work.places[s]
    entry, fit = row + len(work.order) * count, 1.0 / abs(work.factor[s + 1])
    for j in range(count):
        left[j] = counts[s, j]
        entry += left[j] * strides[j]
    for i in range(len(work.order)):
        for j in range(count):
            choice[j] = room[row + j] * room[entry - strides[j]] if left[j] > 0 else 0.0
        j, width, deserved, _ = choose(choice, count, part(word, i + 1), whole)
        if j < 0:
            return 0.0
        shown[w, work.order[i]], trace[w, i + 1] = j, width
        fit *= deserved / room[row + j]
        entry -= strides[j]
        row += count
        left[j] -= 1
    return fit


def arrange_alike(w, s, levels, counts, word, work, shown, trace):
    """Propose a uniformly random arrangement of multiset s, or with -1 any output; return as `arrange`.

    Each level gets an equal share of a word's values: no table and no rounding.
    """
    left, shares = work.left, work.shares
    remaining = len(work.order) if s >= 0 else len(levels)
    for j in range(len(levels)):
        left[j] = counts[s, j] if s >= 0 else 1
    for i in range(len(work.order)):
        drawn, share, end, chosen = part(word, i + 1), shares[remaining], 0, 0
        for j in range(len(levels)):
            end += left[j] * share
            chosen += 1 if end <= drawn else 0
        if chosen == len(levels):
            return 0.0
        shown[w, work.order[i]], trace[w, i + 1] = chosen, left[chosen] * share
        if s >= 0:
            left[chosen] -= 1
            remaining -= 1
    return work.alike[1 if s >= 0 else 0] / work.factor[s + 1]

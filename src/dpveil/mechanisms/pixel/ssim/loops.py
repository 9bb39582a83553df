"""Proposals from all outputs uniformly, and from the list of all outputs (docs: ssim-exponential).

`windows` are the true levels, one row per window; `levels` the possible output levels; `words` are uniform
62-bit integers, a row for each window and attempt. The functions run plain or compiled
(`noise.backend.loops`).
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import (
    AGAIN,
    FARTHEST,
    SHOWN,
    UNSURE,
    choose,
    decide,
    exp_minus,
    moments,
    similarity,
)

NO_UNDERFLOW = 300.0


# Rejection: every output equally likely


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
            if verdict != AGAIN:
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


# Enumeration: every output by its weight, in a time that no pixel changes


def enumerate_all(windows, levels, law, words, listing, draws):
    """Choose a block of outputs by its total weight, then one of them; in constant time, for all words."""
    cells, count = windows.shape[1], len(levels)
    low, head, tail, blocks, block = listing
    for w in range(len(windows)):
        x = moments(windows[w])
        partial_sums(windows[w, : cells - low], levels, head)
        partial_sums(windows[w, cells - low :], levels, tail)
        reference = 1.0 if law.epsilon <= NO_UNDERFLOW else highest(cells, x, head, tail)
        for o in range(len(blocks)):
            blocks[o] = weigh_block(cells, x, head, o, tail, law.epsilon, reference, block)
        for attempt in range(words.shape[1]):
            word = words[w, attempt]
            outer, wide, deserved, total = choose(blocks, len(blocks), word[0], law.whole)
            weigh_block(cells, x, head, max(outer, 0), tail, law.epsilon, reference, block)
            inner, narrow, own, _ = choose(block, len(block), word[1], law.whole)
            verdict = decide(word[2], law.keep * deserved * own, law.margin)
            one, other = head[max(outer, 0)], tail[max(inner, 0)]
            near = near_of(cells, x, one[0] + other[0], one[1] + other[1], one[2] + other[2])
            gap = law.epsilon * max(0.0, reference - near)
            if draws.status[w] == AGAIN and outer >= 0 and inner >= 0:
                draws.status[w] = UNSURE if verdict == SHOWN and gap >= FARTHEST else verdict
                draws.trace[w, 0], draws.trace[w, 1], draws.trace[w, -1] = wide, narrow, word[2]
                draws.scale[w, 0], draws.scale[w, 1] = law.keep / total, reference
                write_digits(outer, inner, low, count, draws.shown[w])


def partial_sums(window, levels, sums):
    """Fill in Σy, Σy² and Σxy of every assignment of levels to these cells, the last cell changing
    fastest.
    """
    sums[0, :] = 0
    done = 1
    for i in range(len(window)):
        for old in range(done - 1, -1, -1):
            for j in range(len(levels) - 1, -1, -1):
                level = int(levels[j])
                new = old * len(levels) + j
                sums[new, 2] = sums[old, 2] + int(window[i]) * level
                sums[new, 1] = sums[old, 1] + level * level
                sums[new, 0] = sums[old, 0] + level
        done *= len(levels)


def near_of(cells, x, y_sum, y_squares, products):
    """Return max(0, SSIM) of the output with these sums."""
    y_spread, cross = cells * y_squares - y_sum * y_sum, cells * products - x[0] * y_sum
    return max(0.0, similarity(cells, x[0], x[1], y_sum, y_spread, cross))


def highest(cells, x, head, tail):
    """Return the highest quality of all outputs."""
    best = 0.0
    for o in range(len(head)):
        for i in range(len(tail)):
            sums = head[o, 0] + tail[i, 0], head[o, 1] + tail[i, 1], head[o, 2] + tail[i, 2]
            best = max(best, near_of(cells, x, *sums))
    return best


def weigh_block(cells, x, head, o, tail, epsilon, reference, block):
    """Fill `block` with the weights of the outputs whose first cells are assignment o, and return their
    sum.
    """
    total, y_sum, y_squares, products = 0.0, head[o, 0], head[o, 1], head[o, 2]
    for i in range(len(block)):
        near = near_of(cells, x, y_sum + tail[i, 0], y_squares + tail[i, 1], products + tail[i, 2])
        block[i] = exp_minus(epsilon * max(0.0, reference - near))
        total += block[i]
    return total


def write_digits(outer, inner, low, count, shown):
    """Write the level indices of an output."""
    for i in range(len(shown) - 1, -1, -1):
        rest = inner if i >= len(shown) - low else outer
        shown[i] = rest % count
        if i >= len(shown) - low:
            inner = rest // count
        else:
            outer = rest // count

"""Rejection: proposals from all outputs uniformly (docs: ssim-exponential).

`windows` are the true levels, one row per window; `levels` the possible output levels; `words` are uniform
62-bit integers, a row for each window and attempt. The functions run plain or compiled
(`noise.backend.loops`).
"""

from __future__ import annotations

from dpveil.mechanisms.pixel.ssim.arithmetic import (
    AGAIN,
    decide,
    exp_minus,
    moments,
    similarity,
)


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

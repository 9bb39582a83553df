"""Plain loops over patches of a picture, which `backend.loops` compiles: how alike they are, and their votes.

Pictures are int32, h × 3w: red, green and blue of each pixel side by side, with a margin of `REACH` pixels
all around. Nothing is reordered, so that compiler and interpreter give the same numbers.
"""

from __future__ import annotations

import numpy as np

REACH = 3
"""Pixels from the middle of a patch to its edge."""


def far_apart(picture, weights, share, guide, near, y, x, v, u, best):
    """Return how far the patch at (v, u) is from that at (y, x); more than `best` may be any number."""
    fixed = near * ((y - v) * (y - v) + (x - u) * (x - u))
    for c in range(3):
        off = guide[y, x, c] - guide[v, u, c]
        fixed += off * off
    total = 0
    for row in range(2 * REACH + 1):
        for at in range(3 * (2 * REACH + 1)):
            apart = picture[y + row, 3 * x + at] - picture[v + row, 3 * u + at]
            total += weights[y + row, 3 * x + at] * apart * apart
        if fixed + share * total >= best:
            break
    return fixed + share * total


def search(picture, weights, shares, guide, near, sources, targets, found, apart, rounds, farthest):
    """Improve `found`, the source (y, x) of each of the `targets`, as PatchMatch does.

    A source of a neighbour, moved along, is tried, and then sources ever nearer to the best so far, up to
    `farthest` pixels away. `sources` holds the class of each pixel whose patch may be copied, or 0; a target
    begins with a source of its class. `apart` receives how far the patches are from each other.
    Source: Barnes et al. 2009, "PatchMatch", section 3.
    """
    height, width = sources.shape
    state = 1
    for turn in range(rounds):
        step = 1 - 2 * (turn % 2)
        for k in range(len(targets)):
            at = k if step > 0 else len(targets) - 1 - k
            y, x = targets[at, 0], targets[at, 1]
            v, u = found[y, x, 0], found[y, x, 1]
            share, kind = shares[y, x], sources[v, u]
            best = far_apart(picture, weights, share, guide, near, y, x, v, u, np.inf)
            reach = farthest
            for trial in range(2 + 16):
                if trial < 2:
                    a, b = y - step * (1 - trial), x - step * trial
                    if not (0 <= a < height and 0 <= b < width) or found[a, b, 0] < 0:
                        continue
                    a, b = found[a, b, 0] + y - a, found[a, b, 1] + x - b
                elif reach < 1:
                    break
                else:
                    state = state * 48271 % 2147483647
                    a = v + state % (2 * reach + 1) - reach
                    state = state * 48271 % 2147483647
                    b = u + state % (2 * reach + 1) - reach
                    reach //= 2
                if 0 <= a < height and 0 <= b < width and sources[a, b] == kind:
                    off = far_apart(picture, weights, share, guide, near, y, x, a, b, best)
                    if off < best:
                        best, v, u = off, a, b
            found[y, x, 0], found[y, x, 1], apart[y, x] = v, u, best


def vote(picture, targets, found, counts, kernel, sums):
    """Add to `sums` (with the margin; colours and their weight) what the patch of each target says."""
    for k in range(len(targets)):
        y, x = targets[k, 0], targets[k, 1]
        v, u = found[y, x, 0], found[y, x, 1]
        for row in range(2 * REACH + 1):
            for column in range(2 * REACH + 1):
                weight = counts[y, x] * kernel[row, column]
                for c in range(3):
                    sums[y + row, x + column, c] += weight * picture[v + row, 3 * (u + column) + c]
                sums[y + row, x + column, 3] += weight

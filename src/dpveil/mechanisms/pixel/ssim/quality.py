"""SSIM of one window, exactly, and public tables of the possible outputs of a window.

The convention is that of Wang, Bovik, Sheikh & Simoncelli 2004, equation 13, with equal weights that sum to
one (so variances and the covariance divide by n, not by n - 1), C1 = (0.01·255)² and C2 = (0.03·255)². With
sums over the n levels of a window, x true and y shown, SSIM = A·B / (C·D) for the integers

    A = 800·ΣxΣy + 2601n²          B = 800·(nΣxy - ΣxΣy) + 23409n²
    C = 400·((Σx)² + (Σy)²) + 2601n²   D = 400·(nΣx² - (Σx)² + nΣy² - (Σy)²) + 23409n²

A, C and D are positive, so B alone decides the sign. All are below 2^53 for windows of up to 64 × 64.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Final, NamedTuple

import numpy as np

from dpveil.core.array_types import Float64, Int16, Int64, UInt8, UInt16
from dpveil.mechanisms.pixel.base import TOP
from dpveil.noise.bits import SeededBits

C1: Final = 6.5025
C2: Final = 58.5225
GREY: Final = 128
MOST_SETS: Final = 1 << 20  # largest number of multisets that is listed
FIXED_LEVELS: Final = 1 << 20
"""Levels of the sample from which an error is estimated if there are more multisets."""
LARGEST_LOG: Final = 700.0  # largest logarithm of a number of arrangements, as doubles overflow above e^709


def shown_levels(count: int) -> UInt8[np.ndarray, " count"]:
    """Return the `count` possible output levels, 2 to 256, evenly spaced over 0..255 and rounded half up.

    >>> shown_levels(4).tolist(), shown_levels(8).tolist()
    ([0, 85, 170, 255], [0, 36, 73, 109, 146, 182, 219, 255])
    """
    steps = np.arange(count)
    return ((2 * TOP * steps + count - 1) // (2 * (count - 1))).astype(np.uint8)


def quality(true: UInt8[np.ndarray, " n"], shown: UInt8[np.ndarray, " n"]) -> Fraction:
    """Return max(0, SSIM) of one window, exactly (Croft 2022 §5.2 with errata E2).

    >>> one, other = np.array([0, 255], np.uint8), np.array([255, 0], np.uint8)
    >>> quality(one, one), quality(one, other)
    (Fraction(1, 1), Fraction(0, 1))
    """
    x, y = [int(v) for v in true], [int(v) for v in shown]
    n, x1, y1 = len(x), sum(x), sum(y)
    cross = n * sum(a * b for a, b in zip(x, y, strict=True)) - x1 * y1
    spread = n * (sum(a * a for a in x) + sum(b * b for b in y)) - x1 * x1 - y1 * y1
    one, two = 2601 * n * n, 23409 * n * n
    structure = Fraction(800 * cross + two, 400 * spread + two)
    return max(Fraction(0), structure) * Fraction(800 * x1 * y1 + one, 400 * (x1 * x1 + y1 * y1) + one)


class Sets(NamedTuple):
    """All multisets of n out of k′ levels: counts, numbers of arrangements, Σy and nΣy² - (Σy)².

    `below` is the number of cells below each level but the lowest. Sums are stored as doubles as well.
    """

    counts: Int16[np.ndarray, "sets levels"]
    below: UInt16[np.ndarray, "gaps sets"]
    orders: Float64[np.ndarray, " sets"]
    log_orders: Float64[np.ndarray, " sets"]
    sums: Int64[np.ndarray, " sets"]
    spreads: Int64[np.ndarray, " sets"]
    float_sums: Float64[np.ndarray, " sets"]
    float_spreads: Float64[np.ndarray, " sets"]


def number_of_sets(cells: int, levels: int) -> int:
    """Return the number of multisets."""
    return comb(cells + levels - 1, cells)


def table_cells(cells: int, levels: int) -> int:
    """Return Σ Π (count + 1) over all multisets: the total size of the tables of the dynamic programme."""
    return comb(cells + 2 * levels - 1, cells)


@lru_cache(maxsize=8)
def list_sets(cells: int, levels: int) -> Sets:
    """Return all multisets, `number_of_sets` of them, which must be at most `MOST_SETS`."""
    counts = np.zeros((1, 0), np.int64)
    left = np.array([cells])
    for _ in range(levels - 1):
        parent = np.repeat(np.arange(len(left)), left + 1)
        first = np.cumsum(left + 1) - left - 1
        here = np.arange(len(parent)) - first[parent]
        counts, left = np.column_stack([counts[parent], here]), left[parent] - here
    counts = np.column_stack([counts, left])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, cells + 1)))])
    log_orders = log_factorial[cells] - log_factorial[counts].sum(axis=1)
    orders = np.exp(np.minimum(log_orders, LARGEST_LOG))
    shown = shown_levels(levels).astype(np.int64)
    sums = counts @ shown
    below = np.ascontiguousarray(counts.cumsum(axis=1)[:, :-1].T).astype(np.uint16)
    spreads = cells * (counts @ shown**2) - sums**2
    doubles = sums.astype(np.float64), spreads.astype(np.float64)
    return Sets(counts.astype(np.int16), below, orders, log_orders, sums, spreads, *doubles)


def error_on_grey(epsilon: float, cells: int, levels: int) -> float:
    """Return the root mean squared error on a window of mid-grey cells (level 128).

    There Σxy adds nothing to SSIM, so all arrangements of a multiset are equally likely. Above `MOST_SETS`
    multisets the error is estimated from about a million fixed levels, to about one per cent.
    """
    if number_of_sets(cells, levels) <= MOST_SETS:
        sets = list_sets(cells, levels)
        sums, spreads, log_weights = sets.sums, sets.spreads, sets.log_orders
    else:
        words = SeededBits(0, "error on grey").words(max(256, FIXED_LEVELS // cells) * cells)
        drawn = shown_levels(levels)[(words % np.uint64(levels)).astype(np.int64)].reshape(-1, cells)
        sums = drawn.sum(axis=1, dtype=np.int64)
        spreads = cells * (drawn.astype(np.int64) ** 2).sum(axis=1) - sums**2
        log_weights = np.zeros(len(sums))
    means, variances = sums / cells, spreads / cells**2
    alike = (2 * GREY * means + C1) / (GREY**2 + means**2 + C1) * C2 / (variances + C2)
    log_weights = log_weights + epsilon * alike
    weights = np.exp(log_weights - log_weights.max())
    return float(np.sqrt(weights @ (variances + (means - GREY) ** 2) / weights.sum()))

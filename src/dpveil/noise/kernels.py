"""Compiled kernels; each has a plain twin that gives the same result (see `backend`)."""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit, types


@njit("i8[:](u8[:, ::1], u8[:, ::1], i8[::1], i8, i8, i8[::1])", cache=True, nogil=True)
def laplace(words, packed, powers, total_bits, column_bits, out):
    """Fill `out` with signed geometric numbers; return the samples that need more bits."""
    columns = np.uint64((1 << column_bits) - 1)
    thresholds = (np.uint64(1) << np.uint64(total_bits)) - np.uint64(1) - columns
    tie, open_ = np.int64(columns), np.int64(columns) - 1
    last = len(packed) - 1
    todo = np.empty(len(out), np.int64)
    count = 0
    for i in range(len(out)):
        size = np.int64(0)
        unsettled = False
        for digit in range(last + 1):
            word = words[digit, i]
            column = word & columns
            entry = packed[digit, column]
            below = (word & thresholds) < (entry & thresholds)
            outcome = np.int64(column) if below else np.int64(entry & columns)
            unsettled |= outcome == tie
            size += outcome * powers[digit]
        unsettled |= outcome == open_
        negative = np.int64(words[0, i] >> np.uint64(63))
        unsettled |= (negative == 1) & (size == 0)
        out[i] = (size ^ -negative) + negative
        todo[count] = i
        count += np.int64(unsettled)
    return todo[:count].copy()


@njit(
    [
        types.void(
            types.u8[:, ::1], types.i8, types.Array(kind, 1, "A", readonly=True), types.u8[::1], kind[:]
        )
        for kind in (types.i8, types.u1)
    ],
    cache=True,
    nogil=True,
)
def matrix(packed, column_bits, rows, words, out):
    """Fill `out` with one outcome per row number and word; both are of one type."""
    columns = np.uint64((1 << column_bits) - 1)
    thresholds = ~columns
    for i in range(len(out)):
        column = words[i] & columns
        entry = packed[rows[i], column]
        below = (words[i] & thresholds) < (entry & thresholds)
        out[i] = column if below else entry & columns


@njit("i8(i8[::1], u8[::1], f8, f8, f8, i8[::1])", cache=True, nogil=True)
def gaussian(proposals, words, sigma, centre, farthest, out):
    """Fill `out` with the proposals that are accepted and return how many; -1 where one is unsure."""
    count, unsure = 0, False
    for i in range(len(proposals)):
        size = float(abs(proposals[i]))
        ratio = (size - centre) / sigma
        level, drawn = exp(-(ratio * ratio) / 2) * 2.0**64, float(words[i])
        accepted = drawn < level * (1 - 2.0**-36) - 2.0**13
        unsure |= (size > farthest) | (not accepted and drawn <= level * (1 + 2.0**-36) + 2.0**13)
        out[count] = proposals[i]
        count += np.int64(accepted)
    return -1 if unsure else count

"""Compiled kernels; each has a plain NumPy equivalent with the same result (see `backend`)."""

from __future__ import annotations

import numpy as np
from numba import types

from dpveil.noise.backend import jit


@jit("i8[:](u8[:, ::1], u8[:, ::1], i8[::1], i8, i8, i8[::1])")
def laplace(words, packed, powers, total_bits, column_bits, out):
    """Fill `out` with signed geometric integers; return the indices of samples that need more bits."""
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


@jit(
    [
        types.void(
            types.u8[:, ::1], types.i8, types.Array(kind, 1, "A", readonly=True), types.u8[::1], kind[:]
        )
        for kind in (types.i8, types.u1)
    ]
)
def matrix(packed, column_bits, rows, words, out):
    """Fill `out` with one outcome for each row number and word; `rows` and `out` have the same dtype."""
    columns = np.uint64((1 << column_bits) - 1)
    thresholds = ~columns
    for i in range(len(out)):
        column = words[i] & columns
        entry = packed[rows[i], column]
        below = (words[i] & thresholds) < (entry & thresholds)
        out[i] = column if below else entry & columns


@jit("i8[:](u8[:, ::1], u8[::1], u8[::1], i8, i8, i8, i8, i8[::1])")
def gaussian(words, packed, sure, total_bits, accept_bits, block_bits, blocks, out):
    """Fill `out` with integers proposed from blocks; return the indices that are not surely accepted."""
    columns = np.uint64(len(packed) - 1)
    thresholds = (np.uint64(1) << np.uint64(total_bits)) - np.uint64(1) - columns
    above, begun = np.uint64(total_bits), (np.uint64(1) << np.uint64(accept_bits)) - np.uint64(1)
    shift, last = np.uint64(63 - block_bits), len(words) - 1
    todo = np.empty(len(out), np.int64)
    count = 0
    for i in range(len(out)):
        word = words[0, i]
        column = word & columns
        entry = packed[column]
        below = (word & thresholds) < (entry & thresholds)
        outcome = column if below else entry & columns
        place = words[last, i] >> shift >> np.uint64(1)
        out[i] = ((np.int64(outcome) - blocks) << block_bits) + np.int64(place)
        todo[count] = i
        count += np.int64((word >> above & begun) >= sure[outcome])
    return todo[:count].copy()

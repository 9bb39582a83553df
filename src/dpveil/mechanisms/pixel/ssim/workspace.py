"""Work arrays of the loops, which allocate none of their own."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

LISTED_AT_ONCE: Final = 1024
"""Most outputs in a block."""
ROOM: Final = 1 << 10
"""Numbers of tables kept for one window: as many as fit into a core's cache."""


class Workspace(NamedTuple):
    """Work arrays for one window: sorted cells and their running sums, options, multisets, and tables.

    The steps and then the table of multiset s, if it has one, begin in `room` at `places[s]`, else -1; `used`
    is where free room begins. One of r equally likely cells or levels gets `shares[r]` of all values of a
    word; `alike` is the importance weight of these choices in total, for any output, and for arrangements.
    `heavy` lists options.
    """

    order: Int64[np.ndarray, " cells"]
    ranked: Int64[np.ndarray, " cells"]
    rising: Float64[np.ndarray, " sums"]
    weights: Float64[np.ndarray, " options"]
    ends: Int64[np.ndarray, " options"]
    best: Float64[np.ndarray, " sets"]
    factor: Float64[np.ndarray, " options"]
    strides: Int64[np.ndarray, " levels"]
    edges: Int64[np.ndarray, " levels"]
    left: Int64[np.ndarray, " levels"]
    choice: Float64[np.ndarray, " levels"]
    shares: Int64[np.ndarray, " cells"]
    alike: Float64[np.ndarray, " 2"]
    heavy: Int64[np.ndarray, " options"]
    room: Float64[np.ndarray, " numbers"]
    places: Int64[np.ndarray, " sets"]
    used: Int64[np.ndarray, " 1"]


def set_up(cells: int, sets: int, levels: int, whole: float) -> Workspace:
    """Return empty work arrays; the largest possible table is that of the most equal counts."""
    states = int((cells / levels + 1.0) ** levels + 1.0)
    shares = np.zeros(max(cells, levels) + 1, np.int64)
    for alike in range(1, len(shares)):
        shares[alike] = int(whole) // alike
    deserved = np.ones(2)
    for remaining in range(1, cells + 1):
        deserved[0] *= whole / (float(levels) * float(shares[levels]))
        deserved[1] *= whole / (float(remaining) * float(shares[remaining]))
    return Workspace(
        np.empty(cells, np.int64),
        np.empty(cells, np.int64),
        np.zeros(cells + 1),
        np.empty(sets + 1),
        np.empty(sets + 1, np.int64),
        np.empty(sets),
        np.empty(sets + 1),
        np.empty(levels, np.int64),
        np.empty(levels, np.int64),
        np.empty(levels, np.int64),
        np.empty(levels),
        shares,
        deserved,
        np.empty(sets + 1, np.int64),
        np.empty(max(ROOM, states + cells * levels)),
        np.empty(sets, np.int64),
        np.zeros(1, np.int64),
    )


class Listing(NamedTuple):
    """Work arrays for one window: Σy, Σy² and Σxy of its first cells and of its last `low` ones, and the
    weights.

    `blocks` has the total weight for each assignment of the first cells, `block` the weights of the outputs
    that share one.
    """

    low: int
    head: Int64[np.ndarray, "blocks 3"]
    tail: Int64[np.ndarray, "block 3"]
    blocks: Float64[np.ndarray, " blocks"]
    block: Float64[np.ndarray, " block"]


def set_up_listing(cells: int, levels: int) -> Listing:
    """Return work arrays for all outputs, in blocks."""
    low = 1
    while low < cells and levels ** (low + 1) <= LISTED_AT_ONCE:
        low += 1
    blocks, block = levels ** (cells - low), levels**low
    sums = np.empty((blocks, 3), np.int64), np.empty((block, 3), np.int64)
    return Listing(low, *sums, np.empty(blocks), np.empty(block))

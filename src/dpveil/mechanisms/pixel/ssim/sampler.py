"""Exact draws of windows: proposals with exactly known probabilities, and exactly decided rejection."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log2, prod
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64, UInt8

from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel.ssim import arithmetic, counted, loops, tables, weights
from dpveil.mechanisms.pixel.ssim.arithmetic import AGAIN, SHOWN, UNSURE, WORD, Draws, Law
from dpveil.mechanisms.pixel.ssim.quality import (
    list_sets,
    number_of_sets,
    quality,
    shown_levels,
    table_cells,
)
from dpveil.noise import backend
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import below_exp

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


MODULES: Final = (arithmetic, loops, tables, weights, counted)
"""The modules of the loops, in import order."""
FEWEST_WORDS: Final = 1 << 12
"""Fewest random words requested at once."""
MOST_WORDS: Final = 1 << 16
"""Most random words requested at once; between the two, half as many bytes as the image has."""
THREADS: Final = 2
STRIPS: Final = 2
"""Strips into which windows are divided, each with its own words; one thread may draw both."""
PLAIN_STEP: Final = 30
"""Table look-ups of plain NumPy that take as long as one plain step of a loop."""
MOST_LISTED: Final = 1 << 20
"""Most outputs of a window that are enumerated."""
MOST_TABLED: Final = 1 << 21
"""Most entries of all tables of the dynamic programme."""
MOST_CELLS_TABLED: Final = 25
"""Most cells of a window for the dynamic programme."""
MOST_PROPOSED: Final = 1 << 18
"""Most expected proposals per window for rejection sampling."""

SHARED: Final = 8
"""Proposals per window for which words are drawn, by way "counts"."""
MOST_SHARED: Final = 64
"""Most of these when few windows are left: some windows take one proposal, some a hundred."""

Loop = Callable[[Any, Any, Draws], None]


def ways(epsilon: float, cells: int, levels: int) -> dict[str, float]:
    """Return the feasible samplers at ε′ = `epsilon`, each with its measured cost in steps per window."""
    outputs, sets, entries = levels**cells, number_of_sets(cells, levels), table_cells(cells, levels)
    found = {}
    if outputs <= MOST_LISTED:
        found["enumeration"] = 4.0 * outputs
    if entries <= MOST_TABLED and cells <= MOST_CELLS_TABLED:
        found["counts"] = 300.0 + 13 * sets + levels * entries / 100  # few multisets need a table
    if epsilon <= log2(MOST_PROPOSED) / log2(exp(1)):
        found["rejection"] = exp(0.95 * epsilon) * 6 * cells
    return found


@dataclass(frozen=True)
class WindowSampler:
    """Draws outputs y of windows x of `cells` levels with P(y) ∝ exp(ε′·max(0, SSIM(x, y))), exactly.

    `way` is a key of `ways`. Tests pass fewer `word_bits` and a larger `margin`, which make choices coarse
    and undecided comparisons frequent without changing the law.
    """

    epsilon: Fraction
    cells: int
    levels: int
    way: str
    word_bits: int = WORD
    margin: float = 0.0

    def draw(self, windows: UInt8[np.ndarray, "n cells"], bits: BitSource) -> UInt8[np.ndarray, "n cells"]:
        """Return one output for each window, as levels 0..255."""
        shown = np.empty_like(windows)
        pending = np.arange(len(windows), dtype=np.int32)
        at_once = self._at_once(windows.size)
        runs = [self._loop(-(-len(windows) // STRIPS)) for _ in range(STRIPS)]
        with ThreadPoolExecutor(max(1, THREADS - 1)) as pool:
            while len(pending):
                kept = 0  # pending windows of all parts are moved to the front
                for start in range(0, len(pending), at_once):
                    part = pending[start : start + at_once]
                    attempts = self._attempts(len(part), at_once)
                    left = self._round(windows, part, attempts, shown, bits, runs, pool)
                    pending[kept : kept + len(left)] = left
                    kept += len(left)
                pending = pending[:kept]
        return shown

    def _at_once(self, size: int) -> int:
        """Return how many windows get random words at once, for an image with so many cells."""
        words = min(max(FEWEST_WORDS, size // 16), MOST_WORDS)
        if self.way == "counts":
            words += words * 3 // 4  # windows share them, and a round is expensive
        return max(1, words // (self._attempts(1, 1) * self._words))

    def _attempts(self, windows: int, at_once: int) -> int:
        """Return the proposals per window for which words are drawn; `at_once` windows fit into memory."""
        if self.way == "enumeration":
            return 2
        if self.way == "counts":
            return min(MOST_SHARED, SHARED * at_once // windows)
        return min(64, 6 + int(exp(min(5.0, float(self.epsilon))) / 4))

    @property
    def _choices(self) -> int:
        """Choices per proposal."""
        if self.way == "rejection":
            return -(-self.cells // self._cells_per_word)
        return 2 if self.way == "enumeration" else self.cells + 1

    @property
    def _words(self) -> int:
        """Random words per proposal, including the one that decides on it."""
        return 1 + (-(-self._choices // 2) if self.way == "counts" else self._choices)

    @property
    def _bits(self) -> int:
        """Bits per choice."""
        return min(self.word_bits, counted.HALF if self.way == "counts" else WORD)

    @property
    def _cells_per_word(self) -> int:
        return max(1, min(self.cells, int((WORD - 6) / log2(self.levels) + 1e-9)))

    def _law(self) -> Law:
        """Return the parameters of the law, with bounds on rounding errors (docs: ssim-exponential, "How it
        is drawn").
        """
        epsilon, whole = float(self.epsilon), 2.0**self._bits
        rounding = epsilon * 2.0**-46 + 2.0**-36
        widest = {"enumeration": 2048, "counts": number_of_sets(self.cells, self.levels) + 1}.get(self.way, 0)
        coarse = (widest + self.cells * max(self.cells, self.levels)) / whole + (
            self.cells + 1
        ) * 2 * arithmetic.GUARD
        keep = 1.0 - rounding - coarse
        if keep <= 0.0:
            raise NoiseError(f"{self._bits} bits are too few for {widest} choices")
        return Law(epsilon, keep, max(self.margin, 2 * rounding), whole)

    def _round(
        self,
        windows: UInt8[np.ndarray, "n cells"],
        part: Int32[np.ndarray, " pending"],
        attempts: int,
        shown: UInt8[np.ndarray, "n cells"],
        bits: BitSource,
        runs: list[Loop],
        pool: ThreadPoolExecutor,
    ) -> Int32[np.ndarray, " left"]:
        """Make some proposals for the windows of `part`, write accepted ones, and return the windows still
        pending.
        """
        drawn = bits.words(len(part) * attempts * self._words).reshape(len(part), attempts, self._words)
        drawn >>= np.uint64(64 - WORD)
        words = drawn.view(np.int64)
        if self.word_bits < WORD and self.way != "rejection":
            words[:, :, :-1] = self._coarser(words[:, :, :-1])
        true = windows[part]
        draws = Draws(
            np.zeros_like(true),
            np.zeros(len(part), np.int64),
            np.full((len(part), self._choices + 1), 1 << self._bits),
            np.ones((len(part), 2)),
        )
        size = -(-len(part) // STRIPS)
        strips = [_rows(slice(top, top + size), true, words, draws) for top in range(0, len(part), size)]
        later = [pool.submit(run, *strip) for run, strip in zip(runs[1:], strips[1:], strict=False)]
        runs[0](*strips[0])
        for strip in later:
            strip.result()
        for w in np.flatnonzero(draws.status == UNSURE):
            draws.status[w] = SHOWN if self._accepted(true[w], draws, int(w), bits) else AGAIN
        done = draws.status == SHOWN
        shown[part[done]] = shown_levels(self.levels)[draws.shown[done]]
        left: Int32[np.ndarray, " left"] = part[~done]
        return left

    def _coarser(self, words: Int64[np.ndarray, "n attempts words"]) -> Int64[np.ndarray, "n attempts words"]:
        """Return words with only the first bits of each choice."""
        if self.way == "enumeration":
            return words >> (WORD - self._bits)
        less = counted.HALF - self._bits
        return (words & counted.MASK) >> less | words >> counted.HALF >> less << counted.HALF

    def _loop(self, count: int) -> Loop:
        """Return the loop of this way, with its own workspace, as a function of windows, words and draws."""
        law = self._law()
        steps = ways(law.epsilon, self.cells, self.levels)[self.way]
        code = backend.loops(MODULES, int(count * min(PLAIN_STEP * steps, backend.LOAD_COST)))
        levels = shown_levels(self.levels).astype(np.int64)
        if self.way == "enumeration":
            listing = set_up_listing(self.cells, self.levels)
            return lambda true, words, draws: code.enumerate_all(true, levels, law, words, listing, draws)
        if self.way == "rejection":
            each = self._cells_per_word
            return lambda true, words, draws: code.reject(true, levels, law, words, each, draws)
        sets = list_sets(self.cells, self.levels)
        work = set_up(self.cells, len(sets.sums), self.levels, law.whole)
        return lambda true, words, draws: code.count_then_arrange(
            true, levels, sets, law, words.reshape(-1, words.shape[2]), work, draws
        )

    def _accepted(self, true: UInt8[np.ndarray, " cells"], draws: Draws, w: int, bits: BitSource) -> bool:
        """Decide on one proposal exactly."""
        constant, reference = (Fraction(float(value)) for value in draws.scale[w])
        *widths, word = (int(value) for value in draws.trace[w])
        factor = constant * Fraction((1 << self._bits) ** len(widths), prod(widths))
        gap = reference - quality(true, shown_levels(self.levels)[draws.shown[w]])
        return below_exp(word, self.epsilon * gap, bits, factor=factor, length=WORD)


def _rows(
    rows: slice, true: UInt8[np.ndarray, "n cells"], words: Any, draws: Draws
) -> tuple[UInt8[np.ndarray, "m cells"], Any, Draws]:
    """Return the same rows of all arrays."""
    return true[rows], words[rows], Draws(*(part[rows] for part in draws))

"""The exponential mechanism with SSIM as its quality function (Croft 2022 §5; errata E2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log2, prod
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from dpveil.accounting.draw_cost import Account
from dpveil.accounting.zcdp import SMALLEST_DELTA, smallest, zcdp_epsilon, zcdp_rho
from dpveil.core.array_types import Float64, Int32, Int64, UInt8
from dpveil.core.parameters import Count
from dpveil.core.rationals import float_above, root_above
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.pixel.base import (
    BudgetedMethod,
    cell_areas,
    cell_sums,
    check_size,
    expand_cells,
    mean_levels,
)
from dpveil.mechanisms.pixel.ssim import arithmetic, proposals, tables, weights
from dpveil.mechanisms.pixel.ssim.arithmetic import REDRAW, SHOWN, UNSURE, WORD, Draws, Law
from dpveil.mechanisms.pixel.ssim.quality import (
    error_on_grey,
    list_sets,
    number_of_sets,
    quality,
    shown_levels,
    table_cells,
)
from dpveil.noise import backend
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import below_exp

ROOM: Final = 1 << 10  # numbers of tables kept for one window: as many as fit into a core's cache


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


MODULES: Final = (arithmetic, tables, weights, proposals)
"""The modules of the loops, in import order."""
FEWEST_WORDS: Final = 1 << 12  # fewest random words requested at once
MOST_WORDS: Final = 1 << 16
"""Most random words requested at once; between the two, half as many bytes as the image has."""
THREADS: Final = 2
STRIPS: Final = 2  # strips into which windows are divided, each with its own words; one thread may draw both
PLAIN_STEP: Final = 30  # table look-ups of plain NumPy that take as long as one plain step of a loop
MOST_TABLED: Final = 1 << 21  # most entries of all tables of the dynamic programme
MOST_CELLS_TABLED: Final = 25  # most cells of a window for the dynamic programme
MOST_PROPOSED: Final = 1 << 18  # most expected proposals per window for rejection sampling

SHARED: Final = 8  # proposals per window for which words are drawn, by way "counts"
MOST_SHARED: Final = 64
"""Most of these when few windows are left: some windows take one proposal, some a hundred."""

Loop = Callable[[Any, Any, Draws], None]


def ways(epsilon: float, cells: int, levels: int) -> dict[str, float]:
    """Return the feasible samplers at ε′ = `epsilon`, each with its measured cost in steps per window."""
    sets, entries = number_of_sets(cells, levels), table_cells(cells, levels)
    found = {}
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
                    left = self._propose(windows, part, attempts, shown, bits, runs, pool)
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
        if self.way == "counts":
            return min(MOST_SHARED, SHARED * at_once // windows)
        return min(64, 6 + int(exp(min(5.0, float(self.epsilon))) / 4))

    @property
    def _choices(self) -> int:
        if self.way == "rejection":
            return -(-self.cells // self._cells_per_word)
        return self.cells + 1

    @property
    def _words(self) -> int:
        """Random words per proposal, including the one that decides on it."""
        return 1 + (-(-self._choices // 2) if self.way == "counts" else self._choices)

    @property
    def _bits(self) -> int:
        return min(self.word_bits, proposals.HALF if self.way == "counts" else WORD)

    @property
    def _cells_per_word(self) -> int:
        return max(1, min(self.cells, int((WORD - 6) / log2(self.levels) + 1e-9)))

    def _law(self) -> Law:
        """Return the parameters of the law, with bounds on rounding errors (docs: "How it is drawn")."""
        epsilon, whole = float(self.epsilon), 2.0**self._bits
        rounding = epsilon * 2.0**-46 + 2.0**-36
        widest = number_of_sets(self.cells, self.levels) + 1 if self.way == "counts" else 0
        coarse = (widest + self.cells * max(self.cells, self.levels)) / whole + (
            self.cells + 1
        ) * 2 * arithmetic.GUARD
        keep = 1.0 - rounding - coarse
        if keep <= 0.0:
            raise NoiseError(f"{self._bits} bits are too few for {widest} choices")
        return Law(epsilon, keep, max(self.margin, 2 * rounding), whole)

    def _propose(
        self,
        windows: UInt8[np.ndarray, "n cells"],
        part: Int32[np.ndarray, " pending"],
        attempts: int,
        shown: UInt8[np.ndarray, "n cells"],
        bits: BitSource,
        runs: list[Loop],
        pool: ThreadPoolExecutor,
    ) -> Int32[np.ndarray, " left"]:
        """Make proposals for the windows of `part`, write accepted ones, return the windows still pending."""
        drawn = bits.words(len(part) * attempts * self._words).reshape(len(part), attempts, self._words)
        drawn >>= np.uint64(64 - WORD)
        words = drawn.view(np.int64)
        if self.word_bits < WORD and self.way == "counts":
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
            draws.status[w] = SHOWN if self._decide(true[w], draws, int(w), bits) else REDRAW
        done = draws.status == SHOWN
        shown[part[done]] = shown_levels(self.levels)[draws.shown[done]]
        return np.asarray(part[~done])

    def _coarser(self, words: Int64[np.ndarray, "n attempts words"]) -> Int64[np.ndarray, "n attempts words"]:
        """Return words with only the first bits of each choice."""
        less = proposals.HALF - self._bits
        return (words & proposals.MASK) >> less | words >> proposals.HALF >> less << proposals.HALF

    def _loop(self, count: int) -> Loop:
        """Return the loop of this way, with its own workspace, as a function of windows, words and draws."""
        law = self._law()
        steps = ways(law.epsilon, self.cells, self.levels)[self.way]
        code = backend.loops(MODULES, int(count * min(PLAIN_STEP * steps, backend.LOAD_COST)))
        levels = shown_levels(self.levels).astype(np.int64)
        if self.way == "rejection":
            each = self._cells_per_word
            return lambda true, words, draws: code.reject(true, levels, law, words, each, draws)
        sets = list_sets(self.cells, self.levels)
        work = set_up(self.cells, len(sets.sums), self.levels, law.whole)
        return lambda true, words, draws: code.count_then_arrange(
            true, levels, sets, law, words.reshape(-1, words.shape[2]), work, draws
        )

    def _decide(self, true: UInt8[np.ndarray, " cells"], draws: Draws, w: int, bits: BitSource) -> bool:
        constant, reference = (Fraction(float(value)) for value in draws.scale[w])
        *widths, word = (int(value) for value in draws.trace[w])
        factor = constant * Fraction((1 << self._bits) ** len(widths), prod(widths))
        gap = reference - quality(true, shown_levels(self.levels)[draws.shown[w]])
        return below_exp(word, self.epsilon * gap, bits, factor=factor, length=WORD)


def _rows(
    rows: slice, true: UInt8[np.ndarray, "n cells"], words: Any, draws: Draws
) -> tuple[UInt8[np.ndarray, "m cells"], Any, Draws]:
    return true[rows], words[rows], Draws(*(part[rows] for part in draws))


MOST_DRAWS: Final = 1 << 15
"""Draws above which only zCDP is used: it is within a few per cent there, and the optimum takes seconds."""
CDF_ERROR: Final = 1e-9
"""A bound on the relative error of SciPy's incomplete beta function, which is near 1e-12 for these sizes."""
SMALLEST_CHANCE: Final = 1e-290
"""Probabilities under Q below this count as 0, which only raises δ: floats lose digits there."""
FARTHEST: Final = 700.0  # largest exponent passed to exp, which overflows above 709
TOLERANCE: Final = Fraction(1, 10**6)  # relative precision of a calibrated range
Chances = Float64[np.ndarray, " draws"]
Counts = Int64[np.ndarray, " draws"]


@dataclass(frozen=True)
class BoundedRangeAccount(Account):
    """`draws` non-adaptive draws of range `spread` each, such as those of an exponential mechanism.

    >>> account = BoundedRangeAccount(Fraction(1, 10), 5292)
    >>> account.pure, account.rho, round(float(account.epsilon(Fraction(1, 10**6))), 1)
    (Fraction(2646, 5), Fraction(1323, 200), 23.3)
    """

    spread: Fraction
    draws: int

    @property
    def pure(self) -> Fraction:
        """η a draw."""
        return self.spread * self.draws

    @property
    def rho(self) -> Fraction:
        """η²/8 a draw (Cesar & Rogers 2021, lemma 3.4)."""
        return self.spread**2 * self.draws / 8

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the least ε of pure composition, zCDP and, up to `MOST_DRAWS` draws, the exact optimum."""
        known = min(self.pure, zcdp_epsilon(self.rho, delta))
        if not countable(self.draws, delta) or self.delta(known) > delta:
            return known
        return smallest(lambda epsilon: self.delta(epsilon) <= delta, known, steps=32)

    def delta(self, epsilon: Fraction) -> float:
        """Return δ(ε) of the worst draws of this range, rounded up; for δ of at least 1e-10."""
        eta, draws, at = float_above(self.spread), self.draws, float(epsilon)
        later = np.arange(draws)
        t = np.clip((at + (later + 1) * eta) / (draws + 1), 0.0, eta)
        whole = math.expm1(-eta)
        seen = _at_most(later, draws, np.exp(t - eta) * np.expm1(-t) / whole, np.expm1(t - eta) / whole)
        under_q = _at_most(later, draws, np.expm1(-t) / whole, np.exp(-t) * np.expm1(t - eta) / whole)
        known = np.log(np.maximum(under_q, SMALLEST_CHANCE))
        other = np.where(under_q > SMALLEST_CHANCE, np.exp(np.minimum(at + known, FARTHEST)), 0.0)
        return float(np.max(seen * (1 + CDF_ERROR) - other * (1 - CDF_ERROR), initial=0.0))


def _at_most(count: Counts, draws: int, chance: Chances, rest: Chances) -> Chances:
    """Return P(J ≤ count) for a binomial J of `draws` trials.

    `rest` is 1 - chance; both are given because for a large range one of them is too close to 1 for a float.
    """
    from scipy.special import betainc, betaincc  # slow to import, and most releases do without

    chance, rest = np.clip(chance, 0.0, 1.0), np.clip(rest, 0.0, 1.0)
    low = betaincc(count + 1, draws - count, np.minimum(chance, 0.5))
    high = betainc(draws - count, count + 1, np.minimum(rest, 0.5))
    return np.asarray(np.where(chance <= rest, low, high))


def countable(draws: int, delta: Fraction) -> bool:
    """Return whether the exact optimum is computed for this many draws at this δ."""
    return draws <= MOST_DRAWS and delta >= SMALLEST_DELTA


@lru_cache(maxsize=256)
def bounded_range_spread(epsilon: Fraction, delta: Fraction, draws: int) -> Fraction:
    """Return the largest range η, to one part in 10^6, at which `draws` draws are (ε, δ)-DP by their account.

    >>> spread = bounded_range_spread(Fraction(20), Fraction(1, 10**6), 5292)
    >>> BoundedRangeAccount(spread, 5292).epsilon(Fraction(1, 10**6)) <= 20
    True
    """
    below = epsilon * (1 - TOLERANCE)  # so that the account of the result is not above ε either
    plain = max(epsilon / draws, 1 / root_above(draws / (8 * zcdp_rho(below, delta))))
    if not countable(draws, delta):
        return plain

    def is_private(inverse: Fraction) -> bool:
        return BoundedRangeAccount(1 / inverse, draws).delta(below) <= delta

    best = smallest(is_private, 1 / plain, steps=24)
    return max(plain, 1 / best) if is_private(best) else plain


MOST_LEVELS: Final = 256
LARGEST_WINDOW: Final = 64
SMALLER: Final = "take fewer levels, a smaller window or a smaller budget"


@dataclass(frozen=True, kw_only=True)
class SSIMExponential(BudgetedMethod):
    """Windows of `window` × `window` cells show levels drawn with P(y) ∝ exp(ε′·max(0, SSIM(x, y))), exactly.

    A cell is the rounded mean level of `block` × `block` pixels, and may show one of `levels` evenly spaced
    levels, 2 to 256. The grid of cells is continued at its right and bottom edge by its last cells to whole
    windows: N windows per channel, all of which cost budget. Each draw costs 2ε′, so `epsilon` alone allows
    ε′ = ε/(2·c·N); with `delta`, or for `rho`, ε′ is the largest that the account of draws of bounded range
    2ε′ accepts (errata E2). Any two images are neighbours. Raises `InvalidParameter`, also if
    no exact draw is feasible. Source: Croft 2022 §5, theorem 2, corrected.

    >>> method = SSIMExponential(epsilon=240, block=16)
    >>> method.windows(height=112, width=92, channels=1)
    6
    >>> method.exponent(height=112, width=92, channels=1)
    Fraction(20, 1)
    """

    name: ClassVar[str] = "ssim-exponential"
    kinds: ClassVar[tuple[str, ...]] = ("pure", "approximate", "zcdp")
    summary: ClassVar[str] = "windows of few levels, likelier the more alike they look (SSIM)"
    source: ClassVar[str] = "Croft 2022 §5, errata E2"
    help: ClassVar[Mapping[str, str]] = {
        "window": "Side of a window in blocks.",
        "levels": "How many grey levels may be shown.",
    }
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "the exact composition of bounded-range draws, and zCDP",
        "zcdp": "zCDP of bounded-range draws",
    }

    block: Count = Count(default=1)
    window: Count = Count(default=3)
    levels: Count = Count(default=4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.levels <= MOST_LEVELS:
            raise InvalidParameter("levels", self.levels, "is out of range", hint="choose from 2 to 256")
        if self.window > LARGEST_WINDOW:
            raise InvalidParameter("window", self.window, "is out of range", hint="choose from 1 to 64")

    @property
    def _cells(self) -> int:
        return self.window**2

    def windows(self, *, height: int, width: int, channels: int) -> int:
        """Return the number of windows drawn, in all channels."""
        height, width, channels = check_size(height, width, channels)
        rows, columns = (ceil(ceil(side / self.block) / self.window) for side in (height, width))
        return rows * columns * channels

    def exponent(self, *, height: int, width: int, channels: int) -> Fraction:
        """Return ε′, exactly."""
        draws = self.windows(height=height, width=width, channels=channels)
        epsilon, delta, rho = self.budget
        if rho is not None:
            return 1 / root_above(draws / (2 * rho))
        if delta is not None:
            return bounded_range_spread(epsilon or Fraction(1), delta, draws) / 2
        return (epsilon or Fraction(1)) / (2 * draws)

    def account(self, *, height: int, width: int, channels: int) -> BoundedRangeAccount:
        """Return the cost of the draws, which are not adaptive."""
        size = {"height": height, "width": width, "channels": channels}
        return BoundedRangeAccount(2 * self.exponent(**size), self.windows(**size))

    def in_the_clear(self) -> tuple[str, ...]:
        """Return that time depends on the pixels."""
        return ("how long the draw took, which depends on the pixels",)

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared error on a mid-grey window, in grey levels."""
        sampler = self.sampler(height=height, width=width, channels=channels)
        return error_on_grey(float(sampler.epsilon), self._cells, self.levels)

    def sampler(self, *, height: int, width: int, channels: int) -> WindowSampler:
        """Return the fastest exact sampler. Raises `InvalidParameter` if all take too long."""
        exponent = self.exponent(height=height, width=width, channels=channels)
        costs = ways(float(exponent), self._cells, self.levels)
        if not costs:
            raise InvalidParameter(
                "levels",
                self.levels,
                f"with window {self.window} leaves no exact draw within reach (ε′ = {float(exponent):.4g})",
                hint=SMALLER,
            )
        return WindowSampler(exponent, self._cells, self.levels, min(costs, key=lambda name: costs[name]))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        return self.draw_windows(image, self.sampler(height=height, width=width, channels=channels), bits)

    def draw_windows(
        self, image: UInt8[np.ndarray, "h w c"], sampler: WindowSampler, bits: BitSource
    ) -> UInt8[np.ndarray, "h w c"]:
        """Return a sampler's draws for the windows of an image with any number of channels."""
        height, width, _ = image.shape
        cells = image
        if self.block > 1:
            cells = mean_levels(cell_sums(image, self.block), cell_areas(height, width, self.block))
        rows, columns, _ = cells.shape
        shown = _join_windows(sampler.draw(_windows(cells, self.window), bits), rows, columns, self.window)
        return expand_cells(shown, self.block, height, width)


def _windows(cells: UInt8[np.ndarray, "rows columns c"], side: int) -> UInt8[np.ndarray, "n cells"]:
    """Return the windows, one per row; the last cells are repeated to whole windows."""
    rows, columns, channels = cells.shape
    full = np.pad(cells, ((0, -rows % side), (0, -columns % side), (0, 0)), mode="edge")
    tiles = full.reshape(len(full) // side, side, -1, side, channels)
    return tiles.transpose(0, 2, 4, 1, 3).reshape(-1, side * side)


def _join_windows(
    windows: UInt8[np.ndarray, "n cells"], rows: int, columns: int, side: int
) -> UInt8[np.ndarray, "rows columns c"]:
    """Return the grid of cells from its windows, without the repeated cells."""
    tall, wide = -(-rows // side), -(-columns // side)
    tiles = windows.reshape(tall, wide, -1, side, side).transpose(0, 3, 1, 4, 2)
    return tiles.reshape(tall * side, wide * side, -1)[:rows, :columns]

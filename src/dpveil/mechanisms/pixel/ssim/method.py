"""The exponential mechanism with SSIM as its quality function (Croft 2022 §5; errata E2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.accounting.account import Account
from dpveil.accounting.laplace import SMALLEST_DELTA
from dpveil.accounting.zcdp import smallest, zcdp_epsilon, zcdp_rho
from dpveil.core.numbers import float_above, root_above
from dpveil.core.parameters import Count, Flag
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, check_size, mean_levels, spread
from dpveil.mechanisms.pixel.budget import BudgetedMethod
from dpveil.mechanisms.pixel.ssim.quality import error_on_grey
from dpveil.mechanisms.pixel.ssim.sampler import MOST_LISTED, WindowSampler, ways
from dpveil.noise.bits import BitSource

MOST_DRAWS: Final = 1 << 15
"""Draws above which only zCDP is used: it is within a few per cent there, and the optimum takes seconds."""
CDF_ERROR: Final = 1e-9
"""A bound on the relative error of SciPy's incomplete beta function, which is near 1e-12 for these sizes."""
SMALLEST_CHANCE: Final = 1e-290
"""Probabilities under Q below this count as 0, which only raises δ: floats lose digits there."""
FARTHEST: Final = 700.0
"""Largest exponent passed to exp, which overflows above 709."""
TOLERANCE: Final = Fraction(1, 10**6)
"""Relative precision of a calibrated range."""
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
        """Return the smallest ε of pure composition, zCDP and, for at most `MOST_DRAWS` draws, the exact
        optimum.
        """
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
    found: Chances = np.where(chance <= rest, low, high)
    return found


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

    def accepted(inverse: Fraction) -> bool:
        return BoundedRangeAccount(1 / inverse, draws).delta(below) <= delta

    best = smallest(accepted, 1 / plain, steps=24)
    return max(plain, 1 / best) if accepted(best) else plain


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
    2ε′ accepts (errata E2). Any two images are neighbours. `constant_time` draws by enumerating all outputs,
    in a time that does not depend on pixels; only up to 2^20 outputs per window. Raises `InvalidParameter`,
    also if no exact draw is feasible. Source: Croft 2022 §5, theorem 2, corrected.

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
        "constant_time": "Draw in a time that no pixel changes.",
    }
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "the exact composition of bounded-range draws, and zCDP",
        "zcdp": "zCDP of bounded-range draws",
    }

    block: Count = Count(default=1)
    window: Count = Count(default=3)
    levels: Count = Count(default=4)
    constant_time: Flag = Flag(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.levels <= MOST_LEVELS:
            raise InvalidParameter("levels", self.levels, "is out of range", hint="choose from 2 to 256")
        if self.window > LARGEST_WINDOW:
            raise InvalidParameter("window", self.window, "is out of range", hint="choose from 1 to 64")
        outputs = self.levels**self._cells
        if self.constant_time and outputs > MOST_LISTED:
            raise InvalidParameter(
                "constant_time",
                True,
                f"needs all {self.levels}^{self._cells} outputs of a window listed, and 2^20 is the most",
                hint="take fewer levels or a smaller window, such as levels 4 and window 3",
            )

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
        """Return that time depends on the pixels, unless `constant_time` is set."""
        return () if self.constant_time else ("how long the draw took, which depends on the pixels",)

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
        way = "enumeration" if self.constant_time else min(costs, key=lambda name: costs[name])
        return WindowSampler(exponent, self._cells, self.levels, way)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        return self.shown(image, self.sampler(height=height, width=width, channels=channels), bits)

    def shown(
        self, image: UInt8[np.ndarray, "h w c"], sampler: WindowSampler, bits: BitSource
    ) -> UInt8[np.ndarray, "h w c"]:
        """Return a sampler's draws for the windows of an image with any number of channels."""
        height, width, _ = image.shape
        cells = image
        if self.block > 1:
            cells = mean_levels(cell_sums(image, self.block), cell_areas(height, width, self.block))
        rows, columns, _ = cells.shape
        shown = _joined(sampler.draw(_windows(cells, self.window), bits), rows, columns, self.window)
        return spread(shown, self.block, height, width)


def _windows(cells: UInt8[np.ndarray, "rows columns c"], side: int) -> UInt8[np.ndarray, "n cells"]:
    """Return the windows, one per row; the last cells are repeated to whole windows."""
    rows, columns, channels = cells.shape
    full = np.pad(cells, ((0, -rows % side), (0, -columns % side), (0, 0)), mode="edge")
    tiles = full.reshape(len(full) // side, side, -1, side, channels)
    return tiles.transpose(0, 2, 4, 1, 3).reshape(-1, side * side)


def _joined(
    windows: UInt8[np.ndarray, "n cells"], rows: int, columns: int, side: int
) -> UInt8[np.ndarray, "rows columns c"]:
    """Return the grid of cells from its windows, without the repeated cells."""
    tall, wide = -(-rows // side), -(-columns // side)
    tiles = windows.reshape(tall, wide, -1, side, side).transpose(0, 3, 1, 4, 2)
    return tiles.reshape(tall * side, wide * side, -1)[:rows, :columns]

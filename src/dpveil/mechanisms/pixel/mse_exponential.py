"""The exponential mechanism with the squared error of a cell's level (Croft thesis §6.7; errata E10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from dpveil.accounting.dominating_pairs import DrawsAccount, MirrorPair, extremes
from dpveil.accounting.zcdp import least_scale
from dpveil.core.array_types import UInt8
from dpveil.core.parameters import Count
from dpveil.core.rationals import root_above
from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel.base import TOP, BudgetedMethod, cell_levels, check_size, expand_cells
from dpveil.noise.bits import BitSource
from dpveil.noise.integer_matrix import ROW_SUM, SHRINKS, IntegerMatrix, quantise
from dpveil.noise.laplace import exp_below

DIGITS: Final = 128  # bits of precision of exponentials
MARGINS: Final = (Fraction(0), *SHRINKS, *(1 - Fraction(1, 1 << k) for k in range(1, 12, 2)), Fraction(1))
"""Fractions of the rate given up for rounding, one after another; the last leaves uniform levels."""


def shown_levels(levels: int) -> list[int]:
    """Return the k possible grey levels 255·j/(k - 1), rounded half up.

    >>> shown_levels(4), shown_levels(3)
    ([0, 85, 170, 255], [0, 128, 255])
    """
    return [(2 * TOP * j + levels - 1) // (2 * (levels - 1)) for j in range(levels)]


def squares(levels: int, x: int) -> list[int]:
    """Return the squared distances of level x to the k levels 255·j/(k - 1), in units of 1/(k - 1)²."""
    return [(x * (levels - 1) - TOP * j) ** 2 for j in range(levels)]


def rows(rate: Fraction, levels: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the integer laws of the true levels 0, ..., count - 1; see `law`."""
    exponents = [squares(levels, x) for x in range(count)]
    unit = rate / (TOP * (levels - 1)) ** 2
    weight = lru_cache(maxsize=None)(lambda square: max(1, exp_below(unit * square, DIGITS)))
    return quantise([[weight(square - min(row)) for square in row] for row in exponents]).weights


@lru_cache(maxsize=256)
def pair(rate: Fraction, levels: int) -> MirrorPair:
    """Return the pair of rows 0 and 255, which dominates all others if `extremes` certifies it."""
    return MirrorPair(rows(rate, levels, 1)[0])


def law(rate: Fraction, levels: int) -> IntegerMatrix:
    """Return rows x = 0..255: level 255·j/(k - 1) has probability ∝ e^(-rate·distance²/255²).

    Row 255 - x is row x reversed, so that normalising constants agree exactly, as in the formula.
    """
    half = rows(rate, levels, (TOP + 1) // 2)
    return IntegerMatrix((*half, *(row[::-1] for row in reversed(half))))


def certified_law(
    rate: Fraction, levels: int, within: Callable[[MirrorPair], bool]
) -> tuple[IntegerMatrix, MirrorPair]:
    """Return the law closest to `rate` whose dominating pair is `within` the budget, and that pair.

    Rounding to integers can raise a cost above the formula's, so the rate is lowered until the integers
    themselves are within the budget. Raises `NoiseError` if none are: even a uniform law costs something
    unless its probabilities are multiples of 2^-64.
    """
    for margin in MARGINS:
        lower = rate * (1 - margin)
        if within(pair(lower, levels)):
            matrix = law(lower, levels)
            worst = extremes(matrix)
            if within(worst):
                return matrix, worst
    raise NoiseError(
        f"64-bit chances of {levels} levels cannot carry {float(rate):.3g} a draw",
        hint="raise the budget, or choose a larger block or a power of two levels",
    )


NEARLY: Final = 1 - Fraction(1, 1 << 20)  # factor on a rate that leaves room for rounding
SHARPEST: Final = Fraction(10**9)
"""Largest ε′: at it a draw differs from its own level with probability 2^-64 only."""


@dataclass(frozen=True, kw_only=True)
class MSEExponential(BudgetedMethod):
    """Cells of `block` × `block` pixels show a level drawn with probability ∝ exp(-ε′·(x - y)²/255²).

    x is the cell's mean level in a channel, rounded half up from its exact sum; y is one of `levels` levels,
    evenly spaced over 0..255. A draw costs exactly ε′ (errata E10), so a region of n cells and c channels
    gets ε′ = ε/(n·c), less the effect of rounding to integers. With `epsilon` and `delta`, or `rho`, ε′ is
    the largest that the accountant of many draws accepts. Any two images are neighbours. Raises
    `InvalidParameter`. Source: Croft thesis §6.7, formula 6.32.

    >>> method = MSEExponential(epsilon=20, block=44)
    >>> print(method.guarantee(height=120, width=88, channels=3))
    20-DP, any-image
    """

    name: ClassVar[str] = "mse-exponential"
    kinds: ClassVar[tuple[str, ...]] = ("pure", "approximate", "zcdp")
    summary: ClassVar[str] = "a level for each block, near its mean with the better chance"
    source: ClassVar[str] = "Croft thesis §6.7, errata E10"
    help: ClassVar[Mapping[str, str]] = {"levels": "How many grey levels may be shown."}
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "privacy-loss distributions of the dominating pair of levels, and zCDP",
        "zcdp": "zCDP of the dominating pair of levels",
    }

    block: Count = Count(default=1)
    levels: Count = Count(default=256, low=2, high=256)

    def account(self, *, height: int, width: int, channels: int) -> DrawsAccount:
        draws = self._draws(height, width, channels)
        return DrawsAccount(((_calibrate(self, draws)[1], draws),))

    def matrix(self, *, height: int, width: int, channels: int) -> IntegerMatrix:
        """Return the law that is drawn: a row for every level of a cell, in units of 2^-64."""
        return _calibrate(self, self._draws(height, width, channels))[0]

    def _draws(self, height: int, width: int, channels: int) -> int:
        height, width, channels = check_size(height, width, channels)
        return -(-height // self.block) * -(-width // self.block) * channels

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared error on mid-grey, level 128."""
        middle = (TOP + 1) // 2
        weights = self.matrix(height=height, width=width, channels=channels).weights[middle]
        errors = [(level - middle) ** 2 for level in shown_levels(self.levels)]
        return sqrt(sum(w * error for w, error in zip(weights, errors, strict=True)) / ROW_SUM)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        cells = cell_levels(image, self.block)
        matrix = self.matrix(height=height, width=width, channels=channels)
        drawn = matrix.sample(np.ascontiguousarray(cells).reshape(-1), bits).reshape(cells.shape)
        if self.levels <= TOP:
            drawn = np.array(shown_levels(self.levels), np.uint8)[drawn]
        return drawn if cells is image else expand_cells(drawn, self.block, height, width)


@lru_cache(maxsize=16)
def _calibrate(method: MSEExponential, draws: int) -> tuple[IntegerMatrix, MirrorPair]:
    """Return the law for so many draws within the method's budget, and the pair that dominates it."""

    def spent(one: MirrorPair) -> Fraction:
        return method.spent(DrawsAccount(((one, draws),)))

    limit = method.limit
    if method.kind == "pure":
        rate = min(SHARPEST, limit / draws)
    elif spent(pair(SHARPEST, method.levels)) <= limit:
        rate = SHARPEST
    else:  # a draw of cost ε′ costs at most ρ = ε′²/2, so the search begins at a valid ε′
        valid = limit / draws if method.rho is None else 1 / root_above(draws / (2 * limit))
        scale = 1 / (min(SHARPEST, valid) * NEARLY)
        rate = 1 / least_scale(lambda scale: spent(pair(1 / scale, method.levels)), limit, scale)
    return certified_law(rate, method.levels, lambda one: spent(one) <= limit)

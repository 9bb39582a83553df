"""The exponential mechanism with the squared error of a cell's level (Croft thesis §6.7; errata E10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting.pairs import DrawsAccount, MirrorPair
from dpveil.accounting.search import least_scale
from dpveil.core.numbers import root_above
from dpveil.core.parameters import Count
from dpveil.mechanisms.pixel.base import check_size
from dpveil.mechanisms.pixel.budget import BudgetedMethod
from dpveil.mechanisms.pixel.cells import TOP, cell_levels, spread
from dpveil.mechanisms.pixel.mse.law import certified_law, pair, shown_levels
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import TOTAL, IntegerMatrix

NEARLY: Final = 1 - Fraction(1, 1 << 20)
"""Factor on a rate that leaves room for rounding."""
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
    help: ClassVar[Mapping[str, str]] = {
        "levels": "How many grey levels may be shown.",
    }
    calibrations: ClassVar[Mapping[str, str]] = {
        "approximate": "privacy-loss distributions of the dominating pair of levels, and zCDP",
        "zcdp": "zCDP of the dominating pair of levels",
    }

    block: Count = Count(default=1)
    levels: Count = Count(default=256, low=2, high=256)

    def account(self, *, height: int, width: int, channels: int) -> DrawsAccount:
        """Return the cost of the draws."""
        draws = self._draws(height, width, channels)
        return DrawsAccount(((_calibrated(self, draws)[1], draws),))

    def matrix(self, *, height: int, width: int, channels: int) -> IntegerMatrix:
        """Return the law that is drawn: a row for every level of a cell, in units of 2^-64."""
        return _calibrated(self, self._draws(height, width, channels))[0]

    def _draws(self, height: int, width: int, channels: int) -> int:
        height, width, channels = check_size(height, width, channels)
        return -(-height // self.block) * -(-width // self.block) * channels

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared error on mid-grey, level 128."""
        middle = (TOP + 1) // 2
        weights = self.matrix(height=height, width=width, channels=channels).weights[middle]
        errors = [(level - middle) ** 2 for level in shown_levels(self.levels)]
        return sqrt(sum(w * error for w, error in zip(weights, errors, strict=True)) / TOTAL)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        cells = cell_levels(image, self.block)
        matrix = self.matrix(height=height, width=width, channels=channels)
        drawn = matrix.sample(np.ascontiguousarray(cells).reshape(-1), bits).reshape(cells.shape)
        if self.levels <= TOP:
            drawn = np.array(shown_levels(self.levels), np.uint8)[drawn]
        return drawn if cells is image else spread(drawn, self.block, height, width)


@lru_cache(maxsize=16)
def _calibrated(method: MSEExponential, draws: int) -> tuple[IntegerMatrix, MirrorPair]:
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

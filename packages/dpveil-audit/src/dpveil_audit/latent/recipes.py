"""Recipes for releasing coordinates, intact or mutated, which give both the law and the draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.mechanisms.scalar.base import RECORD
from dpveil.mechanisms.scalar.truncated_laplace import TruncatedLaplace
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.laplace import discrete_laplace
from dpveil_audit.latent.case import SIDE, Code, CodeDistribution, Codes, LatentCase, LatentVersion, Logs
from dpveil_audit.latent.distributions import FAMILIES, always

SHOWN: Final = "shown"
DROPPED: Final = "dropped"
Amount = Fraction | str
"""The noise of a coordinate: its scale in steps (variance for Gaussians), `SHOWN` without noise, or `DROPPED`
for 0.
"""
Amounts = Callable[[LatentCase], tuple[Amount, ...]]
Points = Int64[np.ndarray, " n"]


@dataclass(frozen=True)
class Recipe:
    """Noise of a family on every coordinate; `clipped`, `own_box` and `reused` select faults.

    Without `clipped`, noise is added to unclipped codes and the result is clipped. With `own_box`, a code is
    in the middle of the box that it is released in. With `reused`, all coordinates get the same draw.
    """

    family: str
    amounts: Amounts
    clipped: bool = True
    own_box: bool = False
    reused: bool = False

    def distribution(self, case: LatentCase, code: Code) -> CodeDistribution:
        """Return the law of a code's release."""
        parts = tuple(
            self._part(amount, point, case, number)
            for number, (amount, point) in enumerate(
                zip(self.amounts(case), self._points(case, code), strict=True)
            )
        )
        return CodeDistribution(self._box(case, code), parts)

    def release(self, case: LatentCase, codes: Codes, bits: BitSource) -> Codes:
        """Return releases of repeated copies of one code."""
        code = tuple(float(value) for value in codes[0])
        points = self._points(case, code)
        seed = int(bits.words(1)[0])
        columns = []
        for number, (amount, point) in enumerate(zip(self.amounts(case), points, strict=True)):
            own = SeededBits(seed) if self.reused else bits
            columns.append(self._drawn(amount, point, len(codes), case, number, own))
        low, high = (np.array(end) for end in self._box(case, code))
        released: Codes = low + (high - low) * np.clip(np.stack(columns, axis=1), 0, SIDE) / SIDE
        return released

    def _points(self, case: LatentCase, code: Code) -> list[int]:
        return [SIDE // 2] * len(code) if self.own_box else case.points(code, clipped=self.clipped)

    def _box(self, case: LatentCase, code: Code) -> tuple[Code, Code]:
        half = case.box.width / 2
        low, high = (case.box.low, case.box.high)
        if self.own_box:
            low, high = np.array(code) - half, np.array(code) + half
        return tuple(low.tolist()), tuple(high.tolist())

    def _part(self, amount: Amount, point: int, case: LatentCase, number: int) -> Logs:
        if isinstance(amount, str):
            return always(point if amount == SHOWN else middle(case, number))
        return FAMILIES[self.family](point, amount)

    def _drawn(
        self, amount: Amount, point: int, count: int, case: LatentCase, number: int, bits: BitSource
    ) -> Points:
        if isinstance(amount, str):
            return np.full(count, point if amount == SHOWN else middle(case, number), np.int64)
        if self.family == "truncated":
            return truncated(amount).draw(np.full(count, point, np.int64), bits)
        draw = discrete_gaussian if self.family == "gaussian" else discrete_laplace
        return point + draw(amount, count, bits)


def middle(case: LatentCase, number: int) -> int:
    """Return the point of 0, to which dropped components are set."""
    place = round(float(-case.box.low[number] / case.box.width[number]) * SIDE)
    return min(max(place, 0), SIDE)


def truncated(scale: Fraction) -> TruncatedLaplace:
    """Return a truncated Laplace mechanism of this scale over a whole side."""
    return TruncatedLaplace(range=(0, SIDE), sensitivity=SIDE, epsilon=SIDE / scale, relation=RECORD, step=1)


def wrong(name: str, recipe: Recipe, gates: tuple[str, ...] = ()) -> LatentVersion:
    """Return a mutant with another recipe; only draws detect a reused one."""
    distribution = None if recipe.reused else recipe.distribution
    return LatentVersion(name=name, gates=gates, distribution=distribution, release=recipe.release)


def times(amounts: Amounts, factor: Fraction | int) -> Amounts:
    """Return all amounts times a factor."""

    def changed(case: LatentCase) -> tuple[Amount, ...]:
        return tuple(a if isinstance(a, str) else a * factor for a in amounts(case))

    return changed


def without_last(amounts: Amounts) -> Amounts:
    """Return the amounts without noise on the last coordinate."""

    def changed(case: LatentCase) -> tuple[Amount, ...]:
        return (*amounts(case)[:-1], SHOWN)

    return changed

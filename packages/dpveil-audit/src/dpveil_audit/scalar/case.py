"""Audit cases for scalar mechanisms: settings, versions, and entries that are mostly defaults.

A finite mechanism needs no entry: its integers are its law, and the usual settings and mutants apply.
Additions are in `table.OWN`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.core.numbers import show
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import IntegerMatrix, quantise
from dpveil_audit.engine import Drawn, Level, Variant
from dpveil_audit.scalar.arrivals import Pair, Read, arriving, read
from dpveil_audit.scalar.laws import PointDistribution, distribution_of

Points = Int64[np.ndarray, " n"]
MOST_CELLS: Final = 400
FAR: Final = 600
"""Noise scales from the answers at which tails are evaluated."""
FEW: Final = 20
FINE: Final = 1 << 200


@dataclass(frozen=True)
class ScalarCase:
    """One mechanism with its settings."""

    method: ScalarMechanism

    @cached_property
    def limit(self) -> Fraction:
        """The stated bound: ε for one record, or per ΔF between two answers."""
        return self.method.guarantee().epsilon or Fraction(0)

    def allowance(self, x: int, other: int) -> Fraction | None:
        """Return the largest promised log-ratio of two answers, or None if nothing is promised."""
        if self.method.promise == ANY:
            return self.limit * abs(x - other) / self.reach
        return self.limit if abs(x - other) <= self.reach else None

    @property
    def arrivals(self) -> tuple[Pair, ...]:
        """Answers of neighbours, as they are passed in, next to thresholds between points."""
        return arriving(self.method.lattice)[0]

    @property
    def met(self) -> frozenset[tuple[int, int]]:
        """The points that these answers are read as, the lower one first."""
        return arriving(self.method.lattice)[1]

    @cached_property
    def reach(self) -> int:
        """The most steps between two neighbours' answers: as observed, and at least ⌈ΔF/step⌉."""
        lattice = self.method.lattice
        return max(
            [*(high - low for low, high in self.met), -(-lattice.sensitivity // lattice.step).__floor__()]
        )

    @cached_property
    def length(self) -> int:
        """Approximate steps per noise scale, at least 1."""
        return max(1, round(self.reach / self.method.budget))

    @cached_property
    def edges(self) -> list[int]:
        """The ends of the range and of its gaps as points, or 0 if there are none."""
        spans = self.method.lattice.spans
        return [edge for span in spans for edge in span if edge is not None] or [0]

    def allowed(self, points: Any) -> Points:
        """Return which of these integers are points of the range, in order, once each."""
        unique = np.unique(np.asarray(points, np.int64))
        found: Points = unique[self.method.lattice.allowed(unique)]
        return found

    @cached_property
    def answers(self) -> list[int]:
        """Return answers around every edge, where normalising constants change fastest, and far from all."""
        reach, size = self.reach, self.method.lattice.size
        if size is not None and size <= FEW:
            return [int(point) for point in self.method.lattice.points]
        steps = [0, 1, reach, reach + 1, 2 * reach, self.length, 3 * self.length, 50 * self.length]
        around = [edge + sign * step for edge in self.edges for step in steps for sign in (1, -1)]
        inside = [(a + b) // 2 for a, b in self.method.lattice.spans if a is not None and b is not None]
        return [int(point) for point in self.allowed([*around, *inside])]

    @cached_property
    def outputs(self) -> list[int]:
        """Return responses around every answer and edge, and in tails several hundred scales out."""
        answers = self.answers
        far = [s * k * self.length for k in (1, 2, 5, 10, 20, 50, 100, 300, FAR) for s in (1, -1)]
        near = [base + step for base in (*answers, *self.edges) for step in (-1, 0, 1)]
        return [int(y) for y in self.allowed([*near, *(base + step for base in self.edges for step in far)])]

    @cached_property
    def cells(self) -> Points:
        """Return the first points of categories: every point if few, else fine near edges and coarse far
        out.
        """
        lattice = self.method.lattice
        if lattice.size is not None and lattice.size <= MOST_CELLS:
            return lattice.points
        low, high = min(self.edges), max(self.edges)
        near = range(-8, 9)
        wide = np.linspace(low - 30 * self.length, high + 30 * self.length, 240).round()
        fine = np.linspace(low - 4 * self.length, high + 4 * self.length, 80).round()
        found = self.allowed([*wide, *fine, *(edge + step for edge in self.edges for step in near)])
        gaps = np.array([right for _, right in lattice.gaps], np.int64)
        return np.unique(np.concatenate([found, gaps]))

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Return answers to distinguish: a record from every end inwards, across gaps, inside, and
        further.
        """
        reach = self.reach
        wanted = [(edge, edge + sign * reach) for edge in self.edges[:4] for sign in (1, -1)]
        if self.method.promise == ANY:
            wanted += [*self.method.lattice.gaps, (self.edges[0], self.edges[0] + 2 * reach)]
        ordered = dict.fromkeys((min(pair), max(pair)) for pair in wanted)
        return [pair for pair in ordered if len(self.allowed(pair)) == 2]

    def __str__(self) -> str:
        method = self.method
        words = [f"{method.range}", f"ΔF = {show(method.sensitivity)}", f"step {show(method.lattice.step)}"]
        return ", ".join([*words, method.promise, f"ε = {show(method.budget)}"])


ScalarDrawn = Drawn[ScalarCase, int]
ScalarLevel = Level[ScalarCase, int]

Draw = Callable[[ScalarCase, int, int, BitSource], Points]
"""A function that returns the cells (their indices) of many responses to one answer."""


def real_draws(case: ScalarCase, x: int, count: int, bits: BitSource) -> Points:
    """Return the cells of the mechanism's own draws."""
    drawn = case.method.draw(np.full(count, x, np.int64), bits)
    return np.searchsorted(case.cells, drawn, side="right").astype(np.int64).clip(1) - 1


def masses(distribution: PointDistribution, x: int, cells: Points) -> list[Any]:
    """Return the probability of every cell; the first and the last one are unbounded."""
    ends = [None, *(int(cell) for cell in cells[1:])]
    lasts = [int(cell) - 1 for cell in cells[1:]]
    return [distribution.mass(x, low, high) for low, high in zip(ends, [*lasts, None], strict=True)]


def drawn_from(distribution: Callable[[Any], PointDistribution]) -> Draw:
    """Return draws from a law that no mechanism has; missing probability goes to its first cell."""

    @lru_cache(maxsize=64)
    def row(case: ScalarCase, x: int) -> IntegerMatrix:
        weights = [max(0, int(chance * FINE)) for chance in masses(distribution(case.method), x, case.cells)]
        weights[0] += max(0, FINE - sum(weights))
        return quantise([weights])

    def draw(case: ScalarCase, x: int, count: int, bits: BitSource) -> Points:
        return row(case, x).sample(np.zeros(count, np.int64), bits)

    return draw


@dataclass(frozen=True, kw_only=True)
class ScalarVersion(Variant):
    """One way to carry out a mechanism: intact, or a mutant.

    `integers(method)` are those that a finite mechanism draws from, None if there is only a law. `fits(case)`
    tells where a mutant differs at all; `bound` adds settings in which samples detect it. `read` returns the
    point that an answer is read as.
    """

    distribution: Callable[[Any], PointDistribution] = distribution_of
    draw: Draw = real_draws
    integers: Callable[[Any], IntegerMatrix | None] = lambda method: method.integers
    fits: Callable[[ScalarCase], bool] = lambda case: True
    bound: tuple[ScalarDrawn, ...] = ()
    read: Read = read

    @property
    def intact(self) -> bool:
        """Whether it is the mechanism itself."""
        return self.draw is real_draws


def wrong(
    name: str,
    distribution: Callable[[Any], PointDistribution],
    fits: Callable[[ScalarCase], bool] = lambda case: True,
    bound: tuple[ScalarDrawn, ...] = (),
    gates: tuple[str, ...] = (),
) -> ScalarVersion:
    """Return a mutant with another law."""
    return ScalarVersion(
        name=name,
        gates=gates,
        distribution=distribution,
        draw=drawn_from(distribution),
        integers=lambda method: None,
        fits=fits,
        bound=bound,
    )


def cases(method: type[ScalarMechanism], *settings: dict[str, Any]) -> tuple[ScalarCase, ...]:
    """Return settings of a mechanism, with ΔF = 1 and ε = 1 unless given."""
    usual = {"sensitivity": 1, "epsilon": 1}
    return tuple(ScalarCase(method(**(usual | setting))) for setting in settings)


def gapped(low: Any, high: Any, *gaps: tuple[Any, Any]) -> Range:
    """Return a range with gaps."""
    return Range(low, high, gaps=gaps)

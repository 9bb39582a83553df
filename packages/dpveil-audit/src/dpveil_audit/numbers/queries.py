"""Audit cases for queries: columns of a few values, the queries, and versions of them.

Answers by definition are computed here independently, in fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.numbers import exact, show
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource
from dpveil.numbers import Plan, statistics
from dpveil_audit.entry import Drawn, Level, Variant

Table = tuple[int, ...]
"""A column as indices into the case's cells, one per row."""
Values = Float64[np.ndarray, "n numbers"]
HALF: Final = Fraction(1, 2)


@dataclass(frozen=True)
class Cell:
    """A value as written in a column, and its number; None if it is missing or a word."""

    written: Any
    number: Fraction | None


@dataclass(frozen=True, eq=False)
class QueryCase:
    """One query with its settings, for all columns of so many rows over these cells."""

    query: str
    cells: tuple[Cell, ...]
    rows: int
    settings: dict[str, Any]
    known: dict[tuple[Table, Lattice], list[int]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def tables(self) -> list[Table]:
        """Every column."""
        return list(product(range(len(self.cells)), repeat=self.rows))

    def neighbours(self, table: Table) -> Iterator[Table]:
        """Yield every pair of columns that differ in one row, once."""
        for row, held in enumerate(table):
            for cell in range(held + 1, len(self.cells)):
                yield (*table[:row], cell, *table[row + 1 :])

    def values(self, table: Table) -> list[Any]:
        """Return a column as the user gives it."""
        return [self.cells[cell].written for cell in table]

    @cached_property
    def asked(self) -> Fraction:
        """The ε that the user requests."""
        return exact(self.settings["epsilon"])

    @property
    def metric(self) -> bool:
        """Whether ε is requested per ΔF."""
        return self.settings.get("relation") == "any-database"

    def allowance(self, plan: Plan, one: Table, other: Table) -> Fraction | None:
        """Return the largest promised log-ratio for two columns, None if nothing is promised."""
        limit = min(self.asked, plan.guarantee.epsilon or Fraction(0))
        replaced = sum(a != b for a, b in zip(one, other, strict=True))
        if not self.metric:
            return limit if replaced == 1 else None
        if self.query == "histogram":
            return limit * replaced
        (a,), (b,) = (self.points(table, plan.mechanism.lattice) for table in (one, other))
        apart = abs(a - b) * plan.mechanism.lattice.step / plan.mechanism.sensitivity
        return limit * (min(apart, Fraction(1)) if replaced == 1 else apart)

    def points(self, table: Table, lattice: Lattice) -> list[int]:
        """Return the answers by definition as points of a lattice, computed once for each."""
        if (table, lattice) not in self.known:
            self.known[table, lattice] = self._points(table, lattice)
        return self.known[table, lattice]

    def _points(self, table: Table, lattice: Lattice) -> list[int]:
        held = [self.cells[cell] for cell in table]
        if self.query == "standard_deviation":
            return [_nearest_root(_variance(self._numbers(held)), lattice.step)]
        if self.query == "mean":
            answers = [sum(self._numbers(held), Fraction(0)) / self.rows]
        elif self.query == "count":
            answers = [Fraction(sum(map(self._holds, held)))]
        else:
            answers = self._bins(held)
        return [int(point) for answer in answers for point in lattice.index(answer)]

    def _numbers(self, held: list[Cell]) -> list[Fraction]:
        low, high = (exact(end) for end in self.settings["range"])
        given = [exact(self.settings.get("missing", 0)) if c.number is None else c.number for c in held]
        return [low if number < low else high if number > high else number for number in given]

    def _holds(self, cell: Cell) -> bool:
        asked = self.settings
        if cell.written is None or cell.written == "":
            return False
        if "equals" in asked:
            wanted: Any = asked["equals"]
            return bool(str(cell.written).strip() == wanted or cell.number == wanted)
        over = "above" not in asked or (cell.number or Fraction(0)) > exact(asked["above"])
        return over and ("below" not in asked or (cell.number or Fraction(0)) < exact(asked["below"]))

    def _bins(self, held: list[Cell]) -> list[Fraction]:
        edges = [exact(edge) for edge in self.edges]
        numbers, last = self._numbers(held), len(edges) - 2
        return [
            Fraction(sum(edges[k] <= x < edges[k + 1] or (k == last and x == edges[-1]) for x in numbers))
            for k in range(last + 1)
        ]

    @property
    def edges(self) -> list[Any]:
        """The edges of a histogram's bins."""
        bins, (low, high) = self.settings["bins"], (exact(end) for end in self.settings["range"])
        if isinstance(bins, int):
            return [low + (high - low) * k / bins for k in range(bins + 1)]
        return list(bins)

    def __str__(self) -> str:
        shown = {name: value for name, value in self.settings.items() if name != "epsilon"}
        words = [f"{name} {_word(value)}" for name, value in shown.items()]
        return ", ".join([f"n = {self.rows}", *words, f"ε = {show(self.asked)}"])


def _word(value: Any) -> str:
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _variance(numbers: list[Fraction]) -> Fraction:
    middle = sum(numbers, Fraction(0)) / len(numbers)
    return sum(((x - middle) ** 2 for x in numbers), Fraction(0)) / len(numbers)


def _nearest_root(square: Fraction, step: Fraction) -> int:
    """Return the first point p with √square < (p + 1/2)·step."""
    point = 0
    while ((point + HALF) * step) ** 2 <= square:
        point += 1
    return point


PlanOf = Callable[[QueryCase, Table], Plan]
Draw = Callable[["QueryVersion", QueryCase, Table, int, BitSource], Values]


def own_plan(case: QueryCase, table: Table) -> Plan:
    """Return the query's own plan."""
    plan: Plan = getattr(statistics, case.query)(case.values(table), **case.settings)
    return plan


def real_draws(version: QueryVersion, case: QueryCase, table: Table, count: int, bits: BitSource) -> Values:
    """Return the query's own answers, planned and released anew every time."""
    del version
    found = [own_plan(case, table).release(bits).response for _ in range(count)]
    return np.array(found, np.float64).reshape(count, -1)


def planned_draws(
    version: QueryVersion, case: QueryCase, table: Table, count: int, bits: BitSource
) -> Values:
    """Return many draws of the plan's mechanism for its answers."""
    plan = version.plan(case, table)
    lattice = plan.mechanism.lattice
    points = lattice.index(np.array(plan.answers, dtype=object))
    drawn = plan.mechanism.draw(np.tile(points, count), bits)
    return lattice.value(drawn).reshape(count, -1)


@dataclass(frozen=True, kw_only=True)
class QueryVersion(Variant):
    """One way to answer: the query itself, or a mutant."""

    plan: PlanOf = own_plan
    many: Draw = planned_draws


INTACT: Final = QueryVersion(name="intact")


QueryDrawn = Drawn[QueryCase, Table]
QueryLevel = Level[QueryCase, Table]

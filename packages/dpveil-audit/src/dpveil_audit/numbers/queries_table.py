"""Audit entries of the queries, with their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from dpveil.errors import DPVeilError
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.numbers.queries import INTACT, Cell, QueryCase, QueryDrawn, QueryLevel, QueryVersion, Table
from dpveil_audit.numbers.queries_gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil_audit.numbers.queries_mutants import COUNT, DEVIATION, HISTOGRAM, MEAN

ANY: Final = "any-database"
DRAWS: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class QueryAudit(Entry[QueryVersion, QueryLevel]):
    """The audit of one query."""

    refusals: ClassVar[tuple[type[DPVeilError], ...]] = (DPVeilError,)

    def checks(self, level: QueryLevel, bits: Bits) -> Iterator[Check[QueryVersion]]:
        """Yield every gate with every setting."""
        yield from computed("same", same_gate, level.exact, self.intact)
        yield from computed("exact", exact_gate, level.exact)
        yield from drawn("fit", fit_gate, level.drawn, bits)
        yield from drawn("bound", bound_gate, level.drawn, bits)


def _cells(*held: tuple[Any, Any]) -> tuple[Cell, ...]:
    return tuple(Cell(written, None if number is None else Fraction(number)) for written, number in held)


UNIT: Final = _cells(
    ("0", 0), (1, 1), (0.5, "1/2"), ("", None), ("1/3", "1/3"), (float("inf") * 0, None), ("7e0", 7)
)
"""Both ends of 0:1, a half, a third, two ways to be missing, and a value that is clipped."""
ENDS: Final = _cells(("0", 0), (1.0, 1))
BELOW: Final = _cells((-4e6, -4 * 10**6), ("-3", -3), ("1e6", 10**6), (" NA ", None), ("3.7", "3.7"))
"""Values for -3:9, some of them below."""
WORDS: Final = _cells(("yes", None), (" yes ", None), ("no", None), ("", None), (None, None))
NUMBERS: Final = _cells(("2", 2), (2.0, 2), (7, 7), ("", None), ("-1e1", -10))
EDGES: Final = _cells(("0", 0), (0.5, "1/2"), ("1/3", "1/3"), (1, 1), (None, None), (-0.25, "-1/4"))


def _case(query: str, cells: tuple[Cell, ...], rows: int, /, **settings: Any) -> QueryCase:
    return QueryCase(query, cells, rows, {"epsilon": 1, **settings})


def _drawn(case: QueryCase, *fits: Table, pairs: tuple[tuple[Table, Table], ...]) -> QueryDrawn:
    return QueryDrawn(case, DRAWS, fits, pairs)


def _audit(
    exact: tuple[QueryCase, ...],
    deep: tuple[QueryCase, ...],
    settings: tuple[QueryDrawn, ...],
    mutants: tuple[QueryVersion, ...],
) -> QueryAudit:
    quick = QueryLevel((*(one.case for one in settings), *exact), settings)
    return QueryAudit(intact=INTACT, levels={"quick": quick, "deep": quick.more(deep)}, mutants=mutants)


def _mean() -> QueryAudit:
    unit: dict[str, Any] = {"range": (0, 1), "missing": "1/3"}
    first = _case("mean", UNIT, 3, mechanism="geometric", **unit)
    second = _case("mean", BELOW, 2, mechanism="truncated-laplace", range=(-3, 9), missing=0, step="3/4")
    settings = (
        _drawn(first, (0, 2, 6), (1, 1, 1), pairs=(((0, 0, 0), (0, 0, 1)), ((1, 6, 6), (1, 6, 3)))),
        _drawn(second, (0, 1), (3, 4), pairs=(((0, 1), (0, 2)),)),
    )
    exact = (
        _case("mean", UNIT, 3, mechanism="laplace", relation=ANY, step="1/4", **unit),
        _case("mean", UNIT, 1, mechanism="staircase", step="1/8", **unit),
        _case("mean", UNIT, 2, mechanism="permute-and-flip", step="1/5", **{**unit, "epsilon": 2}),
        _case("mean", UNIT, 2, mechanism="linear-program-1", step="1/3", **unit),
        _case("mean", BELOW, 3, mechanism="explicit-fair", relation=ANY, range=(-3, 9), missing=9, step=1),
        _case("mean", ENDS, 7, mechanism="exponential", range=(0, 1), step="1/10"),
        _case("mean", ENDS, 7, mechanism="truncated-laplace", relation=ANY, range=(0, 1), step="1/9"),
    )
    deep = (
        _case("mean", UNIT, 4, mechanism="geometric", **unit),
        _case("mean", UNIT, 3, **unit),
        _case("mean", UNIT, 3, mechanism="truncated-laplace", **unit),
        _case("mean", BELOW, 4, mechanism="geometric", range=("-3", "9.1"), missing=0, epsilon="0.1"),
        _case("mean", ENDS, 9, mechanism="laplace", range=(0, 1), step="1/16", epsilon=5),
    )
    return _audit(exact, deep, settings, MEAN)


def _deviation() -> QueryAudit:
    query, unit = "standard_deviation", {"range": (0, 1), "missing": 1}
    first = _case(query, UNIT, 3, mechanism="geometric", step="1/20", **unit)
    second = _case(query, BELOW, 2, mechanism="truncated-laplace", range=(-3, 9), missing=0, step="1/2")
    settings = (
        _drawn(first, (0, 2, 6), (1, 1, 1), pairs=(((0, 0, 0), (0, 0, 1)), ((1, 6, 6), (1, 6, 0)))),
        _drawn(second, (0, 1), (2, 4), pairs=(((2, 2), (2, 1)),)),
    )
    exact = (
        _case(query, UNIT, 3, mechanism="laplace", relation=ANY, step="1/12", **unit),
        _case(query, UNIT, 2, mechanism="staircase", step="1/14", **unit),
        _case(query, UNIT, 3, mechanism="explicit-fair", step="1/6", **{**unit, "epsilon": 2}),
        _case(query, ENDS, 7, mechanism="geometric", range=(0, 1), step="1/100"),
        _case(query, ENDS, 7, mechanism="exponential", range=(0, 1), step="1/6"),
    )
    deep = (
        _case(query, UNIT, 4, mechanism="geometric", step="1/30", **unit),
        _case(query, UNIT, 3, **unit),
        _case(query, BELOW, 4, mechanism="geometric", range=("-3", 9), missing=0, epsilon="0.1"),
        _case(query, ENDS, 9, mechanism="truncated-laplace", range=(0, 1), step="1/50", epsilon=5),
    )
    return _audit(exact, deep, settings, DEVIATION)


def _count() -> QueryAudit:
    first = _case("count", WORDS, 3, mechanism="geometric", equals="yes")
    second = _case("count", NUMBERS, 2, mechanism="explicit-fair", relation=ANY, above=-10, below=7)
    settings = (
        _drawn(first, (0, 1, 3), (2, 3, 4), pairs=(((0, 0, 0), (0, 0, 2)), ((2, 2, 2), (2, 2, 1)))),
        _drawn(second, (0, 1), (2, 4), pairs=(((0, 0), (0, 2)),)),
    )
    exact = (
        _case("count", WORDS, 1, mechanism="staircase", equals="no"),
        _case("count", NUMBERS, 3, mechanism="laplace", relation=ANY, equals=2),
        _case("count", NUMBERS, 3, mechanism="truncated-laplace", above="1.5"),
        _case("count", NUMBERS[1:4:2], 7, mechanism="exponential", below=7),
        _case("count", NUMBERS, 2, mechanism="uniform", equals=2),
    )
    deep = (
        _case("count", NUMBERS, 4, mechanism="linear-program-2", above=2),
        _case("count", NUMBERS, 3, equals="7"),
        _case("count", WORDS, 4, mechanism="permute-and-flip", equals="yes", epsilon=5),
    )
    return _audit(exact, deep, settings, COUNT)


def _histogram() -> QueryAudit:
    unit: dict[str, Any] = {"range": (0, 1), "missing": "1/3"}
    first = _case("histogram", EDGES, 3, mechanism="geometric", bins=2, **unit)
    second = _case("histogram", EDGES, 2, mechanism="truncated-laplace", bins=(0, "1/3", "1/2", 1), **unit)
    settings = (
        _drawn(first, (0, 1, 5), (3, 3, 3), pairs=(((0, 0, 0), (0, 0, 3)), ((1, 1, 4), (1, 1, 1)))),
        _drawn(second, (0, 2), (1, 4), pairs=(((0, 0), (0, 3)),)),
    )
    exact = (
        _case("histogram", EDGES, 1, mechanism="geometric", bins=3, **unit),
        _case("histogram", EDGES, 3, mechanism="laplace", relation=ANY, bins=3, **unit),
        _case("histogram", EDGES, 2, mechanism="staircase", bins=4, **{**unit, "epsilon": 3}),
        _case("histogram", EDGES, 2, mechanism="explicit-fair", relation=ANY, bins=(0, "0.5", 1), **unit),
        _case("histogram", ENDS, 7, mechanism="exponential", range=(0, 1), bins=2),
        _case("histogram", EDGES, 2, mechanism="geometric", bins=1, **unit),
    )
    deep = (
        _case("histogram", EDGES, 4, mechanism="geometric", bins=5, **unit),
        _case("histogram", EDGES, 3, bins=2, **unit),
        _case("histogram", EDGES, 3, mechanism="linear-program-1", bins=(0, "0.1", "1/3", 1), **unit),
    )
    return _audit(exact, deep, settings, HISTOGRAM)


AUDITS: Final[dict[str, QueryAudit]] = {
    "query-mean": _mean(),
    "query-standard-deviation": _deviation(),
    "query-count": _count(),
    "query-histogram": _histogram(),
}

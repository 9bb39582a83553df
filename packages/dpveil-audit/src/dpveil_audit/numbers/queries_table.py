"""Mutants of the queries, and the columns on which all are audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpveil.core.numbers import exact
from dpveil.errors import DataError, DPVeilError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource
from dpveil.numbers import Plan, build, statistics
from dpveil_audit.engine import Audit, Gate, drawing, uniforms
from dpveil_audit.numbers.queries import (
    INTACT,
    Cell,
    PlanOf,
    QueryCase,
    QueryDrawn,
    QueryLevel,
    QueryVersion,
    Table,
    Values,
    bound_gate,
    exact_gate,
    fit_gate,
    own_plan,
    same_gate,
)

FINE: Final = 1 << 10
"""Points of a deviation's range, to which roots of mutants are rounded first."""


def wrong(name: str, plan: PlanOf) -> QueryVersion:
    """Return a mutant with another plan, from which it draws."""
    return QueryVersion(name=name, plan=plan)


@lru_cache(maxsize=256)
def _made(mechanism: ScalarMechanism, changes: tuple[tuple[str, Any], ...]) -> ScalarMechanism:
    own = ("range", "sensitivity", "epsilon", "relation", "step")
    made = build(mechanism.name, **({name: getattr(mechanism, name) for name in own} | dict(changes)))
    made.prepare()
    return made


def _changed(plan: Plan, **changes: Any) -> Plan:
    """Return a plan with changed parameters of the mechanism and an unchanged promise."""
    return replace(plan, mechanism=_made(plan.mechanism, tuple(changes.items())))


def _with(plan: Plan, answer: Fraction) -> Plan:
    """Return a plan with another answer, moved to a point of its range."""
    low, high = plan.mechanism.range.low, plan.mechanism.range.high
    return replace(plan, answers=(min(max(answer, low or Fraction(0)), high or Fraction(0)),))


def _half(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return _changed(plan, sensitivity=plan.mechanism.sensitivity / 2)


def _moved(share: Callable[[int], Fraction]) -> PlanOf:
    """Return plans whose ΔF is this fraction of the width, as a function of the number of rows."""

    def plan(case: QueryCase, table: Table) -> Plan:
        low, high = (exact(end) for end in case.settings["range"])
        return _changed(own_plan(case, table), sensitivity=(high - low) * share(case.rows))

    return plan


def _present(case: QueryCase, table: Table) -> Plan:
    """Leave missing values out, and calibrate the noise to the number of remaining rows."""
    values = [case.cells[cell].written for cell in table if case.cells[cell].number is not None]
    plan: Plan = getattr(statistics, case.query)(values, **case.settings)
    return plan


def _from_data(case: QueryCase, table: Table) -> Plan:
    """Take the range of values from the column."""
    numbers = _unclipped(case, table)
    low, high = min(numbers), max(numbers)
    settings = {**case.settings, "range": (low, high if high > low else low + 1), "step": None}
    if case.query == "histogram":
        del settings["step"]
    plan: Plan = getattr(statistics, case.query)(case.values(table), **{**settings, "missing": low})
    return plan


def _unclipped(case: QueryCase, table: Table) -> list[Fraction]:
    instead, given = exact(case.settings.get("missing", 0)), [case.cells[cell].number for cell in table]
    return [instead if number is None else number for number in given]


def _mean_unclipped(case: QueryCase, table: Table) -> Plan:
    numbers = _unclipped(case, table)
    return _with(own_plan(case, table), sum(numbers, Fraction(0)) / len(numbers))


def _root(case: QueryCase, table: Table, numbers: list[Fraction], rows: int) -> Plan:
    """Return the plan of a deviation that divides by `rows`, in floats rounded to its lattice."""
    plan = own_plan(case, table)
    middle = sum(numbers, Fraction(0)) / len(numbers)
    square = sum(((x - middle) ** 2 for x in numbers), Fraction(0)) / rows
    step = plan.mechanism.lattice.step
    return _with(plan, step * round(float(square) ** 0.5 / float(step)))


def _root_unclipped(case: QueryCase, table: Table) -> Plan:
    return _root(case, table, _unclipped(case, table), case.rows)


def _twice(case: QueryCase, table: Table) -> Plan:
    """Count a row twice if it satisfies the condition, and clip the count to n afterwards."""
    plan = own_plan(case, table)
    return _with(plan, 2 * plan.answers[0])


def _doubled(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return _changed(plan, epsilon=2 * plan.mechanism.epsilon)


def _refused(case: QueryCase, table: Table) -> Plan:
    """Refuse if no row satisfies the condition."""
    plan = own_plan(case, table)
    if not plan.answers[0]:
        raise DataError("no row holds the condition")
    return plan


def _top(case: QueryCase, table: Table) -> Plan:
    """End the range at the number of rows with a value."""
    present = sum(case.cells[cell].written not in (None, "") for cell in table)
    plan = own_plan(case, table)
    return _changed(plan, range=(0, max(present, 1)))


def _stated_too(case: QueryCase, table: Table) -> Plan:
    """Draw every bin with all of ε, and state the true cost, which was not requested."""
    plan = _doubled(case, table)
    stated = 2 * (plan.guarantee.epsilon or Fraction(0))
    return replace(plan, guarantee=replace(plan.guarantee, epsilon=stated))


def _overlapping(case: QueryCase, table: Table) -> Plan:
    """Count a value on an edge in the bins on both sides."""
    plan = own_plan(case, table)
    edges, numbers = plan.edges or (), _clipped(case, table)
    counts = [Fraction(sum(low <= x <= high for x in numbers)) for low, high in pairwise(edges)]
    return replace(plan, answers=tuple(counts))


def _clipped(case: QueryCase, table: Table) -> list[Fraction]:
    low, high = (exact(end) for end in case.settings["range"])
    return [min(max(number, low), high) for number in _unclipped(case, table)]


def _empty_out(case: QueryCase, table: Table) -> Plan:
    """Show only bins that hold a value."""
    plan = own_plan(case, table)
    return replace(plan, answers=tuple(answer for answer in plan.answers if answer))


def one_draw(version: QueryVersion, case: QueryCase, table: Table, count: int, bits: BitSource) -> Values:
    """Return bins that are all drawn from one uniform number, by the quantiles of their laws."""
    plan = version.plan(case, table)
    uniform = uniforms(bits, count)
    weights = np.array(plan.mechanism.integers.weights, np.float64) if plan.mechanism.integers else np.eye(1)
    ends = np.cumsum(weights, axis=1) / 2.0**64
    last = ends.shape[1] - 1
    columns = [
        np.minimum(np.searchsorted(ends[int(answer)], uniform, side="right"), last) for answer in plan.answers
    ]
    return np.stack(columns, axis=1).astype(np.float64)


MEAN: Final = (
    wrong("sensitivity halved", _half),
    wrong("sensitivity of one row more", _moved(lambda n: Fraction(1, n + 1))),
    wrong("clipped after the mean", _mean_unclipped),
    wrong("missing values left out", _present),
    wrong("range from the data", _from_data),
)
DEVIATION: Final = (
    wrong("sensitivity halved", _half),
    wrong("sensitivity of a mean", _moved(lambda n: Fraction(1, n))),
    wrong("divided by n - 1", lambda case, table: _root(case, table, _clipped(case, table), case.rows - 1)),
    wrong("variance of values that are not clipped", _root_unclipped),
    wrong("missing values left out", _present),
)
COUNT: Final = (
    wrong("ε doubled", _doubled),
    wrong("rows counted twice, then clipped", _twice),
    wrong("missing values left out", _top),
    wrong("refused where no row matches", _refused),
    wrong("response without noise", lambda case, table: _changed(own_plan(case, table), epsilon=40)),
)
HISTOGRAM: Final = (
    wrong("ε for every bin", _doubled),
    wrong("ε for every bin, and stated", _stated_too),
    wrong("bins that overlap", _overlapping),
    wrong("bins from the data", _from_data),
    wrong("empty bins left out", _empty_out),
    QueryVersion(name="one draw for all bins", many=one_draw),
)


# Audit entries of the queries, with their columns

ANY: Final = "any-database"
DRAWS: Final = 10_000


GATES: Final = (
    Gate("same", same_gate, ties=True),
    Gate("exact", exact_gate),
    drawing("fit", fit_gate),
    drawing("bound", bound_gate),
)


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
) -> Audit:
    quick = QueryLevel((*(one.case for one in settings), *exact), settings)
    levels = {"quick": quick, "deep": quick.more(deep)}
    return Audit(intact=INTACT, levels=levels, mutants=mutants, gates=GATES, refusals=(DPVeilError,))


def _mean() -> Audit:
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


def _deviation() -> Audit:
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


def _count() -> Audit:
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


def _histogram() -> Audit:
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


AUDITS: Final[dict[str, Audit]] = {
    "query-mean": _mean(),
    "query-standard-deviation": _deviation(),
    "query-count": _count(),
    "query-histogram": _histogram(),
}

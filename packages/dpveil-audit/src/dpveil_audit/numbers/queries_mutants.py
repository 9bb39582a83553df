"""Mutants of the queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpveil.core.numbers import exact
from dpveil.errors import DataError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource
from dpveil.numbers import Plan, build, statistics
from dpveil_audit.numbers.queries import PlanOf, QueryCase, QueryVersion, Table, Values, own_plan

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


def _sample_root(case: QueryCase, table: Table) -> Plan:
    return _root(case, table, _clipped(case, table), case.rows - 1)


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
    uniform = (bits.words(count) >> np.uint64(11)).astype(np.float64) / (1 << 53)
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
    wrong("divided by n - 1", _sample_root),
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

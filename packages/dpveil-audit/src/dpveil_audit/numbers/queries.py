"""The audits of queries: columns of a few values, what is released about them, mutants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Final

import numpy as np

from dpveil.core.rationals import exact, show
from dpveil.errors import DataError, DPVeilError
from dpveil.mechanisms.scalar import Range
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import Plan, statistics
from dpveil.numbers.columns import is_missing
from dpveil_audit import engine
from dpveil_audit.divergence import Pairs
from dpveil_audit.engine import (
    Audit,
    Finding,
    Gate,
    Level,
    Version,
    count_finding,
    planted,
)
from dpveil_audit.scalar.case import cost_findings, setting_words

Table = tuple[int, ...]
"""A column as indices into the case's cells, one per row."""


@dataclass(frozen=True, eq=False)
class QueryCase(engine.Case):
    """One query with its settings, for all columns of so many rows over these cells."""

    query: str
    cells: tuple[Any, ...]
    rows: int
    settings: dict[str, Any]

    @cached_property
    def inputs(self) -> list[Table]:
        return list(product(range(len(self.cells)), repeat=self.rows))

    @cached_property
    def pairs(self) -> Pairs:
        """Neighbours, and any two columns if something is promised about them and they are few."""
        tables = np.array(self.inputs)
        if self.metric and len(tables) ** 2 <= 2 * PAIRS:
            return super().pairs
        return np.argwhere((tables[:, None] != tables[None]).sum(axis=2) == 1)

    def values(self, table: Table) -> list[Any]:
        return [self.cells[cell] for cell in table]

    @cached_property
    def requested_epsilon(self) -> Fraction:
        return exact(self.settings["epsilon"])

    @property
    def metric(self) -> bool:
        return self.settings.get("relation") == "any-database"

    def allowed(self, first: Plan, answers: Sequence[Any]) -> Any:
        """Return how often ε is promised for every pair of columns; None if once."""
        if not self.metric:
            return None
        lattice, tables = first.mechanism.lattice, np.array(self.inputs)
        one, two = self.pairs.T
        replaced = (tables[one] != tables[two]).sum(axis=1).astype(object)
        if self.query == "histogram":
            return replaced
        points = np.array([lattice.index(own[0])[0] for own in answers], object)
        apart = np.abs(points[one] - points[two]) * (lattice.step / first.mechanism.sensitivity)
        apart[(replaced == 1) & (apart > 1)] = Fraction(1)
        return apart

    def label(self, number: int) -> str:
        return str(self.values(self.inputs[number]))

    def __str__(self) -> str:
        words = setting_words(self.settings, "epsilon")
        return ", ".join([f"n = {self.rows}", *words, f"ε = {show(self.requested_epsilon)}"])


def plan_of(case: QueryCase, table: Table) -> Plan:
    plan: Plan = getattr(statistics, case.query)(case.values(table), **case.settings)
    return plan


def mechanism_draws(plan: Plan, bits: BitSource) -> list[float]:
    """Return the draws of the plan's mechanism for its answers, one by one."""
    mechanism = plan.mechanism
    points = mechanism.lattice.index(np.array(plan.answers, dtype=object))
    return [float(value) for value in mechanism.lattice.value(mechanism.draw(points, bits))]


SAME: Final = 12
PAIRS: Final = 20_000  # pairs up to which all are checked, for a promise about any two columns


def same_gate(version: Version, case: QueryCase) -> Iterator[Finding]:
    """Yield whether releases are draws of the mechanism of the plan for its answers.

    Mechanisms are audited by themselves, so that no response has to be counted here.
    """
    others = 0
    for table in case.inputs[:: max(1, len(case.inputs) // SAME)]:
        plan, name = plan_of(case, table), f"same {table}"
        response = plan.release(SeededBits(1, name)).response
        shown = list(response) if isinstance(response, tuple) else [response]
        others += shown != mechanism_draws(plan, SeededBits(1, name))
    yield count_finding("same", "releases unlike draws of the mechanism", case, others, "columns")


def exact_gate(version: Version, case: QueryCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of all that is released about neighbours.

    That includes public facts, and whether a column is refused.
    """
    plans = [_plan(case, table) for table in case.inputs]
    first = next((plan for plan in plans if plan is not None), None)
    if first is None:
        yield Finding("exact", "columns that are refused", str(case), len(plans), 0, False, "columns")
        return
    yield from cost_findings(
        case,
        first.guarantee.epsilon or Fraction(0),
        [_numbers(plan) for plan in plans],
        [_public(plan) for plan in plans],
        apart=case.allowed(first, [(first if plan is None else plan).answers for plan in plans]),
        kind=first.guarantee.kind == ("metric" if case.metric else "pure"),
    )


def _plan(case: QueryCase, table: Table) -> Plan | None:
    """Return the plan for a column, or None if that, or its answer, is refused."""
    try:
        plan = plan_of(case, table)
        plan.mechanism.lattice.index(np.array(plan.answers, dtype=object))
    except DPVeilError:
        return None
    return plan


def _public(plan: Plan | None) -> tuple[Any, ...]:
    return () if plan is None else (plan.query, plan.rows, str(plan.guarantee), plan.edges)


def _numbers(plan: Plan | None) -> tuple[Any, ...]:
    if plan is None:
        return ()
    points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object)).tolist()
    return tuple(((plan.mechanism, point),) for point in points)


# Faults in dpveil: what becomes of a function


def _unclipped(own: Any) -> Any:
    def numbers(rows: list[Any], allowed: Range, missing: Any) -> list[Fraction]:
        return [exact(missing) if is_missing(value) else exact(value) for value in rows]

    return numbers


def _without_missing(own: Any) -> Any:
    return lambda values: [value for value in own(values) if not is_missing(value)] or own(values)


def _from_data(own: Any) -> Any:
    def mean(values: list[Any], *, range: Any, step: Any = None, **more: Any) -> Plan:  # noqa: A002
        numbers = [exact(value) for value in values if not is_missing(value)] or [Fraction(0)]
        low, high = min(numbers), max(numbers)
        plan: Plan = own(values, range=(low, high if high > low else low + 1), **{**more, "missing": low})
        return plan

    return mean


def _doubled(own: Any) -> Any:
    def plan(*given: Any) -> Plan:
        made: Plan = own(*given)
        return replace(made, mechanism=replace(made.mechanism, epsilon=2 * made.mechanism.epsilon))

    return plan


def _refuse_none(own: Any) -> Any:
    def plan(query: str, value: Fraction, *rest: Any) -> Plan:
        if not value:
            raise DataError("no row holds the condition")
        made: Plan = own(query, value, *rest)
        return made

    return plan


def _one_noise(own: Any) -> Any:
    def release(self: Plan, bits: BitSource) -> Any:
        answer = own(self, bits)
        noise = answer.response[0] - float(self.answers[0])
        return replace(answer, response=tuple(float(true) + noise for true in self.answers))

    return release


MEAN: Final = (
    planted(
        "half the sensitivity", statistics, "_width", lambda own: lambda allowed: own(allowed) / 2, "exact"
    ),
    planted("values not clipped", statistics, "clip_values", _unclipped, "exact"),
    planted("missing values left out", statistics, "as_list", _without_missing, "exact"),
    planted("range from the data", statistics, "mean", _from_data, "exact"),
)
DEVIATION: Final = (
    planted("values not clipped", statistics, "clip_values", _unclipped, "exact"),
    planted(
        "sensitivity of a mean",
        statistics,
        "deviation_moves",
        lambda own: lambda width, n: width / n,
        "exact",
    ),
)
COUNT: Final = (
    planted("ε doubled", statistics, "_single_plan", _doubled, "exact"),
    planted("missing values left out", statistics, "as_list", _without_missing, "exact"),
    planted("refused where no row matches", statistics, "_single_plan", _refuse_none, "exact"),
)
HISTOGRAM: Final = (
    planted(
        "ε for every bin, and stated",
        statistics,
        "_for_counts",
        lambda own: lambda name, rows, epsilon, relation: own(name, rows, 2 * epsilon, relation),
        "exact",
    ),
    planted("one noise for all bins", Plan, "release", _one_noise, "same"),
)


ANY: Final = "any-database"


UNIT: Final = ("0", 1, 0.5, "", "1/3", float("nan"), "7e0")
"""Both ends of 0:1, a half, a third, two ways to be missing, and a value that is clipped."""
ENDS: Final = ("0", 1.0)
BELOW: Final = (-4e6, "-3", "1e6", " NA ", "3.7")
"""Values for -3:9, some of them below."""
WORDS: Final = ("yes", " yes ", "no", "", None)
NUMBERS: Final = ("2", 2.0, 7, "", "-1e1")
EDGES: Final = ("0", 0.5, "1/3", 1, None, -0.25)


UNIT_RANGE: Final[dict[str, Any]] = {"range": (0, 1), "missing": "1/3"}
ROOTS: Final[dict[str, Any]] = {"range": (0, 1), "missing": 1}


def _case(cells: tuple[Any, ...], rows: int, mechanism: str | None = None, /, **settings: Any) -> QueryCase:
    chosen = {} if mechanism is None else {"mechanism": mechanism}
    return QueryCase("", cells, rows, {"epsilon": 1, **chosen, **settings})


QUERIES: Final = {
    "mean": (
        MEAN,
        (
            _case(UNIT, 3, "geometric", **UNIT_RANGE),
            _case(BELOW, 2, "truncated-laplace", range=(-3, 9), missing=0, step="3/4"),
            _case(UNIT, 3, "laplace", relation=ANY, step="1/4", **UNIT_RANGE),
            _case(UNIT, 1, "staircase", step="1/8", **UNIT_RANGE),
            _case(UNIT, 2, "linear-program-2", step="1/5", epsilon=2, **UNIT_RANGE),
            _case(BELOW, 3, "explicit-fair", relation=ANY, range=(-3, 9), missing=9, step=1),
            _case(ENDS, 7, "truncated-laplace", range=(0, 1), step="1/10"),
        ),
    ),
    "standard_deviation": (
        DEVIATION,
        (
            _case(UNIT, 3, "geometric", step="1/20", **ROOTS),
            _case(BELOW, 2, "truncated-laplace", range=(-3, 9), missing=0, step="1/2"),
            _case(UNIT, 3, "laplace", relation=ANY, step="1/12", **ROOTS),
            _case(UNIT, 3, "explicit-fair", step="1/6", epsilon=2, **ROOTS),
            _case(ENDS, 7, "geometric", range=(0, 1), step="1/100"),
        ),
    ),
    "count": (
        COUNT,
        (
            _case(WORDS, 3, "geometric", equals="yes"),
            _case(NUMBERS, 2, "explicit-fair", relation=ANY, above=-10, below=7),
            _case(NUMBERS, 3, "laplace", relation=ANY, equals=2),
            _case(NUMBERS, 3, "truncated-laplace", above="1.5"),
            _case(NUMBERS[1:4:2], 7, "explicit-fair", below=7),
        ),
    ),
    "histogram": (
        HISTOGRAM,
        (
            _case(EDGES, 3, "geometric", bins=2, **UNIT_RANGE),
            _case(EDGES, 2, "truncated-laplace", bins=(0, "1/3", "1/2", 1), **UNIT_RANGE),
            _case(EDGES, 3, "laplace", relation=ANY, bins=3, **UNIT_RANGE),
            _case(EDGES, 2, "staircase", bins=4, epsilon=3, **UNIT_RANGE),
            _case(EDGES, 2, "explicit-fair", relation=ANY, bins=(0, "0.5", 1), **UNIT_RANGE),
            _case(ENDS, 7, "truncated-laplace", range=(0, 1), bins=2),
        ),
    ),
}
"""The mutants of each query, and its settings."""


def _audit(query: str) -> Audit:
    mutants, settings = QUERIES[query]
    return Audit(
        intact=Version(name="intact"),
        level=Level(tuple(replace(case, query=query) for case in settings)),
        mutants=mutants,
        gates=(Gate("same", same_gate), Gate("exact", exact_gate)),
        refusals=(DPVeilError,),
    )


AUDITS: Final = {f"query-{query.replace('_', '-')}": _audit(query) for query in QUERIES}

"""The audits of queries: columns of a few values, answers by definition in fractions, mutants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from dpveil.core.rationals import exact, show
from dpveil.errors import DataError, DPVeilError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import Plan, build, statistics
from dpveil_audit import engine
from dpveil_audit.divergence import Pairs
from dpveil_audit.engine import (
    Audit,
    Finding,
    Gate,
    Level,
    Version,
    count_finding,
    sampled,
)
from dpveil_audit.scalar.case import cost_findings, setting_words

Table = tuple[int, ...]
"""A column as indices into the case's cells, one per row."""
HALF: Final = Fraction(1, 2)


@dataclass(frozen=True)
class Cell:
    """A value as written in a column, and its number; None if it is missing or a word."""

    written: Any
    number: Fraction | None


@dataclass(frozen=True, eq=False)
class QueryCase(engine.Case):
    """One query with its settings, for all columns of so many rows over these cells."""

    query: str
    cells: tuple[Cell, ...]
    rows: int
    settings: dict[str, Any]
    known: dict[tuple[Table, Lattice], list[int]] = field(default_factory=dict, init=False, repr=False)

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
        return [self.cells[cell].written for cell in table]

    @cached_property
    def requested_epsilon(self) -> Fraction:
        return exact(self.settings["epsilon"])

    @property
    def metric(self) -> bool:
        return self.settings.get("relation") == "any-database"

    def allowed(self, plan: Plan) -> Any:
        """Return how often ε is promised for every pair of columns; None if once."""
        if not self.metric:
            return None
        lattice, tables = plan.mechanism.lattice, np.array(self.inputs)
        first, second = self.pairs.T
        replaced = (tables[first] != tables[second]).sum(axis=1).astype(object)
        if self.query == "histogram":
            return replaced
        points = np.array([self.points(table, lattice)[0] for table in self.inputs], object)
        apart = np.abs(points[first] - points[second]) * (lattice.step / plan.mechanism.sensitivity)
        apart[(replaced == 1) & (apart > 1)] = Fraction(1)
        return apart

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
        bins, (low, high) = self.settings["bins"], (exact(end) for end in self.settings["range"])
        if isinstance(bins, int):
            return [low + (high - low) * k / bins for k in range(bins + 1)]
        return list(bins)

    def label(self, number: int) -> str:
        return str(self.values(self.inputs[number]))

    def __str__(self) -> str:
        words = setting_words(self.settings, "epsilon")
        return ", ".join([f"n = {self.rows}", *words, f"ε = {show(self.requested_epsilon)}"])


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


def own_plan(case: QueryCase, table: Table) -> Plan:
    plan: Plan = getattr(statistics, case.query)(case.values(table), **case.settings)
    return plan


def own_draws(plan: Plan, bits: BitSource) -> list[float]:
    response = plan.release(bits).response
    return list(response) if isinstance(response, tuple) else [response]


def mechanism_draws(plan: Plan, bits: BitSource) -> list[float]:
    """Return the draws of the plan's mechanism for its answers, one by one."""
    mechanism = plan.mechanism
    points = mechanism.lattice.index(np.array(plan.answers, dtype=object))
    return [float(value) for value in mechanism.lattice.value(mechanism.draw(points, bits))]


@dataclass(frozen=True, kw_only=True)
class QueryVersion(Version):
    """One way to answer: the query itself, or a mutant."""

    plan: PlanOf = own_plan
    release: Callable[[Plan, BitSource], list[float]] = own_draws


INTACT: Final = QueryVersion(name="intact")


SAME: Final = 12
PAIRS: Final = 20_000  # pairs up to which all are checked, for a promise about any two columns


def same_gate(version: QueryVersion, case: QueryCase) -> Iterator[Finding]:
    """Yield whether answers are those of the definition, and releases draws of the mechanism of the plan.

    Mechanisms are audited by themselves, so that no response has to be counted here.
    """
    unlike = 0
    for table in case.inputs:
        plan = version.plan(case, table)
        points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object)).tolist()
        unlike += points != case.points(table, plan.mechanism.lattice)
    what = f"answers unlike the definition, {len(case.inputs)} columns"
    yield count_finding("same", what, case, unlike, "columns")
    some = case.inputs[:: max(1, len(case.inputs) // SAME)]
    others = 0
    for table in some:
        plan, name = version.plan(case, table), f"same {table}"
        others += version.release(plan, SeededBits(1, name)) != mechanism_draws(plan, SeededBits(1, name))
    yield count_finding("same", "releases unlike draws of the mechanism", case, others, "columns")


def exact_gate(version: QueryVersion, case: QueryCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of all that is released about neighbours.

    That includes public facts, and whether a column is refused.
    """
    plans = [_plan(version, case, table) for table in case.inputs]
    first = next((plan for plan in plans if plan is not None), None)
    if first is None:
        yield Finding("exact", "columns that are refused", str(case), len(plans), 0, False, "columns")
        return
    yield from cost_findings(
        case,
        first.guarantee.epsilon or Fraction(0),
        [_numbers(plan) for plan in plans],
        [_public(plan) for plan in plans],
        apart=case.allowed(first),
        kind=first.guarantee.kind == ("metric" if case.metric else "pure"),
    )


def _plan(version: QueryVersion, case: QueryCase, table: Table) -> Plan | None:
    try:
        return version.plan(case, table)
    except DPVeilError:
        return None


def _public(plan: Plan | None) -> tuple[Any, ...]:
    return () if plan is None else (plan.query, plan.rows, str(plan.guarantee), plan.edges)


def _numbers(plan: Plan | None) -> tuple[Any, ...]:
    if plan is None:
        return ()
    points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object)).tolist()
    return tuple(((plan.mechanism, point),) for point in points)


def wrong(name: str, plan: PlanOf) -> QueryVersion:
    return QueryVersion(name=name, gates=("exact",), plan=plan)


@lru_cache(maxsize=256)
def _build(mechanism: ScalarMechanism, changes: tuple[tuple[str, Any], ...]) -> ScalarMechanism:
    own = ("range", "sensitivity", "epsilon", "relation", "step")
    made = build(mechanism.name, **({name: getattr(mechanism, name) for name in own} | dict(changes)))
    made.prepare()
    return made


def _change(plan: Plan, **changes: Any) -> Plan:
    """Return a plan with changed parameters of the mechanism and an unchanged promise."""
    return replace(plan, mechanism=_build(plan.mechanism, tuple(changes.items())))


def _with(plan: Plan, answer: Fraction) -> Plan:
    """Return a plan with another answer, moved to a point of its range."""
    low, high = plan.mechanism.range.low, plan.mechanism.range.high
    return replace(plan, answers=(min(max(answer, low or Fraction(0)), high or Fraction(0)),))


def _scaled_sensitivity(share: Callable[[int], Fraction]) -> PlanOf:
    """Return plans whose ΔF is this fraction of the width, as a function of the number of rows."""

    def plan(case: QueryCase, table: Table) -> Plan:
        low, high = (exact(end) for end in case.settings["range"])
        return _change(own_plan(case, table), sensitivity=(high - low) * share(case.rows))

    return plan


def _present(case: QueryCase, table: Table) -> Plan:
    """Leave missing values out, and calibrate the noise to the number of remaining rows."""
    values = [case.cells[cell].written for cell in table if case.cells[cell].number is not None]
    plan: Plan = getattr(statistics, case.query)(values, **case.settings)
    return plan


def _from_data(case: QueryCase, table: Table) -> Plan:
    numbers = _unclipped_values(case, table)
    low, high = min(numbers), max(numbers)
    own = {name: value for name, value in case.settings.items() if name != "step"}
    settings = {"range": (low, high if high > low else low + 1), "missing": low}
    plan: Plan = getattr(statistics, case.query)(case.values(table), **{**own, **settings})
    return plan


def _unclipped_values(case: QueryCase, table: Table) -> list[Fraction]:
    instead, given = exact(case.settings.get("missing", 0)), [case.cells[cell].number for cell in table]
    return [instead if number is None else number for number in given]


def _mean_unclipped(case: QueryCase, table: Table) -> Plan:
    numbers = _unclipped_values(case, table)
    return _with(own_plan(case, table), sum(numbers, Fraction(0)) / len(numbers))


def _unclipped_deviation(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    step, most = plan.mechanism.lattice.step, plan.mechanism.range.high or Fraction(0)
    square = min(_variance(_unclipped_values(case, table)), most**2)
    return _with(plan, step * _nearest_root(square, step))


def _doubled_epsilon(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return _change(plan, epsilon=2 * plan.mechanism.epsilon)


def _refuse_empty(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    if not plan.answers[0]:
        raise DataError("no row holds the condition")
    return plan


def _top(case: QueryCase, table: Table) -> Plan:
    """End the range at the number of rows with a value."""
    present = sum(case.cells[cell].written not in (None, "") for cell in table)
    plan = own_plan(case, table)
    return _change(plan, range=(0, max(present, 1)))


def _stated_too(case: QueryCase, table: Table) -> Plan:
    """Draw every bin with all of ε, and state the true cost, which was not requested."""
    plan = _doubled_epsilon(case, table)
    stated = 2 * (plan.guarantee.epsilon or Fraction(0))
    return replace(plan, guarantee=replace(plan.guarantee, epsilon=stated))


def _overlapping(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    edges, numbers = plan.edges or (), _clipped_values(case, table)
    counts = [Fraction(sum(low <= x <= high for x in numbers)) for low, high in pairwise(edges)]
    return replace(plan, answers=tuple(counts))


def _clipped_values(case: QueryCase, table: Table) -> list[Fraction]:
    low, high = (exact(end) for end in case.settings["range"])
    return [min(max(number, low), high) for number in _unclipped_values(case, table)]


def _empty_out(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return replace(plan, answers=tuple(answer for answer in plan.answers if answer))


def one_draw(plan: Plan, bits: BitSource) -> list[float]:
    """Return bins that are all drawn from one uniform number, by the quantiles of their laws."""
    weights = plan.mechanism.integers.weights if plan.mechanism.integers else np.eye(1)
    rows = [np.array(weights[int(answer)], np.float64) for answer in plan.answers]
    return [float(x) for x in sampled([row / row.sum() for row in rows], 1, bits, shared=True)[0]]


MEAN: Final = (
    wrong("sensitivity of one row more", _scaled_sensitivity(lambda n: Fraction(1, n + 1))),
    wrong("clipped after the mean", _mean_unclipped),
    wrong("missing values left out", _present),
    wrong("range from the data", _from_data),
)
DEVIATION: Final = (
    wrong("variance of values that are not clipped", _unclipped_deviation),
    wrong("sensitivity of a mean", _scaled_sensitivity(lambda n: Fraction(1, n))),
)
COUNT: Final = (
    wrong("ε doubled", _doubled_epsilon),
    wrong("missing values left out", _top),
    wrong("refused where no row matches", _refuse_empty),
)
HISTOGRAM: Final = (
    wrong("ε for every bin, and stated", _stated_too),
    wrong("bins that overlap", _overlapping),
    wrong("empty bins left out", _empty_out),
    QueryVersion(name="one draw for all bins", gates=("same",), release=one_draw),
)


ANY: Final = "any-database"


def _make_cells(*held: tuple[Any, Any]) -> tuple[Cell, ...]:
    return tuple(Cell(written, None if number is None else Fraction(number)) for written, number in held)


UNIT: Final = _make_cells(
    ("0", 0), (1, 1), (0.5, "1/2"), ("", None), ("1/3", "1/3"), (float("inf") * 0, None), ("7e0", 7)
)
"""Both ends of 0:1, a half, a third, two ways to be missing, and a value that is clipped."""
ENDS: Final = _make_cells(("0", 0), (1.0, 1))
BELOW: Final = _make_cells((-4e6, -4 * 10**6), ("-3", -3), ("1e6", 10**6), (" NA ", None), ("3.7", "3.7"))
"""Values for -3:9, some of them below."""
WORDS: Final = _make_cells(("yes", None), (" yes ", None), ("no", None), ("", None), (None, None))
NUMBERS: Final = _make_cells(("2", 2), (2.0, 2), (7, 7), ("", None), ("-1e1", -10))
EDGES: Final = _make_cells(("0", 0), (0.5, "1/2"), ("1/3", "1/3"), (1, 1), (None, None), (-0.25, "-1/4"))


UNIT_RANGE: Final[dict[str, Any]] = {"range": (0, 1), "missing": "1/3"}
ROOTS: Final[dict[str, Any]] = {"range": (0, 1), "missing": 1}


def _case(cells: tuple[Cell, ...], rows: int, mechanism: str | None = None, /, **settings: Any) -> QueryCase:
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
            _case(UNIT, 2, "linear-program-1", step="1/3", **UNIT_RANGE),
            _case(BELOW, 3, "explicit-fair", relation=ANY, range=(-3, 9), missing=9, step=1),
            _case(ENDS, 7, "truncated-laplace", range=(0, 1), step="1/10"),
            _case(ENDS, 7, "truncated-laplace", relation=ANY, range=(0, 1), step="1/9"),
        ),
        (
            _case(UNIT, 4, "geometric", **UNIT_RANGE),
            _case(UNIT, 3, **UNIT_RANGE),
            _case(UNIT, 3, "truncated-laplace", **UNIT_RANGE),
            _case(BELOW, 4, "geometric", range=("-3", "9.1"), missing=0, epsilon="0.1"),
            _case(ENDS, 9, "laplace", range=(0, 1), step="1/16", epsilon=5),
        ),
    ),
    "standard_deviation": (
        DEVIATION,
        (
            _case(UNIT, 3, "geometric", step="1/20", **ROOTS),
            _case(BELOW, 2, "truncated-laplace", range=(-3, 9), missing=0, step="1/2"),
            _case(UNIT, 3, "laplace", relation=ANY, step="1/12", **ROOTS),
            _case(UNIT, 2, "staircase", step="1/14", **ROOTS),
            _case(UNIT, 3, "explicit-fair", step="1/6", epsilon=2, **ROOTS),
            _case(ENDS, 7, "geometric", range=(0, 1), step="1/100"),
            _case(ENDS, 7, "truncated-laplace", range=(0, 1), step="1/6"),
        ),
        (
            _case(UNIT, 4, "geometric", step="1/30", **ROOTS),
            _case(UNIT, 3, **ROOTS),
            _case(BELOW, 4, "geometric", range=("-3", 9), missing=0, epsilon="0.1"),
            _case(ENDS, 9, "truncated-laplace", range=(0, 1), step="1/50", epsilon=5),
        ),
    ),
    "count": (
        COUNT,
        (
            _case(WORDS, 3, "geometric", equals="yes"),
            _case(NUMBERS, 2, "explicit-fair", relation=ANY, above=-10, below=7),
            _case(WORDS, 1, "staircase", equals="no"),
            _case(NUMBERS, 3, "laplace", relation=ANY, equals=2),
            _case(NUMBERS, 3, "truncated-laplace", above="1.5"),
            _case(NUMBERS[1:4:2], 7, "explicit-fair", below=7),
            _case(NUMBERS, 2, "uniform", equals=2),
        ),
        (
            _case(NUMBERS, 4, "linear-program-2", above=2),
            _case(NUMBERS, 3, equals="7"),
            _case(WORDS, 4, "explicit-fair", equals="yes", epsilon=5),
        ),
    ),
    "histogram": (
        HISTOGRAM,
        (
            _case(EDGES, 3, "geometric", bins=2, **UNIT_RANGE),
            _case(EDGES, 2, "truncated-laplace", bins=(0, "1/3", "1/2", 1), **UNIT_RANGE),
            _case(EDGES, 1, "geometric", bins=3, **UNIT_RANGE),
            _case(EDGES, 3, "laplace", relation=ANY, bins=3, **UNIT_RANGE),
            _case(EDGES, 2, "staircase", bins=4, epsilon=3, **UNIT_RANGE),
            _case(EDGES, 2, "explicit-fair", relation=ANY, bins=(0, "0.5", 1), **UNIT_RANGE),
            _case(ENDS, 7, "truncated-laplace", range=(0, 1), bins=2),
            _case(EDGES, 2, "geometric", bins=1, **UNIT_RANGE),
        ),
        (
            _case(EDGES, 4, "geometric", bins=5, **UNIT_RANGE),
            _case(EDGES, 3, bins=2, **UNIT_RANGE),
            _case(EDGES, 3, "linear-program-1", bins=(0, "0.1", "1/3", 1), **UNIT_RANGE),
        ),
    ),
}
"""The mutants of each query, and its settings at the quick level and in addition at the deep one."""


def _audit(query: str) -> Audit:
    mutants, *levels = QUERIES[query]
    quick, deep = (tuple(replace(case, query=query) for case in level) for level in levels)
    return Audit(
        intact=INTACT,
        levels=Level(quick).levels(deep),
        mutants=mutants,
        gates=(Gate("same", same_gate), Gate("exact", exact_gate)),
        refusals=(DPVeilError,),
    )


AUDITS: Final = {f"query-{query.replace('_', '-')}": _audit(query) for query in QUERIES}

"""Audit cases for queries: columns of a few values, the queries, and versions of them.

Answers by definition are computed here independently, in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, pairwise, product
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.core.numbers import exact, show
from dpveil.errors import DataError, DPVeilError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import Plan, build, statistics
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.engine import (
    Audit,
    Drawn,
    Finding,
    Gate,
    Level,
    Variant,
    bounds,
    count_finding,
    drawing,
    fit_finding,
    p_values,
    uniforms,
)
from dpveil_audit.fit import fit
from dpveil_audit.lower_bound import Draws
from dpveil_audit.scalar.laws import ROUNDED, Number, Released, chances, cost, release_points

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
    def requested_epsilon(self) -> Fraction:
        """The ε that the user requests."""
        return exact(self.settings["epsilon"])

    @property
    def metric(self) -> bool:
        """Whether ε is requested per ΔF."""
        return self.settings.get("relation") == "any-database"

    def allowance(self, plan: Plan, one: Table, other: Table) -> Fraction | None:
        """Return the largest promised log-ratio for two columns, None if nothing is promised."""
        limit = min(self.requested_epsilon, plan.guarantee.epsilon or Fraction(0))
        replaced = sum(a != b for a, b in zip(one, other, strict=True))
        if not self.metric:
            return limit if replaced == 1 else None
        if self.query == "histogram":
            return limit * replaced
        (a,), (b,) = (self.points(table, plan.mechanism.lattice) for table in (one, other))
        apart = Fraction(abs(a - b) * plan.mechanism.lattice.step / plan.mechanism.sensitivity)
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
        return ", ".join([f"n = {self.rows}", *words, f"ε = {show(self.requested_epsilon)}"])


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
    return np.asarray(lattice.value(drawn)).reshape(count, -1)


@dataclass(frozen=True, kw_only=True)
class QueryVersion(Variant):
    """One way to answer: the query itself, or a mutant."""

    plan: PlanOf = own_plan
    many: Draw = planned_draws


INTACT: Final = QueryVersion(name="intact")


QueryDrawn = Drawn[QueryCase, Table]
QueryLevel = Level[QueryCase, Table]


# Gates for queries: answers by definition, exact costs of neighbouring columns, fits, and lower bounds

Planned = dict[Table, Plan | None]
SAME: Final = 12
PAIRS: Final = 20_000
"""Pairs up to which all are checked, for a promise about any two columns."""
BYTES: Final = 256
ANEW: Final = 25
"""One in this many releases calls the query itself; the others come from its plan."""


def same_gate(version: QueryVersion, case: QueryCase) -> Iterator[Finding]:
    """Yield whether answers are those of the definition, and whether a query releases its plan."""
    unlike = 0
    for table in case.tables:
        plan = version.plan(case, table)
        points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object)).tolist()
        unlike += points != case.points(table, plan.mechanism.lattice)
    what = f"answers unlike the definition, {len(case.tables)} columns"
    yield count_finding("same", what, case, unlike, "columns")
    others = 0
    for table in case.tables[:: max(1, len(case.tables) // SAME)]:
        own = version.plan(case, table).release(SeededBits(1, f"same {table}")).response
        seen = planned_draws(version, case, table, 1, SeededBits(1, f"same {table}"))[0]
        others += seen.tolist() != (list(own) if isinstance(own, tuple) else [own])
    yield count_finding("same", "releases unlike those of the plan", case, others, "columns")


def exact_gate(version: QueryVersion, case: QueryCase) -> Iterator[Finding]:
    """Yield the stated cost, public facts that differ, and the largest log-ratio of neighbours."""
    if version is not INTACT and version.plan is INTACT.plan:
        return  # its distributions are those of the query, so that only draws can show what is wrong
    plans = {table: _plan(version, case, table) for table in case.tables}
    first = next((plan for plan in plans.values() if plan is not None), None)
    if first is None:
        yield Finding("exact", "columns that are refused", str(case), len(plans), 0, False, "columns")
        return
    beyond = max(Fraction(0), (first.guarantee.epsilon or Fraction(0)) - case.requested_epsilon)
    kept = not beyond and first.guarantee.kind == ("metric" if case.metric else "pure")
    yield Finding("exact", "ε stated beyond ε asked", str(case), float(beyond), 0, kept, "ε")
    unlike = sum(_public(plan) != _public(first) for plan in plans.values())
    what = "columns whose public part differs, or that are refused"
    yield count_finding("exact", what, case, unlike, "columns")
    yield _losses(case, plans, first)


def _plan(version: QueryVersion, case: QueryCase, table: Table) -> Plan | None:
    try:
        return version.plan(case, table)
    except DPVeilError:
        return None


def _public(plan: Plan | None) -> tuple[object, ...]:
    if plan is None:
        return ()
    return plan.query, plan.rows, plan.guarantee, plan.mechanism, plan.edges, len(plan.answers)


def _losses(case: QueryCase, plans: Planned, first: Plan) -> Finding:
    """Return the log-ratio closest to its limit, or furthest beyond, over neighbours and other pairs."""
    distributions = {table: _release_law(plan) for table, plan in plans.items()}
    known: dict[tuple[Released | None, Released | None], Fraction] = {}
    worst: tuple[Fraction, Fraction, Table, Table] | None = None
    pairs = 0
    for one, other in _pairs(case):
        limit = case.allowance(first, one, other)
        if limit is None:
            continue
        pairs += 1
        both = distributions[one], distributions[other]
        found = known[both] if both in known else known.setdefault(both, cost(*both))
        if worst is None or found - limit > worst[0] - worst[1]:
            worst = found, limit, one, other
    value, limit, one, other = worst or (Fraction(0), Fraction(0), (), ())
    what = f"log-ratio of all that is released, {pairs:,} pairs of columns"
    where = f"{case}, {case.values(one)} and {case.values(other)}"
    return Finding("exact", what, where, float(value), float(limit), value <= limit + ROUNDED, "ε")


def _pairs(case: QueryCase) -> Iterator[tuple[Table, Table]]:
    """Yield neighbours, and any two columns if something is promised about them."""
    if case.metric and len(case.tables) ** 2 <= 2 * PAIRS:
        yield from combinations(case.tables, 2)
        return
    for table in case.tables:
        for other in case.neighbours(table):
            yield table, other


def _release_law(plan: Plan | None) -> Released | None:
    if plan is None:
        return None
    points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object))
    return release_points(plan.mechanism, points.tolist())


def fit_gate(version: QueryVersion, setting: QueryDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well responses follow the laws by definition: each, in pairs, and successive ones.

    The query itself is tested twice: called anew for every release, and with many draws from its plan.
    """
    case, found = setting.case, dict[str, float]()
    ways = [(version.many, setting.draws)]
    if version is INTACT:
        ways.append((real_draws, setting.draws // ANEW))
    for table in setting.fits:
        right = INTACT.plan(case, table).mechanism
        distributions = [_distribution(Number(right, point)) for point in case.points(table, right.lattice)]
        for draw, count in ways:
            values = draw(version, case, table, count, bits)
            for name, p_value in _p_values(values, distributions).items():
                found[f"{name} of {case.values(table)}, {count:,} releases"] = p_value
    yield fit_finding(case, "fit", found)


def _p_values(values: Values, distributions: list[dict[float, float]]) -> dict[str, float]:
    if values.shape[1] != len(distributions):
        return {"count of numbers": 0.0}
    cells, found = _cells(values, sorted(distributions[0])), dict[str, float]()
    masses = [
        np.array([*(distribution[value] for value in sorted(distribution)), 0.0])
        for distribution in distributions
    ]
    for k, mass in enumerate(masses):
        found |= p_values(f"number {k + 1}", cells[:, k], finite_distribution(mass))
    for i, j in combinations(range(len(distributions)), 2):
        codes = cells[:, i] * len(masses[j]) + cells[:, j]
        both = finite_distribution(np.outer(masses[i], masses[j]).ravel())
        found[f"numbers {i + 1} and {j + 1}"] = fit(codes, both).p_value
    return found


def _distribution(number: Number) -> dict[float, float]:
    """Return the probability of every response, as released."""
    return {float(value): weight / 2.0**64 for value, weight in chances(number).items()}


def _cells(values: Values, shown: list[float]) -> Int64[np.ndarray, "n numbers"]:
    """Return the index of every value among the possible responses, the last index for any other."""
    known = np.array(shown)
    places = np.searchsorted(known, values).clip(0, len(known) - 1)
    found: Int64[np.ndarray, "n numbers"] = np.where(known[places] == values, places, len(known))
    return found.astype(np.int64)


def bound_gate(version: QueryVersion, setting: QueryDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of columns, from responses alone."""
    case = setting.case
    yield from bounds(
        setting,
        lambda table, count: version.many(version, case, table, count, bits),
        lambda one, other: case.allowance(INTACT.plan(case, one), one, other) or 0,
        label=lambda table: str(case.values(table)),
        sides=_bytes,
    )


def _bytes(one: Values, other: Values) -> tuple[Draws, Draws]:
    """Return values as integers below 256, in the same order."""
    values = np.unique(np.concatenate([one.ravel(), other.ravel()]))
    each = math.ceil(len(values) / BYTES)
    first, second = ((np.searchsorted(values, side) // each).astype(np.uint8) for side in (one, other))
    return first, second


FINE: Final = 1 << 10
"""Points of a deviation's range, to which roots of mutants are rounded first."""


def wrong(name: str, plan: PlanOf) -> QueryVersion:
    """Return a mutant with another plan, from which it draws."""
    return QueryVersion(name=name, plan=plan)


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


def _half(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return _change(plan, sensitivity=plan.mechanism.sensitivity / 2)


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
    """Take the range of values from the column."""
    numbers = _unclipped_values(case, table)
    low, high = min(numbers), max(numbers)
    settings = {**case.settings, "range": (low, high if high > low else low + 1), "step": None}
    if case.query == "histogram":
        del settings["step"]
    plan: Plan = getattr(statistics, case.query)(case.values(table), **{**settings, "missing": low})
    return plan


def _unclipped_values(case: QueryCase, table: Table) -> list[Fraction]:
    instead, given = exact(case.settings.get("missing", 0)), [case.cells[cell].number for cell in table]
    return [instead if number is None else number for number in given]


def _mean_unclipped(case: QueryCase, table: Table) -> Plan:
    numbers = _unclipped_values(case, table)
    return _with(own_plan(case, table), sum(numbers, Fraction(0)) / len(numbers))


def _root(case: QueryCase, table: Table, numbers: list[Fraction], rows: int) -> Plan:
    """Return the plan of a deviation that divides by `rows`, in floats rounded to its lattice."""
    plan = own_plan(case, table)
    middle = sum(numbers, Fraction(0)) / len(numbers)
    square = sum(((x - middle) ** 2 for x in numbers), Fraction(0)) / rows
    step = plan.mechanism.lattice.step
    return _with(plan, step * round(float(square) ** 0.5 / float(step)))


def _root_unclipped(case: QueryCase, table: Table) -> Plan:
    return _root(case, table, _unclipped_values(case, table), case.rows)


def _twice(case: QueryCase, table: Table) -> Plan:
    """Count a row twice if it satisfies the condition, and clip the count to n afterwards."""
    plan = own_plan(case, table)
    return _with(plan, 2 * plan.answers[0])


def _doubled_epsilon(case: QueryCase, table: Table) -> Plan:
    plan = own_plan(case, table)
    return _change(plan, epsilon=2 * plan.mechanism.epsilon)


def _refuse_empty(case: QueryCase, table: Table) -> Plan:
    """Refuse if no row satisfies the condition."""
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
    """Count a value on an edge in the bins on both sides."""
    plan = own_plan(case, table)
    edges, numbers = plan.edges or (), _clipped_values(case, table)
    counts = [Fraction(sum(low <= x <= high for x in numbers)) for low, high in pairwise(edges)]
    return replace(plan, answers=tuple(counts))


def _clipped_values(case: QueryCase, table: Table) -> list[Fraction]:
    low, high = (exact(end) for end in case.settings["range"])
    return [min(max(number, low), high) for number in _unclipped_values(case, table)]


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
    wrong("sensitivity of one row more", _scaled_sensitivity(lambda n: Fraction(1, n + 1))),
    wrong("clipped after the mean", _mean_unclipped),
    wrong("missing values left out", _present),
    wrong("range from the data", _from_data),
)
DEVIATION: Final = (
    wrong("sensitivity halved", _half),
    wrong("sensitivity of a mean", _scaled_sensitivity(lambda n: Fraction(1, n))),
    wrong(
        "divided by n - 1",
        lambda case, table: _root(case, table, _clipped_values(case, table), case.rows - 1),
    ),
    wrong("variance of values that are not clipped", _root_unclipped),
    wrong("missing values left out", _present),
)
COUNT: Final = (
    wrong("ε doubled", _doubled_epsilon),
    wrong("rows counted twice, then clipped", _twice),
    wrong("missing values left out", _top),
    wrong("refused where no row matches", _refuse_empty),
    wrong("response without noise", lambda case, table: _change(own_plan(case, table), epsilon=40)),
)
HISTOGRAM: Final = (
    wrong("ε for every bin", _doubled_epsilon),
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


def _case(query: str, cells: tuple[Cell, ...], rows: int, /, **settings: Any) -> QueryCase:
    return QueryCase(query, cells, rows, {"epsilon": 1, **settings})


def _drawn_setting(case: QueryCase, *fits: Table, pairs: tuple[tuple[Table, Table], ...]) -> QueryDrawn:
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
        _drawn_setting(first, (0, 2, 6), (1, 1, 1), pairs=(((0, 0, 0), (0, 0, 1)), ((1, 6, 6), (1, 6, 3)))),
        _drawn_setting(second, (0, 1), (3, 4), pairs=(((0, 1), (0, 2)),)),
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
        _drawn_setting(first, (0, 2, 6), (1, 1, 1), pairs=(((0, 0, 0), (0, 0, 1)), ((1, 6, 6), (1, 6, 0)))),
        _drawn_setting(second, (0, 1), (2, 4), pairs=(((2, 2), (2, 1)),)),
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
        _drawn_setting(first, (0, 1, 3), (2, 3, 4), pairs=(((0, 0, 0), (0, 0, 2)), ((2, 2, 2), (2, 2, 1)))),
        _drawn_setting(second, (0, 1), (2, 4), pairs=(((0, 0), (0, 2)),)),
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
        _drawn_setting(first, (0, 1, 5), (3, 3, 3), pairs=(((0, 0, 0), (0, 0, 3)), ((1, 1, 4), (1, 1, 1)))),
        _drawn_setting(second, (0, 2), (1, 4), pairs=(((0, 0), (0, 3)),)),
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

"""Gates for queries: answers by definition, exact costs of neighbouring columns, fits, and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.errors import DPVeilError
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import Plan
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, of_releases
from dpveil_audit.lower_bound import Bound
from dpveil_audit.numbers.joint import ROUNDED, Number, Released, chances, cost, released
from dpveil_audit.numbers.queries import (
    INTACT,
    QueryCase,
    QueryDrawn,
    QueryVersion,
    Table,
    Values,
    planned_draws,
    real_draws,
)

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
    yield Finding("same", what, str(case), unlike, 0, unlike == 0, "columns")
    others = 0
    for table in case.tables[:: max(1, len(case.tables) // SAME)]:
        own = version.plan(case, table).release(SeededBits(1, f"same {table}")).response
        seen = planned_draws(version, case, table, 1, SeededBits(1, f"same {table}"))[0]
        others += seen.tolist() != (list(own) if isinstance(own, tuple) else [own])
    yield Finding("same", "releases unlike those of the plan", str(case), others, 0, others == 0, "columns")


def exact_gate(version: QueryVersion, case: QueryCase) -> Iterator[Finding]:
    """Yield the stated cost, public facts that differ between columns, and the largest log-ratio of
    neighbours.
    """
    if version is not INTACT and version.plan is INTACT.plan:
        return  # its distributions are those of the query, so that only draws can show what is wrong
    plans = {table: _plan(version, case, table) for table in case.tables}
    first = next((plan for plan in plans.values() if plan is not None), None)
    if first is None:
        yield Finding("exact", "columns that are refused", str(case), len(plans), 0, False, "columns")
        return
    beyond = max(Fraction(0), (first.guarantee.epsilon or Fraction(0)) - case.asked)
    kept = not beyond and first.guarantee.kind == ("metric" if case.metric else "pure")
    yield Finding("exact", "ε stated beyond ε asked", str(case), float(beyond), 0, kept, "ε")
    unlike = sum(_public(plan) != _public(first) for plan in plans.values())
    what = "columns whose public part differs, or that are refused"
    yield Finding("exact", what, str(case), unlike, 0, unlike == 0, "columns")
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
    distributions = {table: _released(plan) for table, plan in plans.items()}
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


def _released(plan: Plan | None) -> Released | None:
    if plan is None:
        return None
    points = plan.mechanism.lattice.index(np.array(plan.answers, dtype=object))
    return released(plan.mechanism, points.tolist())


def fit_gate(version: QueryVersion, setting: QueryDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well responses follow the laws by definition: each, in pairs, and successive ones.

    The query itself is tested twice: called anew for every release, and with many draws from its plan.
    """
    case, p_values = setting.case, dict[str, float]()
    ways = [(version.many, setting.draws)]
    if version is INTACT:
        ways.append((real_draws, setting.draws // ANEW))
    for table in setting.fits:
        right = INTACT.plan(case, table).mechanism
        distributions = [_distribution(Number(right, point)) for point in case.points(table, right.lattice)]
        for draw, count in ways:
            values = draw(version, case, table, count, bits)
            for name, p_value in _p_values(values, distributions).items():
                p_values[f"{name} of {case.values(table)}, {count:,} releases"] = p_value
    yield fit_finding(case, "fit", p_values)


def _p_values(values: Values, distributions: list[dict[float, float]]) -> dict[str, float]:
    if values.shape[1] != len(distributions):
        return {"count of numbers": 0.0}
    cells, found = _cells(values, sorted(distributions[0])), {}
    masses = [
        np.array([*(distribution[value] for value in sorted(distribution)), 0.0])
        for distribution in distributions
    ]
    for k, mass in enumerate(masses):
        own, distribution = np.ascontiguousarray(cells[:, k]), finite_distribution(mass)
        found[f"number {k + 1}"] = fit(own, distribution).p_value
        found[f"neighbouring releases of number {k + 1}"] = fit_pairs(own, distribution).p_value
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
    """Yield lower bounds on the cost of pairs of columns, from responses alone; alpha covers all pairs."""
    case, draws = setting.case, setting.draws

    def bound(pair: tuple[Table, Table], alpha: float) -> Bound:
        one, other = _bytes([version.many(version, case, table, 2 * draws, bits) for table in pair])
        return of_releases((one, other), draws, alpha)

    pairs = [
        ComparedPair(
            f"{case}, {case.values(one)} and {case.values(other)}",
            float(case.allowance(INTACT.plan(case, one), one, other) or 0),
            partial(bound, (one, other)),
        )
        for one, other in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} releases")


def _bytes(sides: list[Values]) -> list[UInt8[np.ndarray, "n numbers"]]:
    """Return values as integers below 256, in the same order."""
    values: Float64[np.ndarray, " k"] = np.unique(np.concatenate([side.ravel() for side in sides]))
    each = math.ceil(len(values) / BYTES)
    return [(np.searchsorted(values, side) // each).astype(np.uint8) for side in sides]

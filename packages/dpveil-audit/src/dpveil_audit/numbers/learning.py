"""The audit of naive Bayes: tables of a few records, the queries of a fit by definition, mutants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np

from dpveil.core.rationals import exact
from dpveil.errors import DPVeilError
from dpveil.mechanisms.scalar import Laplace
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import PrivateGaussianNB, naive_bayes
from dpveil.numbers.naive_bayes import LEVELS, Deviations, Ints, Moments, Plan, TrueAnswers
from dpveil_audit import engine
from dpveil_audit.divergence import Pairs
from dpveil_audit.engine import Audit, Finding, Gate, Level, Version, count_finding, planted
from dpveil_audit.scalar.case import Number, cost_findings, setting_words

Table = tuple[int, ...]
"""Indices of the case's records that a table holds, in order, as the queries do not depend on the order."""
CENTRES: Final = (0, LEVELS // 3, LEVELS // 2, LEVELS)
"""Codes of released means at which deviations are evaluated."""
SIZES: Final = (1, 4)  # released class sizes at which deviations are evaluated


@dataclass(frozen=True)
class Record:
    """One record: its features as the user gives them, and its label."""

    features: tuple[float, ...]
    label: str


@dataclass(frozen=True, eq=False)
class LearnCase(engine.Case):
    """A model's settings, for all tables with these records and numbers of rows."""

    records: tuple[Record, ...]
    rows: tuple[int, ...]
    settings: dict[str, Any]
    classes: tuple[str, ...] = ("a", "b", "c")

    @cached_property
    def inputs(self) -> list[Table]:
        every = range(len(self.records))
        return [table for rows in self.rows for table in combinations_with_replacement(every, rows)]

    @cached_property
    def pairs(self) -> Pairs:
        """Tables of which one has a record replaced, or one more."""
        counts = np.array([np.bincount(table, minlength=len(self.records)) for table in self.inputs])
        moved = np.abs(counts[:, None] - counts[None]).sum(axis=2)
        sizes = counts.sum(axis=1)
        alike = sizes[:, None] == sizes[None]
        return np.argwhere(moved == 1 if self.is_add_remove else (moved == 2) & alike)

    @property
    def is_add_remove(self) -> bool:
        return bool(self.settings.get("neighbours") == "added")

    @cached_property
    def requested_epsilon(self) -> Fraction:
        return exact(self.settings["epsilon"])

    def columns(self, table: Table) -> tuple[Any, Any]:
        held = [self.records[number] for number in table]
        features = np.array([record.features for record in held], np.float64)
        return features, np.array([record.label for record in held])

    def model(self, bits: BitSource | None = None) -> PrivateGaussianNB:
        return PrivateGaussianNB(**self.settings, classes=list(self.classes), random_state=bits)

    def fit(self, table: Table, bits: BitSource) -> PrivateGaussianNB:
        features, labels = self.columns(table)
        return self.model(bits).fit(features, labels)

    def label(self, number: int) -> str:
        held = [self.records[row] for row in self.inputs[number]]
        return "[" + ", ".join(f"{'/'.join(map(str, one.features))} {one.label}" for one in held) + "]"

    def __str__(self) -> str:
        rows = "/".join(map(str, self.rows))
        return ", ".join([f"{rows} rows", *setting_words(self.settings, "floor")])


Learned = tuple[Number, ...]
"""All numbers of a fit about a table: sizes, sums, and deviations after each of several histories."""


def plan_of(case: LearnCase, table: Table) -> Plan:
    features, labels = case.columns(table)
    return case.model().plan(features, labels).moments


def asked_of(plan: Plan) -> Learned:
    """Return all numbers of a plan: deviations about some centres, at some released sizes."""
    shape = len(plan.groups), plan.groups[0].shape[1]
    spreads = [plan.spreads(np.full(shape, centre, np.int64)) for centre in CENTRES]
    return numbers_of(plan.sizes()) + numbers_of(plan.sums()) + deviations_after(plan, spreads)


def numbers_of(asked: Any) -> Learned:
    return tuple(((asked.mechanism, int(point)),) for point in asked.points)


def deviations_after(plan: Plan, spreads: Sequence[tuple[Any, Any]]) -> Learned:
    """Return deviations by their histories: squares about released means, and one released size."""
    deviations: Any = plan.deviations
    histories = [
        [number for asked in answers.values() for (number,) in numbers_of(asked)]
        for squares, reach in spreads
        for size in SIZES
        for answers in [deviations.plan(squares, reach, [size] * len(squares))]
    ]
    return tuple(zip(*histories, strict=True))


# The releases of naive Bayes from their definition

SAME: Final = 6


def same_gate(version: Version, case: LearnCase) -> Iterator[Finding]:
    """Yield whether a fit learns what the mechanisms of its queries draw, one by one.

    Mechanisms are audited by themselves, so that no learned number has to be counted here.
    """
    unlike = 0
    for table in case.inputs[:: max(1, len(case.inputs) // SAME)]:
        due = _in_turn(plan_of(case, table), SeededBits(1, f"same {table}"))
        unlike += not _alike(_fitted(case, table, SeededBits(1, f"same {table}")), due)
    yield count_finding("same", "fits unlike draws of the mechanisms", case, unlike, "tables")


def _in_turn(plan: Plan, bits: BitSource) -> Moments:
    """Return a plan's release: sizes, then sums, then deviations at released sizes, never at true ones."""
    counts = _draw(plan.sizes(), bits).astype(np.int64)
    sizes = np.maximum(counts, 1)[:, None]
    middle = _draw(plan.sums(), bits).reshape(len(counts), -1) / sizes
    means = np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64)
    (squares, reach), deviations = plan.spreads(means), cast("Deviations", plan.deviations)
    roots = np.empty(reach.shape)
    for rows, asked in deviations.plan(squares, reach, sizes[:, 0].tolist()).items():
        roots[[*rows]] = _draw(asked, bits).reshape(len(rows), -1)
    roots = np.sqrt(roots) if deviations.squared else roots
    return Moments(counts, means, np.minimum(roots / np.sqrt(sizes), 1) * reach / LEVELS)


def _draw(asked: TrueAnswers, bits: BitSource) -> Any:
    return asked.mechanism.lattice.value(asked.mechanism.draw(asked.points, bits))


def _fitted(case: LearnCase, table: Table, bits: BitSource) -> Moments:
    """Return the values of a model that is fitted through the public interface."""
    model = case.fit(table, bits)
    lower, upper = (np.asarray(end, np.float64) for end in case.settings["bounds"])
    means = np.rint((model.theta_ - lower) / (upper - lower) * LEVELS).astype(np.int64)
    return Moments(model.class_count_.astype(np.int64), means, np.sqrt(model.var_) / (upper - lower))


def _alike(one: Moments, other: Moments) -> bool:
    """Return whether two releases are the same; a fit has no size below 1, and no deviation of 0."""
    sizes = np.array_equal(np.maximum(one.counts, 1), np.maximum(other.counts, 1))
    same = sizes and np.array_equal(one.means, other.means)
    return same and bool(np.allclose(one.deviations, other.deviations, rtol=1e-12, atol=1e-9))


def exact_gate(version: Version, case: LearnCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of everything released, over all neighbours."""
    stated = case.fit(case.inputs[0], SeededBits(1, "stated")).guarantee_.epsilon  # the same for all tables
    tables = [asked_of(plan_of(case, table)) for table in case.inputs]
    yield from cost_findings(case, Fraction(stated or 0), tables)


# Faults in dpveil: what becomes of a function


def _true_sizes(own: Any) -> Any:
    """Give sums of means noise as if the largest true size were public (errata E13)."""

    def sums(self: Plan) -> TrueAnswers:
        moved = Fraction(2, max(len(group) for group in self.groups) + 1)
        mechanism = Laplace(range=":", sensitivity=moved, epsilon=self.shares.mean)
        return TrueAnswers(mechanism, own(self).points)

    return sums


def _about_true_means(own: Any) -> Any:
    def spreads(self: Plan, means: Ints) -> Any:
        true = [g.mean(axis=0) if len(g) else np.full(g.shape[1], LEVELS / 2) for g in self.groups]
        return own(self, np.rint(np.stack(true)).astype(np.int64))

    return spreads


def _unclipped(own: Any) -> Any:
    return lambda held, lower, upper: np.rint((held - lower) / (upper - lower) * LEVELS).astype(np.int64)


def _one_for_all(own: Any) -> Any:
    """Draw the sums of all features of all classes from one number."""

    def mean_codes(sums: TrueAnswers, counts: Ints, bits: BitSource) -> Ints:
        noise = sums.mechanism.draw(np.zeros(1, np.int64), bits)
        certain = SimpleNamespace(mechanism=sums.mechanism, draw=lambda bits: sums.points + noise)
        codes: Ints = own(certain, counts, bits)
        return codes

    return mean_codes


MUTANTS: Final = (
    planted(
        "replaced records charged as added ones",
        naive_bayes,
        "NEIGHBOURS",
        lambda own: own | {"replaced": (1, own["replaced"][1])},
        "exact",
    ),
    planted("sensitivities from true class sizes", Plan, "sums", _true_sizes, "exact"),
    planted("spreads about true means", Plan, "spreads", _about_true_means, "exact"),
    planted("features not clipped", naive_bayes, "encode", _unclipped, "exact"),
    planted(
        "class sizes without noise",
        naive_bayes,
        "count_mechanism",
        lambda own: lambda epsilon: own(60),
        "exact",
    ),
    planted("one draw for all features", naive_bayes, "mean_codes", _one_for_all, "same"),
)


ANY: Final = "any-database"
FLOOR: Final = "1e-9"


def _records(*values: tuple[float, ...]) -> tuple[Record, ...]:
    return tuple(Record(features, label) for label, features in product("ab", values))


ONE: Final = _records((0.0,), (1.0,), (0.5,), (7.0,))
"""One feature in 0:1: both ends, the middle, and a value that is clipped."""
TWO: Final = _records((0.0, -3.0), (1.0, 9.0), (0.3, 100.0), (-5.0, 3.0))  # two features, in 0:1 and -3:9
BOTH: Final[dict[str, Any]] = {"bounds": ((0, -3), (1, 9)), "floor": FLOOR}
UNIT: Final[dict[str, Any]] = {"bounds": (0, 1), "floor": FLOOR}


def _case(
    records: tuple[Record, ...], rows: tuple[int, ...], classes: str = "abc", /, **settings: Any
) -> LearnCase:
    return LearnCase(records, rows, {"epsilon": 1, **settings}, tuple(classes))


def naive_bayes_audit() -> Audit:
    exact = (
        _case(ONE, (1, 2), **UNIT),
        _case(TWO, (2,), spread="deviation", mechanism="laplace", relation=ANY, parts=(2, 1, 1), **BOTH),
        _case(ONE, (1, 2, 3), neighbours="added", mechanism="explicit-fair", relation=ANY, **UNIT),
        _case(TWO, (1, 2), neighbours="added", spread="deviation", **{**BOTH, "epsilon": 6}),
        _case(ONE[:4], (3,), mechanism="staircase", spread="deviation", parts=(1, 2, 3), **UNIT),
    )
    return Audit(
        intact=Version(name="intact"),
        level=Level(exact),
        mutants=MUTANTS,
        gates=(Gate("same", same_gate), Gate("exact", exact_gate)),
        refusals=(DPVeilError,),
    )

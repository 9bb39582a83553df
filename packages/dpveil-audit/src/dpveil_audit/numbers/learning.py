"""Audit cases for naive Bayes: tables of a few records, the queries of a fit, and versions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np

from dpveil.core.numbers import exact
from dpveil.noise.bits import BitSource
from dpveil.numbers import PrivateGaussianNB
from dpveil.numbers.moments import LEVELS, Deviations, Moments, Plan
from dpveil_audit.entry import Drawn, Level, Variant
from dpveil_audit.numbers.joint import UNBOUNDED, Number, Released, loss, released

Table = tuple[int, ...]
"""Indices of the case's records that a table holds, in order, as the queries do not depend on the order."""
CENTRES: Final = (0, LEVELS // 3, LEVELS // 2, LEVELS)
"""Codes of released means at which deviations are evaluated."""
SIZES: Final = (1, 4)
"""Released class sizes at which deviations are evaluated."""


@dataclass(frozen=True)
class Record:
    """One record: its features as the user gives them, and its label."""

    features: tuple[float, ...]
    label: str


@dataclass(frozen=True, eq=False)
class LearnCase:
    """A model's settings, for all tables with these records and numbers of rows."""

    records: tuple[Record, ...]
    rows: tuple[int, ...]
    settings: dict[str, Any]
    classes: tuple[str, ...] = ("a", "b", "c")

    @cached_property
    def tables(self) -> list[Table]:
        """Every table."""
        every = range(len(self.records))
        return [table for rows in self.rows for table in combinations_with_replacement(every, rows)]

    @property
    def added(self) -> bool:
        """Whether neighbours have one record more or less."""
        return bool(self.settings.get("neighbours") == "added")

    def neighbours(self, table: Table) -> Iterator[Table]:
        """Yield every pair of neighbours once: with a record replaced, or with one less."""
        for row, held in enumerate(table):
            rest = table[:row] + table[row + 1 :]
            if self.added and rest:
                yield rest
            for other in () if self.added else range(held + 1, len(self.records)):
                yield tuple(sorted((*rest, other)))

    @cached_property
    def asked(self) -> Fraction:
        """The ε that the user requests."""
        return exact(self.settings["epsilon"])

    def written(self, table: Table, copies: int = 1) -> tuple[Any, Any, Any]:
        """Return features, labels and classes; each of several copies has its own classes, by number."""
        held = [self.records[number] for number in table]
        features = np.tile(np.array([record.features for record in held], np.float64), (copies, 1))
        labels = np.array([record.label for record in held])
        if copies == 1:
            return features, labels, list(self.classes)
        own = np.array([self.classes.index(label) for label in labels])
        start = len(self.classes) * np.arange(copies)[:, None]
        return features, (start + own).ravel(), np.arange(copies * len(self.classes))

    def model(self, classes: Any, bits: BitSource | None = None) -> PrivateGaussianNB:
        """Return an unfitted model."""
        return PrivateGaussianNB(**self.settings, classes=classes, random_state=bits)

    def fitted(self, table: Table, copies: int, bits: BitSource) -> PrivateGaussianNB:
        """Return a model of one or more copies of a table, fitted through the public interface."""
        features, labels, classes = self.written(table, copies)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so many classes are no mistake here
            return self.model(classes, bits).fit(features, labels)

    def __str__(self) -> str:
        words = [f"{name} {_word(value)}" for name, value in self.settings.items() if name != "floor"]
        return ", ".join([f"{'/'.join(map(str, self.rows))} rows", *words])


def _word(value: Any) -> str:
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Learned:
    """All queries of a fit about a table: sizes and sums, and deviations after each of several histories."""

    first: Released
    then: tuple[Released, ...]


def cost(one: Learned, other: Learned) -> Fraction:
    """Return the largest log-ratio of everything released about two tables, rounded up.

    As numbers are drawn independently, and deviations after released means and sizes, the largest log-ratios
    add up; for each deviation the worst history counts.
    """
    if [len(part) for part in (one.first, *one.then)] != [len(part) for part in (other.first, *other.then)]:
        return UNBOUNDED
    return min(max(_cost(one, other), _cost(other, one)), UNBOUNDED)


def _cost(one: Learned, other: Learned) -> Fraction:
    total = sum((_loss(a, b) for a, b in zip(one.first, other.first, strict=True)), Fraction(0))
    for ones, others in zip(zip(*one.then, strict=True), zip(*other.then, strict=True), strict=True):
        total += max(_loss(a, b) for a, b in zip(ones, others, strict=True))
    return total


def _loss(one: Number, other: Number) -> Fraction:
    return Fraction(0) if one == other else loss(one, other)


def own_plan(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
    """Return the model's own plan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.model(classes).plan(features, labels).moments


def own_asks(plan: Plan) -> Learned:
    """Return all queries of a plan: deviations about some centres, at some released sizes."""
    sizes, sums = plan.sizes(), plan.sums()
    first = released(sizes.mechanism, sizes.points) + released(sums.mechanism, sums.points)
    shape = len(plan.groups), plan.groups[0].shape[1]
    then = [
        spreads_of(plan, *plan.spreads(np.full(shape, centre, np.int64)), size)
        for centre in CENTRES
        for size in SIZES
    ]
    return Learned(first, tuple(then))


def spreads_of(plan: Plan, squares: Any, reach: Any, size: int) -> Released:
    """Return these deviations as released numbers, if every class was released with one size."""
    deviations: Any = plan.deviations
    asked = deviations.plan(squares, reach, [size] * len(squares))
    return tuple(number for one in asked.values() for number in released(one.mechanism, one.points))


@dataclass(frozen=True, kw_only=True)
class LearnVersion(Variant):
    """One way to learn: the model itself, or a mutant.

    `plan` makes the plan, `asks` returns its queries, `draw` releases them.
    """

    plan: Callable[[LearnCase, Any, Any, Any], Plan] = own_plan
    asks: Callable[[Plan], Learned] = own_asks
    draw: Callable[[Plan, BitSource], Moments] = field(default=Plan.release)

    @property
    def lawful(self) -> bool:
        """Whether its laws are the model's own, so that only draws can detect a fault."""
        return self is not INTACT and self.plan is own_plan and self.asks is own_asks

    def learned(self, case: LearnCase, table: Table) -> Learned:
        """Return all queries about a table."""
        return self.asks(self.plan(case, *case.written(table)))

    def release(self, case: LearnCase, table: Table, copies: int, bits: BitSource) -> Moments:
        """Return the release for copies of a table; for the model itself, its fitted values."""
        if self is not INTACT:
            found = self.draw(self.plan(case, *case.written(table, copies)), bits)
            return replace(found, counts=np.maximum(found.counts, 1))
        model = case.fitted(table, copies, bits)
        lower, upper = (np.asarray(end, np.float64) for end in case.settings["bounds"])
        means = np.rint((model.theta_ - lower) / (upper - lower) * LEVELS).astype(np.int64)
        deviations = np.sqrt(model.var_) / (upper - lower)
        return Moments(model.class_count_.astype(np.int64), means, deviations)


INTACT: Final = LearnVersion(name="intact")


LearnDrawn = Drawn[LearnCase, Table]
LearnLevel = Level[LearnCase, Table]


def deviations_of(plan: Plan) -> Deviations:
    """Return the mechanism of a plan's deviations."""
    if not isinstance(plan.deviations, Deviations):
        raise TypeError("the spreads of this plan are not those of the model")
    return plan.deviations

"""The audit of naive Bayes: tables of a few records, the queries of a fit by definition, mutants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import Any, Final

import numpy as np

from dpveil.core.rationals import exact
from dpveil.errors import DPVeilError
from dpveil.mechanisms.scalar import Laplace
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import PrivateGaussianNB
from dpveil.numbers.naive_bayes import LEVELS, Codes, Deviations, Ints, Moments, Plan, Shares, TrueAnswers
from dpveil_audit import engine
from dpveil_audit.divergence import Pairs
from dpveil_audit.engine import Audit, Finding, Gate, Level, Version, count_finding
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

    def columns(self, table: Table) -> tuple[Any, Any, Any]:
        held = [self.records[number] for number in table]
        features = np.array([record.features for record in held], np.float64)
        return features, np.array([record.label for record in held]), list(self.classes)

    def model(self, bits: BitSource | None = None) -> PrivateGaussianNB:
        return PrivateGaussianNB(**self.settings, classes=list(self.classes), random_state=bits)

    def fit(self, table: Table, bits: BitSource) -> PrivateGaussianNB:
        features, labels, _ = self.columns(table)
        return self.model(bits).fit(features, labels)

    def label(self, number: int) -> str:
        held = [self.records[row] for row in self.inputs[number]]
        return "[" + ", ".join(f"{'/'.join(map(str, one.features))} {one.label}" for one in held) + "]"

    def __str__(self) -> str:
        rows = "/".join(map(str, self.rows))
        return ", ".join([f"{rows} rows", *setting_words(self.settings, "floor")])


Learned = tuple[Number, ...]
"""All numbers of a fit about a table: sizes, sums, and deviations after each of several histories."""


def own_plan(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
    return case.model().plan(features, labels).moments


def own_asks(plan: Plan) -> Learned:
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


@dataclass(frozen=True, kw_only=True)
class LearnVersion(Version):
    """One way to learn: the model itself, or a mutant.

    `plan` makes the plan, `asks` returns its queries, `release` draws them.
    """

    plan: Callable[[LearnCase, Any, Any, Any], Plan] = own_plan
    asks: Callable[[Plan], Learned] = own_asks
    release: Callable[[Plan, BitSource], Moments] = field(default=Plan.release)

    def learn(self, case: LearnCase, table: Table) -> Learned:
        return self.asks(self.plan(case, *case.columns(table)))


INTACT: Final = LearnVersion(name="intact")


def deviations_of(plan: Plan) -> Deviations:
    if not isinstance(plan.deviations, Deviations):
        raise TypeError("the spreads of this plan are not those of the model")
    return plan.deviations


# The queries and releases of naive Bayes from their definition, in fractions and closed forms

HALF: Final = Fraction(1, 2)


def codes(case: LearnCase, table: Table, label: str, feature: int) -> list[int]:
    """Return the codes of a feature over the records of a class: clipped and rounded."""
    lower, upper = (_end(end, feature) for end in case.settings["bounds"])
    found = []
    for number in table:
        record = case.records[number]
        if record.label == label:
            inside = min(max(Fraction(record.features[feature]), lower), upper)
            found.append(round((inside - lower) / (upper - lower) * LEVELS))
    return found


def _end(end: Any, feature: int) -> Fraction:
    return Fraction(end if np.ndim(end) == 0 else end[feature])


def true_answers(case: LearnCase, table: Table, plan: Plan) -> Learned:
    """Return the true answers to all queries about a table, as points on the lattices of a plan."""
    features = range(len(case.records[0].features))
    every = [[codes(case, table, label, feature) for feature in features] for label in case.classes]
    sizes = [len(of_class[0]) for of_class in every]
    sums = [sum((Fraction(2 * u, LEVELS) - 1 for u in own), Fraction(0)) for cls in every for own in cls]
    about_sums = plan.sums().mechanism
    points = [int(about_sums.lattice.index(total)[0]) for total in sums]
    flat = [own for of_class in every for own in of_class]
    histories = [_spreads(plan, flat, centre, size) for centre in CENTRES for size in SIZES]
    first = [(plan.sizes().mechanism, size) for size in sizes] + [(about_sums, point) for point in points]
    return (*((number,) for number in first), *zip(*histories, strict=True))


def _spreads(plan: Plan, every: list[list[int]], centre: int, size: int) -> list[Any]:
    deviations = deviations_of(plan)
    mechanism, most = deviations.at(size), max(centre, LEVELS - centre)
    last = mechanism.lattice.spans[-1][1]
    points = []
    for own in every:
        square = Fraction(sum((u - centre) ** 2 for u in own), most**2)
        point = _nearest(square, mechanism.lattice.step, squared=deviations.squared)
        points.append(point if last is None else min(point, last))
    return [(mechanism, point) for point in points]


def _nearest(square: Fraction, step: Fraction, *, squared: bool) -> int:
    """Return the point nearest to a square, or to its root, starting from a floating-point guess."""
    power = 1 if squared else 2
    point: int = round(float(square) ** (1 / power) / float(step))
    while ((point + HALF) * step) ** power <= square:
        point += 1
    while point and ((point - HALF) * step) ** power > square:
        point -= 1
    return point


SAME: Final = 6


def same_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield whether queries are those of the definition, and releases draws of their mechanisms, one by one.

    Mechanisms are audited by themselves, so that no learned number has to be counted here.
    """
    unlike = 0
    for table in case.inputs:
        plan = version.plan(case, *case.columns(table))
        unlike += version.asks(plan) != true_answers(case, table, plan)
    what = f"answers unlike the definition, {len(case.inputs)} tables"
    yield count_finding("same", what, case, unlike, "tables")
    fits = others = 0
    for table in case.inputs[:: max(1, len(case.inputs) // SAME)]:
        plan, name = version.plan(case, *case.columns(table)), f"same {table}"
        due = _in_turn(plan, SeededBits(1, name))
        others += not _alike(version.release(plan, SeededBits(1, name)), due)
        fits += not _alike(_fitted(case, table, SeededBits(1, name)), due, floor=1)
    yield count_finding("same", "releases unlike draws of the mechanisms", case, others, "tables")
    yield count_finding("same", "fits unlike draws of the mechanisms", case, fits, "tables")


def _in_turn(plan: Plan, bits: BitSource) -> Moments:
    """Return a plan's release: sizes, then sums, then deviations at released sizes, never at true ones."""
    counts = _draw(plan.sizes(), bits).astype(np.int64)
    sizes = np.maximum(counts, 1)[:, None]
    middle = _draw(plan.sums(), bits).reshape(len(counts), -1) / sizes
    means = np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64)
    (squares, reach), deviations = plan.spreads(means), deviations_of(plan)
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


def _alike(one: Moments, other: Moments, floor: int = 0) -> bool:
    """Return whether two releases are the same; a fit has no size below its floor, and no deviation of 0."""
    sizes = np.array_equal(np.maximum(one.counts, floor), np.maximum(other.counts, floor))
    same = sizes and np.array_equal(one.means, other.means)
    return same and bool(np.allclose(one.deviations, other.deviations, rtol=1e-12, atol=1e-9 * floor))


def exact_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of everything released, over all neighbours."""
    stated = case.fit(case.inputs[0], SeededBits(1, "stated")).guarantee_.epsilon  # the same for all tables
    tables = [version.learn(case, table) for table in case.inputs]
    yield from cost_findings(case, Fraction(stated or 0), tables)


def _share_mutant(name: str, shares: Callable[[LearnCase, Shares], Shares]) -> LearnVersion:
    def plan(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
        own = own_plan(case, features, labels, classes)
        found = shares(case, own.shares)
        spread = replace(deviations_of(own), epsilon=found.deviation)
        return replace(own, shares=found, deviations=spread)

    return LearnVersion(name=name, gates=("exact",), plan=plan)


def _over_features(case: LearnCase, shares: Shares) -> Shares:
    """Forget that every feature has a sum and a deviation."""
    features = len(case.records[0].features)
    return Shares(shares.count, shares.mean * features, shares.deviation * features)


def _as_added(case: LearnCase, shares: Shares) -> Shares:
    times = 1 if case.is_add_remove else 2
    return Shares(shares.count * times, shares.mean * times, shares.deviation * times)


def _unclipped_plan(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
    """Return codes of unclipped values."""
    own = own_plan(case, features, labels, classes)
    lower, upper = (np.asarray(end, np.float64) for end in case.settings["bounds"])
    codes = np.rint((features - lower) / (upper - lower) * LEVELS).astype(np.int64)
    numbers = np.searchsorted(np.asarray(classes), labels)
    return Plan.of(codes, numbers, len(classes), own.shares, own.deviations)


def _size_mechanism(group: Codes, epsilon: Fraction) -> Laplace:
    """Return noise on a class's mean, in half widths, as if its true size were public (errata E13)."""
    return Laplace(range=":", sensitivity=Fraction(2, len(group) + 1), epsilon=epsilon)


def _true_sizes(plan: Plan) -> Learned:
    own, features = own_asks(plan), plan.groups[0].shape[1]
    means: list[Number] = []
    for group in plan.groups:
        mechanism = _size_mechanism(group, plan.shares.mean)
        for feature in range(features):
            total = Fraction(int((2 * group[:, feature] - LEVELS).sum()), LEVELS * max(len(group), 1))
            means.append(((mechanism, int(mechanism.lattice.index(total)[0])),))
    return (*own[: len(plan.groups)], *means, *own[len(plan.groups) * (1 + features) :])


def _true_means(plan: Plan) -> Ints:
    means = [
        group.mean(axis=0) if len(group) else np.full(group.shape[1], LEVELS / 2) for group in plan.groups
    ]
    found: Ints = np.rint(np.stack(means)).astype(np.int64)
    return found


def _about_true_means(plan: Plan) -> Learned:
    spreads = [plan.spreads(_true_means(plan))]
    return numbers_of(plan.sizes()) + numbers_of(plan.sums()) + deviations_after(plan, spreads)


def _too_short(plan: Plan) -> Learned:
    """Use half the bounds as the largest distance from a mean."""
    shape = len(plan.groups), plan.groups[0].shape[1]
    centres = [np.full(shape, centre, np.int64) for centre in CENTRES]
    spreads = [(plan.spreads(means)[0], np.full(shape, LEVELS // 2, np.int64)) for means in centres]
    return numbers_of(plan.sizes()) + numbers_of(plan.sums()) + deviations_after(plan, spreads)


def _sizes_shown(plan: Plan) -> Learned:
    shown = replace(plan, shares=replace(plan.shares, count=Fraction(60)))
    return numbers_of(shown.sizes()) + own_asks(plan)[len(plan.groups) :]


def _only_with_records(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
    own = own_plan(case, features, labels, classes)
    return replace(own, groups=tuple(group for group in own.groups if len(group)))


def _one_for_all(plan: Plan, bits: BitSource) -> Moments:
    """Draw the sums of all features of all classes from one number."""
    released, sums = plan.release(bits), plan.sums()
    noise = sums.mechanism.draw(np.zeros(1, np.int64), bits)
    noisy = sums.mechanism.lattice.value(sums.points + noise).reshape(len(released.counts), -1)
    middle = noisy / np.maximum(released.counts, 1)[:, None]
    return replace(released, means=np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64))


MUTANTS: Final = (
    _share_mutant("replaced records charged as added ones", _as_added),
    _share_mutant("budget not divided over features", _over_features),
    LearnVersion(name="sensitivities from true class sizes", gates=("exact",), asks=_true_sizes),
    LearnVersion(name="spreads about true means", gates=("exact",), asks=_about_true_means),
    LearnVersion(name="half the bounds for the reach of a spread", gates=("exact",), asks=_too_short),
    LearnVersion(name="features not clipped", gates=("exact",), plan=_unclipped_plan),
    LearnVersion(name="class sizes without noise", gates=("exact",), asks=_sizes_shown),
    LearnVersion(name="empty classes left out", plan=_only_with_records, gates=("exact",)),
    LearnVersion(name="one draw for all features", gates=("same",), release=_one_for_all),
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


def naive_bayes() -> Audit:
    exact = (
        _case(ONE, (1, 2), **UNIT),
        _case(TWO, (2,), spread="deviation", mechanism="laplace", relation=ANY, parts=(2, 1, 1), **BOTH),
        _case(ONE, (1, 2, 3), neighbours="added", mechanism="explicit-fair", relation=ANY, **UNIT),
        _case(TWO, (1, 2), neighbours="added", spread="deviation", **{**BOTH, "epsilon": 6}),
        _case(ONE[:4], (3,), mechanism="staircase", spread="deviation", parts=(1, 2, 3), **UNIT),
    )
    deep = (
        _case(ONE, (3,), **UNIT),
        _case(TWO, (3,), mechanism="geometric", **BOTH),
        _case(ONE, (7,), neighbours="added", **UNIT),
        _case(TWO, (1, 2), mechanism="explicit-fair", spread="deviation", **{**BOTH, "epsilon": "0.3"}),
        _case(ONE, (2,), mechanism="linear-program-1", neighbours="added", **UNIT),
        _case(TWO, (2,), mechanism="truncated-laplace", relation=ANY, **{**BOTH, "epsilon": 20}),
    )
    return Audit(
        intact=INTACT,
        levels=Level(exact).levels(deep),
        mutants=MUTANTS,
        gates=(Gate("same", same_gate), Gate("exact", exact_gate)),
        refusals=(DPVeilError,),
    )

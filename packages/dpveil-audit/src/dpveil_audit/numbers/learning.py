"""Audit cases for naive Bayes: tables of a few records, the queries of a fit, and versions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, combinations_with_replacement, product
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.core.numbers import exact
from dpveil.errors import DPVeilError
from dpveil.mechanisms.scalar import TABLE, Geometric, Laplace, ScalarMechanism
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers import PrivateGaussianNB
from dpveil.numbers.naive_bayes import LEVELS, Codes, Deviations, Ints, Moments, Plan, Shares, mean_codes
from dpveil_audit.distributions import finite_distribution, laplace_distribution
from dpveil_audit.engine import (
    BY_LAW,
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
from dpveil_audit.scalar.laws import ROUNDED, UNBOUNDED, Number, Released, loss, release_points

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
    def is_add_remove(self) -> bool:
        """Whether neighbours have one record more or less."""
        return bool(self.settings.get("neighbours") == "added")

    def neighbours(self, table: Table) -> Iterator[Table]:
        """Yield every pair of neighbours once: with a record replaced, or with one less."""
        for row, held in enumerate(table):
            rest = table[:row] + table[row + 1 :]
            if self.is_add_remove and rest:
                yield rest
            for other in () if self.is_add_remove else range(held + 1, len(self.records)):
                yield tuple(sorted((*rest, other)))

    @cached_property
    def requested_epsilon(self) -> Fraction:
        """The ε that the user requests."""
        return exact(self.settings["epsilon"])

    def columns(self, table: Table, copies: int = 1) -> tuple[Any, Any, Any]:
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

    def fit(self, table: Table, copies: int, bits: BitSource) -> PrivateGaussianNB:
        """Return a model of one or more copies of a table, fitted through the public interface."""
        features, labels, classes = self.columns(table, copies)
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
    first = release_points(sizes.mechanism, sizes.points) + release_points(sums.mechanism, sums.points)
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
    return tuple(number for one in asked.values() for number in release_points(one.mechanism, one.points))


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

    def learn(self, case: LearnCase, table: Table) -> Learned:
        """Return all queries about a table."""
        return self.asks(self.plan(case, *case.columns(table)))

    def release(self, case: LearnCase, table: Table, copies: int, bits: BitSource) -> Moments:
        """Return the release for copies of a table; for the model itself, its fitted values."""
        if self is not INTACT:
            found = self.draw(self.plan(case, *case.columns(table, copies)), bits)
            return replace(found, counts=np.maximum(found.counts, 1))
        model = case.fit(table, copies, bits)
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


# The queries and releases of naive Bayes from their definition, in fractions and closed forms

HALF: Final = Fraction(1, 2)
ALMOST: Final = 1 - 1e-9
NOTHING: Final = 1e-8
"""Deviations below this are 0: the floor of the settings is lower still."""
Uniform = Float64[np.ndarray, "..."]


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
    first = release_points(plan.sizes().mechanism, sizes) + release_points(about_sums, points)
    flat = [own for of_class in every for own in of_class]
    then = [_spreads(plan, flat, centre, size) for centre in CENTRES for size in SIZES]
    return Learned(first, tuple(then))


def _spreads(plan: Plan, every: list[list[int]], centre: int, size: int) -> Released:
    deviations = deviations_of(plan)
    mechanism, most = deviations.at(size), max(centre, LEVELS - centre)
    last = mechanism.lattice.spans[-1][1]
    points = []
    for own in every:
        square = Fraction(sum((u - centre) ** 2 for u in own), most**2)
        point = _nearest(square, mechanism.lattice.step, squared=deviations.squared)
        points.append(point if last is None else min(point, last))
    return release_points(mechanism, points)


def _nearest(square: Fraction, step: Fraction, *, squared: bool) -> int:
    """Return the point nearest to a square, or to its root, starting from a floating-point guess."""
    power = 1 if squared else 2
    point: int = round(float(square) ** (1 / power) / float(step))
    while ((point + HALF) * step) ** power <= square:
        point += 1
    while point and ((point - HALF) * step) ** power > square:
        point -= 1
    return point


@dataclass(frozen=True)
class Definition:
    """The mechanisms of a model with Laplace noise on its deviations, from its settings alone."""

    size: ScalarMechanism
    total: ScalarMechanism
    spread: ScalarMechanism
    squared: bool

    @classmethod
    def of(cls, case: LearnCase) -> Definition:
        """Return those of a case: ε over one or two records, divided by the requested parts."""
        features = len(case.records[0].features)
        given = case.settings.get("parts", (1, features, features))
        parts = [exact(part) for part in given]
        unit = case.requested_epsilon / (1 if case.is_add_remove else 2) / sum(parts)
        each = unit / features
        name = case.settings.get("mechanism", "truncated-laplace")
        relation = case.settings.get("relation", "database-record")
        spread = TABLE[name](range="0:", sensitivity=1, epsilon=parts[2] * each, relation=relation)
        return cls(
            Geometric(range="0:", sensitivity=1, epsilon=unit * parts[0]),
            Laplace(range=":", sensitivity=1, epsilon=parts[1] * each),
            spread,
            case.settings.get("spread", "variance") == "variance",
        )

    def uniforms(
        self, case: LearnCase, table: Table, found: Moments, spare: Uniform
    ) -> dict[str, Float64[np.ndarray, " n"]]:
        """Return numbers that are uniform and independent if `found` was released about copies of a table.

        Each is the conditional distribution function of a released value given those before it; a number in
        [0, 1) of `spare` places it within the probability of its own value.
        """
        copies, features = len(found.counts) // len(case.classes), found.means.shape[1]
        shapes = (copies, len(case.classes)), (copies, len(case.classes), features)
        counts, means = found.counts.reshape(shapes[0]), found.means.reshape(shapes[1])
        spreads, uniform = found.deviations.reshape(shapes[1]), {}
        numbers = iter(spare.reshape(-1, copies))
        for row, label in enumerate(case.classes):
            sizes = counts[:, row]
            own = [codes(case, table, label, feature) for feature in range(features)]
            ends = self._sizes(len(own[0]), sizes - 1), self._sizes(len(own[0]), sizes)
            uniform[f"size of {label}"] = _within(ends, next(numbers))
            for feature, held in enumerate(own):
                centres, spread = means[:, row, feature], spreads[:, row, feature]
                name = f"of {feature + 1} in {label}"
                ends = self._means(held, centres - 1, sizes), self._means(held, centres, sizes)
                uniform[f"mean {name}"] = _within(ends, next(numbers))
                ends = self._spreads(held, centres, spread, sizes)
                uniform[f"spread {name}"] = _within(ends, next(numbers))
        return uniform

    def _sizes(self, size: int, at: Int64[np.ndarray, " n"]) -> Uniform:
        """Return P(released size ≤ at); sizes below 1 are released as 1."""
        below = _laplace(self.size, at - size)
        return np.where(at < 1, 0.0, below)

    def _means(self, own: list[int], at: Int64[np.ndarray, " n"], sizes: Int64[np.ndarray, " n"]) -> Uniform:
        """Return P(code of the mean ≤ at), halves rounded to even codes."""
        lattice = self.total.lattice
        start = int(lattice.index(sum((Fraction(2 * u, LEVELS) - 1 for u in own), Fraction(0)))[0])
        above, below = (
            sizes * (2 * at + 1 - LEVELS) * lattice.step.denominator,
            LEVELS * lattice.step.numerator,
        )
        last = above // below - ((above % below == 0) & (at % 2 == 1))
        found = _laplace(self.total, last - start)
        return np.where(at < 0, 0.0, np.where(at >= LEVELS, 1.0, found))

    def _spreads(
        self,
        own: list[int],
        centres: Int64[np.ndarray, " n"],
        spread: Float64[np.ndarray, " n"],
        sizes: Int64[np.ndarray, " n"],
    ) -> tuple[Uniform, Uniform]:
        """Return the probabilities of less than a deviation, and of at most it."""
        step, power = float(self.spread.lattice.step), 2 if self.squared else 1
        reach = np.maximum(centres, LEVELS - centres)
        root = np.where(spread < NOTHING, 0.0, spread * np.sqrt(sizes) * LEVELS / reach)
        capped = root >= np.sqrt(sizes) * ALMOST
        most = np.ceil(np.sqrt(sizes) ** power / step - NOTHING)
        points = np.where(capped, most, np.rint(root**power / step)).astype(np.int64)
        public, at = np.unique(centres, return_inverse=True)
        about = [Fraction(sum((u - c) ** 2 for u in own), max(c, LEVELS - c) ** 2) for c in map(int, public)]
        lattice = self.spread.lattice
        starts = np.array([_nearest(square, lattice.step, squared=self.squared) for square in about])[at]
        below = np.where(points < 1, 0.0, self._at_most(starts, points - 1))
        return below, np.where(capped, 1.0, self._at_most(starts, points))

    def _at_most(self, starts: Int64[np.ndarray, " n"], points: Int64[np.ndarray, " n"]) -> Uniform:
        """Return P(response ≤ point | answer start) from point 0 on, snapped or normalised."""
        spread: Any = self.spread
        if spread.name == "laplace":
            return _laplace(spread, points - starts)
        log = -float(spread.lattice.step / spread.scale)
        before = np.exp(log * np.maximum(starts - points, 0)) * -np.expm1(
            log * (np.minimum(starts, points) + 1)
        )
        behind = np.exp(log) * -np.expm1(log * np.maximum(points - starts, 0))
        total = 1 - np.exp(log * (starts + 1)) + np.exp(log)
        found: Uniform = (before + behind) / total
        return found


def _laplace(mechanism: ScalarMechanism, at: Int64[np.ndarray, " n"]) -> Uniform:
    """Return P(Z ≤ at) of discrete Laplace noise of scale ΔF/ε."""
    scale = Fraction(mechanism.sensitivity) / mechanism.lattice.step / mechanism.budget
    return laplace_distribution(scale).cdf(at)


def _within(ends: tuple[Uniform, Uniform], spare: Uniform) -> Float64[np.ndarray, " n"]:
    found: Float64[np.ndarray, " n"] = ends[0] + (ends[1] - ends[0]) * spare
    return found


# Gates for naive Bayes: queries by definition, exact cost of neighbours, fits, and lower bounds

CELLS: Final = 64
FEW: Final = 8
"""Classes of each of two numbers whose joint law is tested."""
SAME: Final = 6
EVEN, PAIRS = (finite_distribution(np.ones(count) / count) for count in (CELLS, FEW**2))


def same_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield whether a fit's queries are those of the definition, and its values those of its plan."""
    unlike = 0
    for table in case.tables:
        plan = version.plan(case, *case.columns(table))
        unlike += version.asks(plan) != true_answers(case, table, plan)
    what = f"answers unlike the definition, {len(case.tables)} tables"
    yield count_finding("same", what, case, unlike, "tables")
    others = apart = 0
    for table in case.tables[:: max(1, len(case.tables) // SAME)]:
        plan = version.plan(case, *case.columns(table))
        released = plan.release(SeededBits(1, f"same {table}"))
        apart += not _alike(released, _in_turn(plan, SeededBits(1, f"same {table}")))
        seen = version.release(case, table, 1, SeededBits(1, f"same {table}"))
        others += bool(np.any(np.maximum(released.counts, 1) != seen.counts))
        others += bool(np.any(released.means != seen.means))
        others += bool(np.any(np.abs(np.maximum(released.deviations, 1e-9) - seen.deviations) > 1e-9))
    yield count_finding("same", "fits unlike their plan", case, others, "statistics")
    what = "releases unlike one that knows released sizes alone"
    yield count_finding("same", what, case, apart, "tables")


def _in_turn(plan: Plan, bits: BitSource) -> Moments:
    """Return a plan's release with deviations drawn at released sizes, never at true ones."""
    counts = plan.sizes().draw(bits)
    means = mean_codes(plan.sums(), counts, bits)
    squares, reach = plan.spreads(means)
    sizes = [max(1, int(count)) for count in counts]
    roots = plan.deviations.release(squares, reach, sizes, bits)
    most = np.sqrt(np.array(sizes, np.float64))[:, None]
    return Moments(counts, means, np.minimum(roots / most, 1) * reach / LEVELS)


def _alike(one: Moments, other: Moments) -> bool:
    same = np.array_equal(one.counts, other.counts) and np.array_equal(one.means, other.means)
    return same and bool(np.allclose(one.deviations, other.deviations, rtol=1e-12, atol=0))


def exact_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of everything released, over all neighbours."""
    if version.lawful:
        return
    limit = stated_epsilon(case)
    beyond = max(Fraction(0), limit - case.requested_epsilon)
    yield Finding("exact", "ε stated beyond ε asked", str(case), float(beyond), 0, not beyond, "ε")
    limit = min(limit, case.requested_epsilon)
    learned: dict[Learned, int] = {}  # most tables are asked the same as others are
    asks = {table: learned.setdefault(version.learn(case, table), len(learned)) for table in case.tables}
    kinds = list(learned)
    worst: tuple[Fraction, Table, Table] = Fraction(0), (), ()
    pairs = 0
    known: dict[tuple[int, int], Fraction] = {}
    for one in case.tables:
        for other in case.neighbours(one):
            if other in asks:
                pairs += 1
                both = asks[one], asks[other]
                if both not in known:
                    known[both] = cost(kinds[both[0]], kinds[both[1]])
                worst = max(worst, (known[both], one, other))
    value, one, other = worst
    what = f"log-ratio of all that is released, {pairs:,} pairs of tables"
    where = f"{case}, {_table_text(case, one)} and {_table_text(case, other)}"
    yield Finding("exact", what, where, float(value), float(limit), value <= limit + ROUNDED, "ε")


def stated_epsilon(case: LearnCase) -> Fraction:
    """Return what a fitted model states, which is the same for all tables."""
    guarantee = case.fit(case.tables[0], 1, SeededBits(1, "stated")).guarantee_
    return Fraction(guarantee.epsilon or 0)


def _table_text(case: LearnCase, table: Table) -> str:
    held = [case.records[number] for number in table]
    return "[" + ", ".join(f"{'/'.join(map(str, one.features))} {one.label}" for one in held) + "]"


def fit_gate(version: LearnVersion, setting: LearnDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how uniform every released number is under its conditional law."""
    case, draws = setting.case, setting.draws
    found = version.release(case, setting.fits[0], draws, bits)
    spare = uniforms(bits, draws * len(case.classes) * (1 + 2 * found.means.shape[1]))
    uniform = Definition.of(case).uniforms(case, setting.fits[0], found, spare)
    p = dict[str, float]()
    for name, values in uniform.items():
        p |= p_values(name, _cells(values, CELLS), EVEN)
    for (one, a), (other, b) in combinations(uniform.items(), 2):
        p[f"{one} and {other}"] = fit(_cells(a, FEW) * FEW + _cells(b, FEW), PAIRS).p_value
    yield fit_finding(case, f"{draws:,} fits", p)


def _cells(values: Float64[np.ndarray, " n"], count: int) -> Int64[np.ndarray, " n"]:
    found: Int64[np.ndarray, " n"] = np.floor(values * count).astype(np.int64).clip(0, count - 1)
    return found


def bound_gate(version: LearnVersion, setting: LearnDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of tables, from models alone."""
    case = setting.case
    limit = min(stated_epsilon(case), case.requested_epsilon)

    def models(table: Table, count: int) -> Draws:
        return _bytes(version.release(case, table, count, bits), count)

    yield from bounds(setting, models, lambda one, other: limit, label=partial(_table_text, case))


def _bytes(found: Moments, draws: int) -> UInt8[np.ndarray, "n values"]:
    """Return sizes, means and deviations as bytes, one model per row."""
    columns = (
        found.counts.reshape(draws, -1),
        (found.means * 255 // LEVELS).reshape(draws, -1),
        (found.deviations * 255).reshape(draws, -1),
    )
    return np.concatenate([np.clip(column, 0, 255).astype(np.uint8) for column in columns], axis=1)


SharesOf = Callable[[LearnCase, Shares, int], Shares]


def _share_mutant(name: str, shares: SharesOf) -> LearnVersion:
    """Return a mutant that divides ε in another way, given the number of features."""

    def plan(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
        own = own_plan(case, features, labels, classes)
        found = shares(case, own.shares, features.shape[1])
        spread = replace(deviations_of(own), epsilon=found.deviation)
        return replace(own, shares=found, deviations=spread)

    return LearnVersion(name=name, plan=plan)


def _times(shares: Shares, count: int | Fraction, each: int | Fraction) -> Shares:
    return Shares(shares.count * count, shares.mean * each, shares.deviation * each)


def _as_added(case: LearnCase, shares: Shares, features: int) -> Shares:
    return shares if case.is_add_remove else _times(shares, 2, 2)


def _for_each_feature(case: LearnCase, shares: Shares, features: int) -> Shares:
    return _times(shares, 1, features)


def _for_each_number(case: LearnCase, shares: Shares, features: int) -> Shares:
    whole = case.requested_epsilon / (1 if case.is_add_remove else 2)
    return Shares(whole, whole, whole)


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
    means = []
    for group in plan.groups:
        mechanism = _size_mechanism(group, plan.shares.mean)
        for feature in range(features):
            total = Fraction(int((2 * group[:, feature] - LEVELS).sum()), LEVELS * max(len(group), 1))
            means.append(Number(mechanism, int(mechanism.lattice.index(total)[0])))
    return Learned((*own.first[: len(plan.groups)], *means), own.then)


def _draw_true_sizes(plan: Plan, bits: BitSource) -> Moments:
    counts = plan.sizes().draw(bits)
    rows: list[Any] = [None] * len(plan.groups)
    sizes = [len(group) for group in plan.groups]
    for size in set(sizes):  # classes of one size have one mechanism
        same = [row for row, own in enumerate(sizes) if own == size]
        mechanism = _size_mechanism(plan.groups[same[0]], plan.shares.mean)
        totals = [(2 * plan.groups[row] - LEVELS).sum(axis=0) for row in same]
        exact = [Fraction(int(total), LEVELS * max(size, 1)) for of_row in totals for total in of_row]
        points = mechanism.lattice.index(np.array(exact, dtype=object))
        noisy = mechanism.lattice.value(mechanism.draw(points, bits)).reshape(len(same), -1)
        for row, values in zip(same, noisy, strict=True):
            rows[row] = np.rint((1 + np.clip(values, -1, 1)) / 2 * LEVELS)
    return _spread(plan, counts, np.stack(rows).astype(np.int64), bits)


def _spread(
    plan: Plan,
    counts: Any,
    means: Ints,
    bits: BitSource,
    about: Ints | None = None,
    reach: Ints | None = None,
) -> Moments:
    """Return the moments with these counts and means, and deviations about `about`, as far as `reach`."""
    squares, own = plan.spreads(means if about is None else about)
    reach, sizes = own if reach is None else reach, np.maximum(counts, 1)
    roots = plan.deviations.release(squares, reach, sizes.tolist(), bits)
    most = np.sqrt(sizes)[:, None]
    return Moments(counts, means, np.minimum(roots, most) * (reach / LEVELS) / most)


def _true_means(plan: Plan) -> Ints:
    means = [
        group.mean(axis=0) if len(group) else np.full(group.shape[1], LEVELS / 2) for group in plan.groups
    ]
    found: Ints = np.rint(np.stack(means)).astype(np.int64)
    return found


def _about_true_means(plan: Plan) -> Learned:
    squares, reach = plan.spreads(_true_means(plan))
    then = [spreads_of(plan, squares, reach, size) for size in SIZES]
    return Learned(own_asks(plan).first, tuple(then))


def _draw_about_true_means(plan: Plan, bits: BitSource) -> Moments:
    counts = plan.sizes().draw(bits)
    return _spread(plan, counts, mean_codes(plan.sums(), counts, bits), bits, _true_means(plan))


def _half_reach(means: Ints) -> Ints:
    return np.full_like(means, LEVELS // 2)


def _too_short(plan: Plan) -> Learned:
    """Use half the bounds as the largest distance from a mean."""
    shape = len(plan.groups), plan.groups[0].shape[1]
    then = []
    for centre in CENTRES:
        squares, reach = plan.spreads(np.full(shape, centre, np.int64))
        then += [spreads_of(plan, squares, _half_reach(reach), size) for size in SIZES]
    return Learned(own_asks(plan).first, tuple(then))


def _draw_too_short(plan: Plan, bits: BitSource) -> Moments:
    counts = plan.sizes().draw(bits)
    means = mean_codes(plan.sums(), counts, bits)
    return _spread(plan, counts, means, bits, reach=_half_reach(means))


def _sizes_shown(plan: Plan) -> Learned:
    own, count = own_asks(plan), len(plan.groups)
    shown = replace(plan, shares=replace(plan.shares, count=Fraction(60)))
    sizes = release_points(shown.sizes().mechanism, shown.sizes().points)
    return Learned((*sizes, *own.first[count:]), own.then)


def _draw_sizes_shown(plan: Plan, bits: BitSource) -> Moments:
    counts = np.array([len(group) for group in plan.groups], np.int64)
    return _spread(plan, counts, mean_codes(plan.sums(), counts, bits), bits)


def _only_with_records(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
    own = own_plan(case, features, labels, classes)
    return replace(own, groups=tuple(group for group in own.groups if len(group)))


def _draw_one_for_all(plan: Plan, bits: BitSource) -> Moments:
    """Add one draw of noise to the sums of all features of a class."""
    counts, sums, features = plan.sizes().draw(bits), plan.sums(), plan.groups[0].shape[1]
    lattice = sums.mechanism.lattice
    noise = sums.mechanism.draw(np.zeros(len(counts), np.int64), bits)
    noisy = lattice.value(sums.points + np.repeat(noise, features)).reshape(len(counts), -1)
    middle = noisy / np.maximum(counts, 1)[:, None]
    means = np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64)
    return _spread(plan, counts, means, bits)


MUTANTS: Final = (
    _share_mutant("replaced records charged as added ones", _as_added),
    replace(_share_mutant("budget not divided over features", _for_each_feature), gates=BY_LAW),
    _share_mutant("budget not divided over statistics", _for_each_number),
    LearnVersion(
        name="sensitivities from true class sizes", gates=BY_LAW, asks=_true_sizes, draw=_draw_true_sizes
    ),
    LearnVersion(name="spreads about true means", asks=_about_true_means, draw=_draw_about_true_means),
    LearnVersion(
        name="half the bounds for the reach of a spread", gates=BY_LAW, asks=_too_short, draw=_draw_too_short
    ),
    LearnVersion(name="features not clipped", gates=BY_LAW, plan=_unclipped_plan),
    LearnVersion(name="class sizes without noise", asks=_sizes_shown, draw=_draw_sizes_shown),
    LearnVersion(name="empty classes left out", plan=_only_with_records, gates=("exact",)),
    LearnVersion(name="one draw for all features", gates=("fit",), draw=_draw_one_for_all),
)


# Audit entries of the models, with their tables

ANY: Final = "any-database"
DRAWS: Final = 1_200
FLOOR: Final = "1e-9"


GATES: Final = (
    Gate("same", same_gate, ties=True),
    Gate("exact", exact_gate),
    drawing("fit", fit_gate, of=lambda level: [one for one in level.drawn if one.fits]),
    drawing("bound", bound_gate, of=lambda level: [one for one in level.drawn if one.pairs]),
)


def _records(*values: tuple[float, ...]) -> tuple[Record, ...]:
    return tuple(Record(features, label) for label, features in product("ab", values))


ONE: Final = _records((0.0,), (1.0,), (0.5,), (7.0,))
"""One feature in 0:1: both ends, the middle, and a value that is clipped."""
TWO: Final = _records((0.0, -3.0), (1.0, 9.0), (0.3, 100.0), (-5.0, 3.0))
"""Two features, in 0:1 and -3:9."""
BOTH: Final[dict[str, Any]] = {"bounds": ((0, -3), (1, 9)), "floor": FLOOR}
UNIT: Final[dict[str, Any]] = {"bounds": (0, 1), "floor": FLOOR}


def _case(
    records: tuple[Record, ...], rows: tuple[int, ...], classes: str = "abc", /, **settings: Any
) -> LearnCase:
    return LearnCase(records, rows, {"epsilon": 1, **settings}, tuple(classes))


def naive_bayes() -> Audit:
    """Return the audit of naive Bayes."""
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
        _case(TWO, (1, 2), mechanism="permute-and-flip", spread="deviation", **{**BOTH, "epsilon": "0.3"}),
        _case(ONE, (2,), mechanism="linear-program-1", neighbours="added", **UNIT),
        _case(TWO, (2,), mechanism="truncated-laplace", relation=ANY, **{**BOTH, "epsilon": 20}),
    )
    two = _case(TWO, (7,), **{**BOTH, "epsilon": 6})
    one = _case(ONE, (5,), spread="deviation", mechanism="laplace", **{**UNIT, "epsilon": 8})
    sizes = _case(ONE, (8,), "ab", parts=(98, 1, 1), **{**UNIT, "epsilon": 3})
    means = _case(ONE, (1, 2), "a", neighbours="added", parts=(1, 98, 1), **{**UNIT, "epsilon": 3})
    spreads = _case(ONE, (1, 2), "a", neighbours="added", parts=(1, 1, 98), **{**UNIT, "epsilon": 3})
    low, high, other_low = 0, 1, 4
    moved = (low,) * 4 + (other_low,) * 4, (low,) * 3 + (other_low,) * 5
    settings = (
        LearnDrawn(one, DRAWS, fits=((0, 0, 1, 2, 5),)),
        LearnDrawn(two, DRAWS, fits=((0, 1, 1, 2, 4, 5, 7),)),
        LearnDrawn(sizes, DRAWS, pairs=(moved,)),
        LearnDrawn(means, DRAWS, pairs=(((low,), (low, high)),)),
        LearnDrawn(spreads, DRAWS, pairs=(((low,), (low, high)),)),
    )
    quick = LearnLevel(exact, settings)
    levels = {"quick": quick, "deep": quick.more(deep)}
    return Audit(intact=INTACT, levels=levels, mutants=MUTANTS, gates=GATES, refusals=(DPVeilError,))

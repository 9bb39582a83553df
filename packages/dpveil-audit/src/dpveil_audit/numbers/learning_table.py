"""Mutants of naive Bayes, and the tables on which all are audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np

from dpveil.errors import DPVeilError
from dpveil.mechanisms.scalar import Laplace
from dpveil.noise.bits import BitSource
from dpveil.numbers.naive_bayes import LEVELS, Codes, Ints, Moments, Plan, Shares, mean_codes
from dpveil_audit.engine import BY_LAW, Audit, Gate, drawing
from dpveil_audit.numbers.learning import (
    CENTRES,
    INTACT,
    SIZES,
    LearnCase,
    LearnDrawn,
    Learned,
    LearnLevel,
    LearnVersion,
    Record,
    bound_gate,
    deviations_of,
    exact_gate,
    fit_gate,
    own_asks,
    own_plan,
    same_gate,
    spreads_of,
)
from dpveil_audit.scalar.laws import Number, released

SharesOf = Callable[[LearnCase, Shares, int], Shares]


def _charged(name: str, shares: SharesOf) -> LearnVersion:
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
    return shares if case.added else _times(shares, 2, 2)


def _for_each_feature(case: LearnCase, shares: Shares, features: int) -> Shares:
    return _times(shares, 1, features)


def _for_each_number(case: LearnCase, shares: Shares, features: int) -> Shares:
    whole = case.asked / (1 if case.added else 2)
    return Shares(whole, whole, whole)


def _unclipped(case: LearnCase, features: Any, labels: Any, classes: Any) -> Plan:
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
    sizes = released(shown.sizes().mechanism, shown.sizes().points)
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
    _charged("replaced records charged as added ones", _as_added),
    replace(_charged("budget not divided over features", _for_each_feature), gates=BY_LAW),
    _charged("budget not divided over statistics", _for_each_number),
    LearnVersion(
        name="sensitivities from true class sizes", gates=BY_LAW, asks=_true_sizes, draw=_draw_true_sizes
    ),
    LearnVersion(name="spreads about true means", asks=_about_true_means, draw=_draw_about_true_means),
    LearnVersion(
        name="half the bounds for the reach of a spread", gates=BY_LAW, asks=_too_short, draw=_draw_too_short
    ),
    LearnVersion(name="features not clipped", gates=BY_LAW, plan=_unclipped),
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

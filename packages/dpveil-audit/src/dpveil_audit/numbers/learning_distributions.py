"""The queries and releases of naive Bayes from their definition, in fractions and closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.core.numbers import exact
from dpveil.mechanisms.scalar import TABLE, Geometric, Laplace, ScalarMechanism
from dpveil.numbers.moments import LEVELS, Moments, Plan
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.numbers.joint import Released, released
from dpveil_audit.numbers.learning import CENTRES, SIZES, LearnCase, Learned, Table, deviations_of

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


def written(case: LearnCase, table: Table, plan: Plan) -> Learned:
    """Return the true answers to all queries about a table, as points on the lattices of a plan."""
    features = range(len(case.records[0].features))
    every = [[codes(case, table, label, feature) for feature in features] for label in case.classes]
    sizes = [len(of_class[0]) for of_class in every]
    sums = [sum((Fraction(2 * u, LEVELS) - 1 for u in own), Fraction(0)) for cls in every for own in cls]
    about_sums = plan.sums().mechanism
    points = [int(about_sums.lattice.index(total)[0]) for total in sums]
    first = released(plan.sizes().mechanism, sizes) + released(about_sums, points)
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
    return released(mechanism, points)


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
        unit = case.asked / (1 if case.added else 2) / sum(parts)
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

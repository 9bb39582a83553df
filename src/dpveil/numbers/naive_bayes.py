"""Gaussian naive Bayes in which every learned number is a private release; a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from operator import index
from typing import Any, Final, Protocol, Self

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import SCALE, positive
from dpveil.core.rationals import exact
from dpveil.core.registry import SCALAR
from dpveil.errors import InvalidParameter, UsageError, suggestion
from dpveil.mechanisms.scalar import Geometric, Laplace, ScalarMechanism
from dpveil.noise.bits import SECURE, BitSource, SecureBits, SeededBits, bits_kind
from dpveil.numbers.expected_error import build

LEVELS: Final = 1 << 16  # the largest code; codes are from 0 to this
MOST_STEPS: Final = 512
"""Most steps of the lattice of a mechanism with an upper end; beyond, a step is several sensitivities."""
Codes = Int64[np.ndarray, "records features"]
Ints = Int64[np.ndarray, "classes features"]


@dataclass(frozen=True)
class Shares:
    """The ε for one added record of each release: the count, and each feature's mean and deviation."""

    count: Fraction
    mean: Fraction
    deviation: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, features: int, parts: tuple[Fraction, Fraction, Fraction]) -> Shares:
        """Return shares that sum to `epsilon`, divided between count, means and deviations as `parts`."""
        unit = epsilon / sum(parts)
        return cls(unit * parts[0], unit * parts[1] / features, unit * parts[2] / features)

    def total(self, features: int) -> Fraction:
        """Return the ε for one added record of all releases together."""
        return self.count + features * (self.mean + self.deviation)


@dataclass(frozen=True)
class Moments:
    """Released: each class's count, the code of each mean, each deviation as a share of the width."""

    counts: Int64[np.ndarray, " classes"]
    means: Int64[np.ndarray, "classes features"]
    deviations: Float64[np.ndarray, "classes features"]


@dataclass(frozen=True)
class TrueAnswers:
    """True answers about to be released, as points on the lattice of the mechanism that draws them."""

    mechanism: ScalarMechanism
    points: Int64[np.ndarray, " n"] = field(repr=False)

    def draw(self, bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return the responses, as points of the lattice."""
        return self.mechanism.draw(self.points, bits)


class Spread(Protocol):
    """A way to release the deviations of all classes."""

    def release(self, squares: Ints, reach: Ints, sizes: list[int], bits: BitSource) -> Any:
        """Return a response for every root √squares / reach, one row per class of a public size."""


@dataclass(frozen=True)
class Deviations:
    """Releases the root R of every feature, or R² if `squared`, by a scalar mechanism of sensitivity 1.

    `mechanism` is its name, with `relation` and `epsilon`; its range begins at 0.
    """

    mechanism: str
    relation: str
    epsilon: Fraction
    squared: bool = False

    def top(self, size: int) -> int | None:
        """Return the upper end for a class of public size, or None if the mechanism needs none.

        It is ⌈√size⌉, or size for squares, rounded up to whole steps. R² is at most n, so for n = m it is not
        exceeded; larger answers are clipped.
        """
        if not SCALAR[self.mechanism].finite_only:
            return None
        end = size if self.squared else isqrt(size - 1) + 1
        step = -(-end // most_steps(self.mechanism))
        return -(-end // step) * step

    def at(self, size: int) -> ScalarMechanism:
        """Return the mechanism for a class of public size."""
        return _mechanism(self.mechanism, self.top(size), self.epsilon, self.relation)

    def plan(self, squares: Ints, reach: Ints, sizes: list[int]) -> dict[tuple[int, ...], TrueAnswers]:
        """Return the true answers √squares / reach, grouped by the classes that share a mechanism."""
        nearest = square_point if self.squared else root_point
        tops = [self.top(size) for size in sizes]
        found = {}
        for top in dict.fromkeys(tops):
            rows = tuple(row for row, own in enumerate(tops) if own == top)
            mechanism = self.at(sizes[rows[0]])
            pairs = zip(squares[[*rows]].ravel().tolist(), reach[[*rows]].ravel().tolist(), strict=True)
            points = np.array([nearest(s, w, mechanism) for s, w in pairs], np.int64)
            found[rows] = TrueAnswers(mechanism, points)
        return found

    def release(self, squares: Ints, reach: Ints, sizes: list[int], bits: BitSource) -> Any:
        """Return a response for every root √squares / reach, one row per class, in the same unit."""
        found = np.empty(reach.shape)
        for rows, asked in self.plan(squares, reach, sizes).items():
            drawn = asked.mechanism.lattice.value(asked.draw(bits))
            found[[*rows]] = drawn.reshape(len(rows), -1)
        return np.sqrt(found) if self.squared else found


def most_steps(name: str) -> int:
    """Return the most steps of the lattice of a mechanism with an upper end."""
    return min(MOST_STEPS, int(SCALAR[name].most) - 1)


@lru_cache(maxsize=64)
def _mechanism(name: str, top: int | None, epsilon: Fraction, relation: str) -> ScalarMechanism:
    steps = most_steps(name)
    step = None if top is None or top <= steps else -(-top // steps)
    made = build(name, range=(0, top), sensitivity=1, epsilon=epsilon, relation=relation, step=step)
    made.prepare()
    return made


@lru_cache(maxsize=64)
def count_mechanism(epsilon: Fraction) -> ScalarMechanism:
    """Return two-sided geometric noise on a count, snapped at 0."""
    return Geometric(range="0:", sensitivity=1, epsilon=epsilon)


@lru_cache(maxsize=64)
def sum_mechanism(epsilon: Fraction) -> ScalarMechanism:
    """Return Laplace noise on a centred sum; the mean is clipped to the bounds afterwards."""
    return Laplace(range=":", sensitivity=1, epsilon=epsilon)


def root_point(squares: int, reach: int, mechanism: ScalarMechanism) -> int:
    """Return the point of a lattice from 0 that is nearest √squares / reach, exactly, at most its last one.

    The point is ⌊x + 1/2⌋ with x = √(squares/(reach·step)²), computed in integers, as ⌊2x⌋ = ⌊√⌊(2x)²⌋⌋.
    Rounding and clipping keep two roots at most 1 apart within the lattice's `reach`.
    """
    step = mechanism.lattice.step
    four_x_squared = 4 * squares * step.denominator**2 // (reach * step.numerator) ** 2
    return _at_most_the_end((isqrt(four_x_squared) + 1) // 2, mechanism)


def square_point(squares: int, reach: int, mechanism: ScalarMechanism) -> int:
    """Return the point of a lattice from 0 that is nearest squares / reach², exactly, or its last one."""
    step = mechanism.lattice.step
    above, below = squares * step.denominator, reach * reach * step.numerator
    return _at_most_the_end((2 * above + below) // (2 * below), mechanism)


def _at_most_the_end(point: int, mechanism: ScalarMechanism) -> int:
    last = mechanism.lattice.spans[-1][1]
    return point if last is None else min(point, last)


def encode(
    values: Float64[np.ndarray, "records features"],
    lower: Float64[np.ndarray, " features"],
    upper: Float64[np.ndarray, " features"],
) -> Codes:
    """Return the nearest code of every value, clipped to its bounds: 0 at `lower`, 2^16 at `upper`."""
    inside = np.clip(values, lower, upper)
    codes: Codes = np.rint((inside - lower) / (upper - lower) * LEVELS).astype(np.int64)
    return codes.clip(0, LEVELS)


@dataclass(frozen=True)
class Plan:
    """All queries about the classes, before anything is drawn; `groups` are the records' codes, and private.

    Counts are released first, then all sums, then all deviations about the released means. The cost is
    `shares.total(features)` for one record added or removed, and twice that for one replaced (proof in
    docs/learning.md).
    """

    groups: tuple[Codes, ...] = field(repr=False)
    shares: Shares
    deviations: Spread

    @classmethod
    def of(
        cls,
        codes: Codes,
        labels: Int64[np.ndarray, " records"],
        classes: int,
        shares: Shares,
        deviations: Spread,
    ) -> Plan:
        """Return the plan for records with labels from 0 to `classes` - 1."""
        ends = np.cumsum(np.bincount(labels, minlength=classes))[:-1]
        return cls(tuple(np.split(codes[np.argsort(labels, kind="stable")], ends)), shares, deviations)

    def sizes(self) -> TrueAnswers:
        sizes = np.array([len(group) for group in self.groups], np.int64)
        return TrueAnswers(count_mechanism(self.shares.count), sizes)

    def sums(self) -> TrueAnswers:
        mechanism = sum_mechanism(self.shares.mean)
        each, at = np.unique(centred_sums(self.groups), return_inverse=True)
        points = [int(mechanism.lattice.index(Fraction(int(total), LEVELS))[0]) for total in each]
        return TrueAnswers(mechanism, np.array(points, np.int64)[at.ravel()])

    def spreads(self, means: Ints) -> tuple[Ints, Ints]:
        """Return Σ (u - j)² of each feature and class about its public code j, and W = max(j, 2^16 - j)."""
        return squares_about(self.groups, means), np.maximum(means, LEVELS - means)

    def release(self, bits: BitSource) -> Moments:
        counts = self.sizes().draw(bits)
        means = mean_codes(self.sums(), counts, bits)
        (squares, reach), publicly = self.spreads(means), np.maximum(counts, 1)
        roots = self.deviations.release(squares, reach, publicly.tolist(), bits)
        most = np.sqrt(publicly)[:, None]
        return Moments(counts, means, np.minimum(roots, most) * (reach / LEVELS) / most)


def centred_sums(groups: Sequence[Codes]) -> Ints:
    """Return 2^16·T of every feature of every class; one record changes it by at most 2^16."""
    return _sums(2 * np.concatenate(groups) - LEVELS, groups)


def mean_codes(sums: TrueAnswers, counts: Int64[np.ndarray, " classes"], bits: BitSource) -> Ints:
    """Draw the sums and return the code of every mean."""
    noisy = sums.mechanism.lattice.value(sums.draw(bits)).reshape(len(counts), -1)
    middle = noisy / np.maximum(counts, 1)[:, None]
    return np.asarray(np.rint((1 + np.clip(middle, -1, 1)) / 2 * LEVELS).astype(np.int64))


def squares_about(groups: Sequence[Codes], centres: Ints) -> Ints:
    """Return Σ (u - j)² of every feature of every class about its centre j, at most 2^32 a record."""
    own = np.repeat(centres, [len(group) for group in groups], axis=0)
    return _sums((np.concatenate(groups) - own) ** 2, groups)


def _sums(terms: Codes, groups: Sequence[Codes]) -> Ints:
    ends = np.cumsum([0, *(len(group) for group in groups)])
    running = np.concatenate([np.zeros((1, terms.shape[1]), np.int64), terms.cumsum(axis=0)])
    return np.diff(running[ends], axis=0)


try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise UsageError("PrivateGaussianNB needs scikit-learn", hint="pip install 'dpveil[learn]'") from error

NEIGHBOURS: Final = {
    "replaced": (2, "one record replaced by any other, its label too; the number of records is public"),
    "added": (1, "one record added or removed"),
}
"""How neighbouring tables differ: the number of records added or removed, and the words for it."""
SPREADS: Final = ("variance", "deviation")
WIDEST: Final = 1e100  # largest distance between bounds: its square and that of its inverse are finite floats


@dataclass(frozen=True)
class FitPlan:
    """What a fit will release: public classes, bounds and floor, and the plan of all queries."""

    classes: Any
    lower: Float64[np.ndarray, " d"]
    upper: Float64[np.ndarray, " d"]
    floor: float
    moments: Plan


class PrivateGaussianNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian naive Bayes, ε-differentially private for one record of the training table.

    Released are a noisy size of every class (two-sided geometric noise), the mean of every feature in every
    class (Laplace noise on a sum, snapped to the bounds) and its variance or standard deviation, by any
    mechanism of `dpveil.core.registry.SCALAR`. Sensitivities depend on nothing private, no true class
    size among them; the proof is in docs/learning.md. The Gaussian law is a model, not an
    assumption: the guarantee holds for every table.

    Args:
        epsilon: What the whole model costs. There is no default.
        bounds: (lower, upper) of the features, numbers or one for each. Public knowledge, never taken from
            the data, and required. Values beyond are clipped, in `fit` and in `predict`.
        classes: The public list of labels. None takes those that occur in `y` as public, which the guarantee
            says in its `in_the_clear`: a label that one record alone has gives it away.
        mechanism: The name of the mechanism of variances or deviations.
        relation: Its relation: database-record suffices here, any-database costs more noise and buys nothing.
        spread: What the mechanism releases: variance, of which the noise falls faster with the size of a
            class, or deviation, as in the thesis.
        neighbours: replaced (one record differs) or added (one record more or less), which needs half the
            noise.
        parts: How ε is divided between class sizes, all means, and all deviations: three numbers above 0.
            None divides it evenly over all released values, as in the thesis: (1, d, d) for d features.
        floor: The least standard deviation, as a part of upper - lower: released ones may be 0.
        random_state: None for secure bits, a `BitSource`, or a whole number as a seed: such a model can be
            made again by everyone who knows the number, and is not for publication.

    Attributes:
        classes_: Labels, in order.
        class_count_: Noisy class sizes, at least 1.
        class_prior_: Their shares.
        theta_: Means, classes × features.
        var_: Squared standard deviations, likewise.
        guarantee_: What the model promises: pure ε, its relation and scope.
        split_: What one added record may cost in each value: `count`, and a feature's `mean` and `deviation`.
        for_publication_: False after a seed.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.

    Raises `InvalidParameter` (a ValueError) from `fit` for parameters out of range, missing values, and
    labels that are not in `classes`. Such an error is not private: do not show it to others.
    Source: Croft thesis §5.3.1 and Vaidya et al. 2013, with the sensitivities of errata E13.

    >>> import numpy as np
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]] * 50), np.array(["low", "low", "high", "high"] * 50)
    >>> model = PrivateGaussianNB(epsilon=5, bounds=(0, 1), classes=["low", "high"], random_state=1)
    >>> model.fit(X, y).predict([[0.15], [0.85]]).tolist()
    ['low', 'high']
    >>> str(model.guarantee_)
    '5-DP, database-record'

    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        bounds: Any = None,
        classes: Any = None,
        mechanism: str = "truncated-laplace",
        relation: str = "database-record",
        spread: str = "variance",
        neighbours: str = "replaced",
        parts: Any = None,
        floor: Any = 0.01,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.mechanism = mechanism
        self.relation = relation
        self.spread = spread
        self.neighbours = neighbours
        self.parts = parts
        self.floor = floor
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  scikit-learn's name
        """Release the moments of a table of records × features with labels, and keep only them."""
        bits = _bits(self.random_state)
        plan = self.plan(X, y)
        moments = plan.moments.release(bits)
        shares, features = plan.moments.shares, len(plan.lower)
        self.guarantee_ = self._guarantee(self._groups() * shares.total(features), bits)
        self.split_ = {"count": shares.count, "mean": shares.mean, "deviation": shares.deviation}
        self.for_publication_ = bits_kind(bits) == SECURE
        self._lower, self._upper = plan.lower, plan.upper
        return self._keep(plan.classes, moments, plan.floor)

    def plan(self, X: Any, y: Any) -> FitPlan:  # noqa: N803
        """Return the queries of `fit` and their mechanisms: private, and nothing is drawn."""
        values, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        features = values.shape[1]
        epsilon = _epsilon(self.epsilon)
        lower, upper = _bounds(self.bounds, features)
        groups, parts, floor = self._groups(), _parts(self.parts, features), positive(self.floor, "floor")
        shares = Shares.of(epsilon / groups, features, parts)
        deviations = Deviations(
            self.mechanism, self.relation, shares.deviation, squared=self.spread == "variance"
        )
        deviations.at(1)
        classes, labels = _labels(self.classes, y)
        codes = encode(values, lower, upper)
        moments = Plan.of(codes, labels, len(classes), shares, deviations)
        return FitPlan(classes, lower, upper, float(floor), moments)

    def _keep(self, classes: Any, moments: Moments, floor: float) -> Self:
        """Set the fitted attributes, all of which follow from the releases."""
        width = self._upper - self._lower
        self.classes_ = classes
        self.class_count_ = np.maximum(moments.counts, 1).astype(np.float64)
        self.class_prior_ = self.class_count_ / self.class_count_.sum()
        self.theta_ = self._lower + width * moments.means / LEVELS
        self.var_ = (width * np.maximum(moments.deviations, floor)) ** 2
        return self

    def _groups(self) -> int:
        """Check the named choices; return how many added or removed records separate two neighbours."""
        known: dict[str, Collection[str]] = {"mechanism": SCALAR, "neighbours": NEIGHBOURS, "spread": SPREADS}
        for name, choices in known.items():
            if (given := getattr(self, name)) not in choices:
                hint = f"{suggestion(str(given), choices)}one of {', '.join(choices)}"
                raise InvalidParameter(name, str(given), "is unknown", hint=hint)
        return NEIGHBOURS[self.neighbours][0]

    def _guarantee(self, epsilon: Fraction, bits: BitSource) -> Guarantee:
        clear = ["the bounds, the features' names and all parameters, which are public"]
        if self.classes is None:
            clear.append("which labels occur in the table: they were taken as public")
        if not SCALAR[self.mechanism].finite_only:
            clear.append("how long the draws took, which depends a little on the table")
        if bits_kind(bits) != SECURE:
            clear.append("the noise, to everyone who knows the seed: the model is not for publication")
        covers = f"a Gaussian naive Bayes model; neighbours: {NEIGHBOURS[self.neighbours][1]}"
        scope = Scope(covers, tuple(clear))
        return Guarantee(kind="pure", epsilon=epsilon, relation=Relation("database-record"), scope=scope)

    def predict(self, X: Any) -> Any:  # noqa: N803
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Float64[np.ndarray, "records classes"]:  # noqa: N803
        joint = self._joint(X)
        highest = joint.max(axis=1, keepdims=True)
        total = np.log(np.exp(joint - highest).sum(axis=1, keepdims=True))
        return np.asarray(joint - highest - total)

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "records classes"]:  # noqa: N803
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _joint(self, X: Any) -> Float64[np.ndarray, "records classes"]:  # noqa: N803
        """Return ln P(record, class) for every record and class."""
        check_is_fitted(self)
        values = validate_data(self, X, dtype=np.float64, reset=False)
        inside = np.clip(values, self._lower, self._upper)
        terms = [
            np.log(prior) - 0.5 * (np.log(2 * np.pi * var) + (inside - mean) ** 2 / var).sum(axis=1)
            for prior, mean, var in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.stack(terms, axis=1)


def _epsilon(value: Any) -> Fraction:
    if value is None:
        raise InvalidParameter(
            "epsilon",
            None,
            "is missing",
            hint=f"{SCALE}; it is divided over all released values, and 1 needs thousands of records a class",
        )
    return positive(value, "epsilon")


def _bounds(bounds: Any, features: int) -> tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, " d"]]:
    hint = "give bounds=(lower, upper), numbers or one a feature, from public knowledge and not from the data"
    if bounds is None:
        raise InvalidParameter("bounds", None, "are missing", hint=hint)
    try:
        lower, upper = (np.broadcast_to(np.asarray(end, np.float64), (features,)) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidParameter("bounds", None, f"do not fit {features} features", hint=hint) from None
    with np.errstate(over="ignore", invalid="ignore"):
        width = upper - lower
    if not (np.isfinite(width) & (width > 0)).all():
        raise InvalidParameter("bounds", None, "have a lower end that is not below the upper one", hint=hint)
    if width.max(initial=1) > WIDEST or width.min(initial=1) < 1 / WIDEST:
        problem = f"are wider than {WIDEST:g} or narrower than {1 / WIDEST:g}"
        raise InvalidParameter("bounds", None, problem, hint="scale the features")
    return lower.copy(), upper.copy()


def _parts(parts: Any, features: int) -> tuple[Fraction, Fraction, Fraction]:
    given = (1, features, features) if parts is None else parts
    try:
        count, mean, deviation = (positive(exact(part, "parts"), "parts") for part in given)
    except (TypeError, ValueError):
        raise InvalidParameter(
            "parts", str(parts), "are not three numbers above 0", hint="such as (1, 2, 2)"
        ) from None
    return count, mean, deviation


def _labels(classes: Any, y: Any) -> tuple[Any, Int64[np.ndarray, " records"]]:
    """Return the sorted classes, and the index of every record's class."""
    if classes is None:
        known, labels = np.unique(y, return_inverse=True)
        return known, labels.astype(np.int64)
    known = np.unique(np.asarray(classes))
    if np.ndim(classes) != 1 or not len(known):
        raise InvalidParameter("classes", None, "are not a list of labels", hint="such as ['no', 'yes']")
    if not np.isin(y, known).all():
        raise InvalidParameter(
            "classes", None, "lack the label of some record", hint="list all, or leave such records out"
        )
    return known, np.searchsorted(known, y).astype(np.int64)


def _bits(random_state: Any) -> BitSource:
    if random_state is None:
        return SecureBits()
    if isinstance(random_state, BitSource):
        return random_state
    try:
        return SeededBits(index(random_state))
    except TypeError:
        raise InvalidParameter(
            "random_state",
            type(random_state).__name__,
            "is not None, a whole number or a source of bits",
            hint="leave it out for a model that is to be published",
        ) from None

"""Expected error of a scalar mechanism, computed from its distribution: no draws and no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.core.array_types import Float64
from dpveil.core.rationals import Number, exact
from dpveil.core.registry import SCALAR
from dpveil.errors import InvalidParameter, NoiseError, UnknownName, UsageError
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY_DATABASE, DATABASE_RECORD
from dpveil.mechanisms.scalar.lattice import Lattice, coarsest

Floats = Float64[np.ndarray, "..."]
Loss = Callable[[Floats, Floats], Floats]


def absolute(answers: Floats, guesses: Floats) -> Floats:
    """Return |f - f'|. Source: Croft thesis 5.78."""
    return np.asarray(np.abs(answers - guesses))


def loss_of_answers(
    matrix: Any, responses: Any, answers: Any, loss: Loss = absolute
) -> Float64[np.ndarray, " answers"]:
    table, shown, given = _check_table(matrix, responses, answers)
    return np.asarray((table * loss(given[None, :], shown[:, None])).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Remapping:
    """The best guess of a Bayesian user for each response, and the mean loss that remains."""

    guesses: Float64[np.ndarray, " responses"]
    loss: float


def remap(matrix: Any, responses: Any, answers: Any, prior: Any = None, loss: Loss = absolute) -> Remapping:
    """Return for every response the answer of least expected posterior loss, and that loss overall.

    Of equally good answers the lowest is guessed; a response of probability 0 is mapped to its nearest
    answer. The loss is Σ_r min_f Σ_f' P(f') P(r|f') Loss(f', f). Croft thesis 5.77 multiplies by P(r) once
    more, which P(f') P(r|f') already contains. Source: Croft thesis 5.77 to 5.79, corrected.

    >>> found = remap([[0.6, 0.5], [0.4, 0.5]], [0, 1], [0, 1])
    >>> found.guesses.tolist(), round(found.loss, 3)
    ([0.0, 1.0], 0.45)
    """
    table, shown, given = _check_table(matrix, responses, answers)
    joint = table * _prior(prior, len(given))[None, :]
    losses = joint @ loss(given[:, None], given[None, :])
    best = losses.argmin(axis=1)
    nearest = np.abs(shown[:, None] - given[None, :]).argmin(axis=1)
    guesses = given[np.where(joint.max(axis=1) > 0, best, nearest)]
    return Remapping(guesses=guesses, loss=float(losses.min(axis=1).sum()))


def _prior(prior: Any, count: int) -> Float64[np.ndarray, " answers"]:
    if prior is None:
        return np.full(count, 1 / count)
    weights = np.asarray(prior, np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() <= 0:
        raise InvalidParameter("prior", str(weights.shape), f"is not {count} chances", hint="one per answer")
    return np.asarray(weights / weights.sum())


def _check_table(matrix: Any, responses: Any, answers: Any) -> tuple[Floats, Floats, Floats]:
    table = np.asarray(matrix, np.float64)
    shown, given = (np.asarray(values, np.float64).ravel() for values in (responses, answers))
    if table.shape != (len(shown), len(given)) or not table.size:
        raise InvalidParameter(
            "matrix",
            str(table.shape),
            f"does not have {len(shown)} responses and {len(given)} answers",
            hint="rows are responses, columns answers",
        )
    return table, shown, given


MOST_COMPARED: Final = 128  # whole answers up to which all are compared; of more, `FEW` over the range
MANY: Final = 37  # answers compared that are not whole, on a range of at most `FINE` ΔF
FEW: Final = 13  # answers compared on larger ranges
FINE: Final = 512  # width of a range in ΔF up to which `MANY` answers are compared
REACH: Final = 60  # distance in noise scales up to which responses are distinguished
TICKS: Final = 300  # intervals on each side of the answer in which responses of a large lattice are summed


@dataclass(frozen=True)
class Utility:
    """Expected absolute errors, in the units of the answer.

    `mean` is the average over the answers, `worst` the largest for any of them, and `remapped` the average
    after every response is replaced by a Bayesian user's best guess (Croft thesis 5.75 to 5.79, absolute
    loss, equally likely answers). Remapping is post-processing. `remapped` is None unless all possible
    answers were given.
    """

    mean: float
    worst: float
    remapped: float | None


def utility(mechanism: ScalarMechanism, answers: Sequence[Fraction], *, remapping: bool = True) -> Utility:
    """Return the expected absolute errors of a mechanism over these answers of its range.

    `remapping` also computes the error after remapping; it is meaningful if these are all possible answers.
    Finite distributions are summed over every response. Others are summed over some 600 intervals around the
    answer, each represented by its midpoint, with an error below one per cent.

    >>> from dpveil.mechanisms.scalar import Geometric
    >>> one = utility(Geometric(range=(0, 1), sensitivity=1, epsilon=1), [Fraction(0), Fraction(1)])
    >>> round(one.mean, 4), round(one.worst, 4)
    (0.2689, 0.2689)
    """
    ordered = sorted(answers)
    if mechanism.integers is None:
        errors = np.array([_sample_error(mechanism, answer) for answer in ordered])
        return Utility(float(errors.mean()), float(errors.max()), None)
    points = [mechanism.lattice.origin + int(p) * mechanism.lattice.step for p in mechanism.lattice.points]
    matrix = mechanism.matrix(responses=points, answers=ordered)
    places = np.array([float(answer) for answer in ordered])
    shown = np.array([float(point) for point in points])
    errors = loss_of_answers(matrix, shown, places)
    remapped = remap(matrix, shown, places).loss if remapping else None
    return Utility(float(errors.mean()), float(errors.max()), remapped)


def _sample_error(mechanism: ScalarMechanism, answer: Fraction) -> float:
    """Return the expected error of one answer on a lattice too large to sum over."""
    lattice = mechanism.lattice
    start = int(lattice.index(answer)[0])
    scale = float(2 * mechanism.sensitivity / mechanism.epsilon / lattice.step)
    away = np.rint(scale * np.expm1(np.linspace(0, np.log1p(REACH), TICKS))).astype(np.int64)
    near = np.unique(np.concatenate([start - away, start + away]))
    points = near[lattice.is_allowed(near)]
    middles = points[:-1] + (np.diff(points) + 1) // 2  # as in `matrix`, a midpoint belongs to the upper one
    masses = mechanism._masses(start, np.array([-np.inf, *middles, np.inf]))
    off = float(lattice.origin + start * lattice.step - answer)
    return float(masses @ np.abs((points - start) * float(lattice.step) + off))


def answers_of(allowed: Range, sensitivity: Fraction, *, whole: bool) -> list[Fraction]:
    """Return the public answers over which errors are compared; none depends on data.

    `whole` answers lie on the coarsest lattice, such as counts: all of them, or some spread over a large
    range. Others are spread evenly over the range and modulo ΔF, so that no mechanism's lattice has an
    advantage. On a range with one end they lie within about ten ΔF of it; without ends, near 0 and gaps.

    >>> [str(answer) for answer in answers_of(Range(0, 3), Fraction(1), whole=True)]
    ['0', '1', '2', '3']
    """
    if allowed.low is None or allowed.high is None:
        return _from_the_end(allowed, sensitivity, whole=whole)
    low, width = allowed.low, allowed.high - allowed.low
    count = MANY if width <= FINE * sensitivity else FEW
    if not whole:
        part = width / count
        spread = [low + part * k + min(part, sensitivity) * _golden(k) for k in range(count)]
        return [answer for answer in spread if answer in allowed]
    grid = Lattice(allowed, coarsest(allowed, sensitivity), sensitivity)
    if (grid.size or 0) <= MOST_COMPARED:
        return [grid.origin + int(point) * grid.step for point in grid.points]
    last = int(width / grid.step)
    near = [low + (k * last // (FEW - 1)) * grid.step for k in range(FEW)]
    return [answer for answer in near if answer in allowed]


def _from_the_end(allowed: Range, sensitivity: Fraction, *, whole: bool) -> list[Fraction]:
    """Return answers for a range without a lower or upper end; see `answers_of`."""
    if allowed.low is None and allowed.high is None:
        near = [Fraction(0), *(edge for gap in allowed.gaps for edge in gap)]
        moved = [answer + sensitivity * _golden(k) for k, answer in enumerate(near)]
        found = [answer for answer in moved if answer in allowed]
        return near if whole or not found else sorted(found)
    end = allowed.low if allowed.low is not None else allowed.high
    towards = 1 if allowed.low is not None else -1
    steps = [k + (0 if whole else _golden(i)) for i, k in enumerate((0, 0, 1, 2, 5, 10))]
    found = [(end or Fraction(0)) + towards * sensitivity * step for step in steps]
    return sorted({answer for answer in found if answer in allowed})


def _golden(k: int) -> Fraction:
    """Return the fractional part of (k + 1) golden ratios: for k = 0, 1, ... evenly spread over [0, 1)."""
    return Fraction((k + 1) * 61803398875 % 10**11, 10**11)


SLOW: Final = ("linear-program-1", "linear-program-2")
FEW_POINTS: Final = 64  # largest lattice on which a slow mechanism is tried without being asked for by name


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a query: with its expected errors, or with the `reason` why it does not fit."""

    name: str
    epsilon: Fraction
    mechanism: ScalarMechanism | None = None
    utility: Utility | None = None
    reason: str = ""


def build(name: str, **query: Any) -> ScalarMechanism:
    """Return the scalar mechanism of that name for a query. Raises `UnknownName` and `InvalidParameter`.

    >>> build("geometric", range="0:5", sensitivity=1, epsilon=1).name
    'geometric'
    """
    if name not in SCALAR:
        raise UnknownName("mechanism", name, SCALAR)
    made: ScalarMechanism = SCALAR[name](**query)
    return made


def candidates(
    *,
    range: Any,  # noqa: A002  the query's own word
    sensitivity: Number,
    epsilon: Number,
    relation: str = DATABASE_RECORD,
    step: Number | None = None,
    whole: bool = True,
    answers: Sequence[Number] | None = None,
    names: Sequence[str] | None = None,
) -> list[Candidate]:
    """Return every mechanism for a query by rising expected error, and last those that do not fit.

    A mechanism for any-database also satisfies database-record. Expected errors are over equally likely
    answers: those given, else integers on the coarsest lattice if `whole` (such as counts), else numbers
    spread over the range. No data are read. Raises `InvalidParameter` if the query itself is wrong, and
    `UnknownName`.

    >>> best, *_ = candidates(range=(0, 3), sensitivity=1, epsilon=1, names=["uniform", "geometric"])
    >>> best.name, round(best.utility.mean, 3)
    ('geometric', 0.521)
    """
    # Any mechanism reports what is wrong with the query itself.
    base = build("laplace", range=range, sensitivity=sensitivity, epsilon=epsilon, step=step)
    allowed, moved = base.range, base.sensitivity
    query = {"range": allowed, "sensitivity": moved, "epsilon": base.epsilon, "step": base.step}
    if relation not in (ANY_DATABASE, DATABASE_RECORD):
        raise InvalidParameter(
            "relation", relation, "is unknown", hint=f"choose {DATABASE_RECORD} or {ANY_DATABASE}"
        )
    if answers is None:
        asked = answers_of(allowed, moved, whole=whole)
    else:
        asked = [exact(answer, "answers") for answer in answers]
        outside = next((answer for answer in asked if answer not in allowed), None)
        if outside is not None or not asked:
            raise InvalidParameter("answers", outside, f"are not all in the range {allowed}")
    every = answers is not None or (whole and len(asked) <= MOST_COMPARED and _points(query) == len(asked))
    found = [_candidate(name, query, relation, asked, names, remap=every) for name in names or SCALAR]

    def rank(one: Candidate) -> tuple[bool, float, bool]:
        # `geometric` before `laplace` where the two are the same law
        return one.utility is None, one.utility.mean if one.utility else 0, one.name != "geometric"

    return sorted(found, key=rank)


def _candidate(
    name: str,
    query: dict[str, Any],
    relation: str,
    asked: Sequence[Fraction],
    names: Sequence[str] | None,
    *,
    remap: bool,
) -> Candidate:
    budget = query["epsilon"]
    kind = SCALAR.get(name)
    if kind is None:
        raise UnknownName("mechanism", name, SCALAR)
    held = relation if relation in kind.relations else ANY_DATABASE
    if held not in kind.relations:
        return Candidate(name, budget, reason=f"does not keep {relation}")
    try:
        if names is None and name in SLOW and _points(query) > FEW_POINTS:
            return Candidate(
                name, budget, reason=f"takes long for {_points(query)} points: ask for it by name"
            )
        mechanism = kind(**query, relation=held)
        mechanism.prepare()
        return Candidate(name, budget, mechanism, utility(mechanism, asked, remapping=remap))
    except (UsageError, NoiseError) as error:
        return Candidate(name, budget, reason=error.message)


def _points(query: dict[str, Any]) -> int:
    """Return the number of points of the query's lattice, or 0 for a range without an end."""
    step = query["step"] or coarsest(query["range"], query["sensitivity"])
    width = query["range"].width
    return 0 if width is None else int(width / exact(step)) + 1


def choose(**query: Any) -> ScalarMechanism:
    """Return the mechanism with the least expected absolute error for a query, given as to `candidates`.

    The choice depends only on public facts, so it costs no privacy. Raises `InvalidParameter` if none fits.
    """
    best = candidates(**query)[0]
    if best.mechanism is None:
        raise InvalidParameter("range", str(query["range"]), "fits no mechanism", hint=best.reason)
    return best.mechanism

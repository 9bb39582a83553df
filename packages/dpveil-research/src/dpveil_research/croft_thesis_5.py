"""Croft's thesis, figures 5.4 to 5.14: range-adherent mechanisms by database size, categories, ε and range.

Expected losses are sums over the mechanism matrix (5.75 to 5.79); only the survey is drawn. Where the text
does not give the values of an axis, they are ours. The linear programs are solved in floating point and not
repaired: for comparing errors, not for releases. By symmetry only half of their entries are variables, which
changes no optimum: the mean of a solution and its mirror image is a solution as well. The survey stands in
place of the thesis's census file, which may not be redistributed: its means are those that the thesis gives,
family size 2.02 from 1 to 7 and 2.27 of 10 people with a degree, and its people are independent. Who has the
file gives it as CSV.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import exp
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from dpveil.errors import DPVeilError, UsageError
from dpveil.mechanisms.scalar import (
    ExplicitFair,
    Geometric,
    Laplace,
    Staircase,
    TruncatedLaplace,
)
from dpveil.noise.bits import SeededBits
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_mean, estimate, to_csv

POWERS: Final = {"error": (1, False), "bayes": (1, True), "squared": (2, False), "bayes_squared": (2, True)}
"""By measure: the power of the loss, and whether responses are remapped first."""
Floats = Float64[np.ndarray, "..."]
DIGITS: Final = 12  # decimals in which posterior losses are compared


@dataclass(frozen=True)
class Tabled:
    """A mechanism matrix with the numbers of its rows and columns; every column sums to 1."""

    answers: Floats
    responses: Floats
    matrix: Float64[np.ndarray, "responses answers"]

    def by_answer(self, measure: str) -> Float64[np.ndarray, " answers"]:
        """Return the expected loss of every true answer.

        A Bayesian user with a uniform prior reports the answer of least expected posterior loss; of several,
        the one nearest the response (the text leaves this open).
        """
        power, remapped = POWERS[measure]
        shown = self.answers[self._guesses(power)] if remapped else self.responses
        loss = np.abs(np.subtract.outer(shown, self.answers)) ** power
        found: Float64[np.ndarray, " answers"] = (self.matrix * loss).sum(axis=0)
        return found

    def expected(self, measure: str) -> float:
        return float(self.by_answer(measure).mean())

    def _guesses(self, power: int) -> Int64[np.ndarray, " responses"]:
        loss = np.abs(np.subtract.outer(self.answers, self.answers)) ** power
        likely = np.maximum(self.matrix.sum(axis=1, keepdims=True), 10.0**-DIGITS)
        costs = np.round(self.matrix @ loss / likely, DIGITS - 2)
        ties = costs == costs.min(axis=1, keepdims=True)
        far = np.abs(np.subtract.outer(self.responses, self.answers))
        guesses: Int64[np.ndarray, " responses"] = np.where(ties, far, np.inf).argmin(axis=1)
        return guesses

    def at(self, truths: Float64[np.ndarray, " n"], measure: str) -> Float64[np.ndarray, " n"]:
        places = np.abs(np.subtract.outer(truths, self.answers)).argmin(axis=1)
        found: Float64[np.ndarray, " n"] = self.by_answer(measure)[places]
        return found


def _interval(losses: Float64[np.ndarray, " n"]) -> tuple[float, float, float]:
    return clustered_mean(losses, [str(i) for i in range(len(losses))])


class _Program:
    """Rows of `weights · entries ≤ 0`, in the order in which they are added."""

    def __init__(self, responses: int, answers: int) -> None:
        flat = np.arange(responses * answers).reshape(responses, answers)
        _, inverse = np.unique(np.minimum(flat, flat[::-1, ::-1]), return_inverse=True)
        self.entry: Any = inverse.reshape(responses, answers)
        self.rows: list[Any] = []

    def below(self, one: Any, other: Any, factor: float = 1) -> None:
        """Add one ≤ factor · other, entry by entry."""
        one, other = np.ravel(one), np.ravel(other)
        self.rows.append(np.stack([one, other, np.full(one.size, factor)], axis=1))

    def matrix(self) -> Any:
        rows = np.unique(np.concatenate(self.rows), axis=0)
        place = np.arange(len(rows))
        values = np.concatenate([np.ones(len(rows)), -rows[:, 2]])
        columns = rows[:, :2].T.reshape(-1).astype(int)
        return csr_matrix((values, (np.tile(place, 2), columns)), (len(rows), int(self.entry.max()) + 1))


def optimum(
    answers: Floats, responses: Floats, reach: int, epsilon: float, *, fair: bool = False
) -> Float64[np.ndarray, "responses answers"]:
    """Return the matrix of least expected absolute error: variant 1, or with `fair` variant 2.

    `answers` and `responses` are sorted and symmetric about one centre; one record moves the answer by at
    most `reach` of them. Variant 2 has monotone rows and columns, and the same probability of every true
    answer. Raises `DPVeilError` if the solver fails. Source: Croft thesis 5.52, 5.56 to 5.63 and 5.67.
    """
    program = _Program(len(responses), len(answers))
    entry = program.entry
    for d in range(1, min(reach, len(answers) - 1) + 1):
        program.below(entry[:, d:], entry[:, :-d], exp(epsilon))
        program.below(entry[:, :-d], entry[:, d:], exp(epsilon))
    if fair:
        _monotone(program, answers, responses)
    cost = np.bincount(
        entry.ravel(), np.abs(np.subtract.outer(responses, answers)).ravel(), int(entry.max()) + 1
    )
    equal, totals = _equalities(program, answers, responses, fair=fair)
    limits = program.matrix()
    found = linprog(cost, limits, np.zeros(limits.shape[0]), equal, totals, method="highs-ipm")
    if found.status != 0:
        raise DPVeilError(f"the linear program was not solved: {found.message}")
    entries = np.maximum(found.x, 0)[entry]
    solved: Float64[np.ndarray, "responses answers"] = entries / entries.sum(axis=0)
    return solved


def _own(answers: Floats, responses: Floats) -> Any:
    return np.abs(np.subtract.outer(answers, responses)).argmin(axis=1)


def _monotone(program: _Program, answers: Floats, responses: Floats) -> None:
    """Add constraints: probabilities fall away from the response in rows, and from the answer in columns."""
    entry, half = program.entry, float(responses[1] - responses[0]) / 2
    for i, response in enumerate(responses):
        rising = np.flatnonzero(answers[1:] <= response + half)
        falling = np.flatnonzero(answers[:-1] >= response - half)
        program.below(entry[i, rising], entry[i, rising + 1])
        program.below(entry[i, falling + 1], entry[i, falling])
    for j, own in enumerate(_own(answers, responses)):
        program.below(entry[:own, j], entry[1 : own + 1, j])
        program.below(entry[own + 1 :, j], entry[own:-1, j])


def _equalities(program: _Program, answers: Floats, responses: Floats, *, fair: bool) -> tuple[Any, Any]:
    """Return the constraints that columns sum to 1, and with `fair` that all true answers are equally
    probable.
    """
    entry, half = program.entry, (len(answers) + 1) // 2
    rows = np.repeat(np.arange(half), len(responses))
    columns, values = entry[:, :half].T.ravel(), np.ones(half * len(responses))
    totals = np.ones(half)
    if fair and half > 1:
        true = entry[_own(answers, responses)[:half], np.arange(half)]
        more = np.arange(half, 2 * half - 1)
        rows = np.concatenate([rows, more, more])
        columns = np.concatenate([columns, np.repeat(true[:1], half - 1), true[1:]])
        values = np.concatenate([values, np.ones(half - 1), -np.ones(half - 1)])
        totals = np.concatenate([totals, np.zeros(half - 1)])
    return csr_matrix((values, (rows, columns)), (len(totals), int(entry.max()) + 1)), totals


FINE: Final = 45  # lattice points per response category, for mechanisms with continuous responses


@dataclass(frozen=True)
class Query:
    """A query with `size` possible answers low, low + spacing, ...; one record moves it by at most `reach` of
    them.
    """

    name: str
    low: int
    spacing: Fraction
    size: int
    reach: int

    @property
    def high(self) -> Fraction:
        return self.low + (self.size - 1) * self.spacing

    @property
    def answers(self) -> list[Fraction]:
        return [self.low + i * self.spacing for i in range(self.size)]


def mean(records: int, low: int = 0, high: int = 4) -> Query:
    """Return the query for the mean of integers from low to high: answers are 1/records apart."""
    return Query("mean", low, Fraction(1, records), (high - low) * records + 1, high - low)


def count(records: int) -> Query:
    """Return the query for the number of records with an attribute."""
    return Query("count", 0, Fraction(1), records + 1, 1)


LAPLACE, STAIRCASE = "Laplace, snapped", "staircase, snapped"
TRUNCATED, RECORD = "normalised Laplace, 2ΔF/ε", "normalised Laplace, one record (ours)"
GEOMETRIC, FAIR = "geometric, snapped", "explicit fair"
FIRST, SECOND = "linear program, variant 1", "linear program, variant 2"
UNIFORM: Final = "uniform"

Make = Callable[..., Any]
CONTINUOUS: Final[dict[str, Make]] = {
    LAPLACE: Laplace,
    STAIRCASE: Staircase,
    TRUNCATED: lambda **query: TruncatedLaplace(**query, relation="any-database"),
    RECORD: lambda **query: TruncatedLaplace(**query, relation="database-record"),
}
DISCRETE: Final[dict[str, Make]] = {
    GEOMETRIC: Geometric,
    FAIR: ExplicitFair,
}


@lru_cache(maxsize=4096)
def tabled(
    query: Query,
    series: str,
    epsilon: str,
    factor: Fraction = Fraction(1),
    *,
    inside: bool = False,
    wide: bool = False,
) -> Tabled:
    """Return a mechanism's matrix: `factor` widens response categories, `wide` uses 300 % of the range.

    Categories are centred on low + factor·spacing·i, the first and last on the ends of the range, or with
    `inside` lie side by side within it. A response midway between two counts half for each.
    """
    low, high = query.low, query.high
    if wide:
        low, high = low - (high - query.low), high + (high - query.low)  # type: ignore[assignment]
    width = query.spacing * factor
    first = low + width / 2 if inside else Fraction(low)
    centres = [first + i * width for i in range(int((high - first) / width) + 1)]
    answers, responses = _floats(query.answers), _floats(centres)
    if series == UNIFORM:
        matrix = np.full((len(centres), query.size), 1 / len(centres))
    elif series in (FIRST, SECOND):
        matrix = optimum(answers, responses, query.reach, float(epsilon), fair=series == SECOND)
    else:
        common = {"range": (low, high), "sensitivity": query.reach * query.spacing, "epsilon": epsilon}
        if series in CONTINUOUS:
            mechanism = CONTINUOUS[series](**common, step=query.spacing / FINE)
        else:
            mechanism = DISCRETE[series](**common, step=query.spacing)
        found = mechanism.matrix(centres, query.answers)
        matrix = (found + found[::-1, ::-1]) / 2
    return Tabled(answers, responses, matrix)


def _floats(numbers: list[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])


GROUPS: Final = 2000
PEOPLE: Final = 10
FAMILIES: Final = (424, 328, 118, 85, 29, 10, 6)
"""Families of size 1, 2, ..., 7 per thousand; the mean is 2.021."""
DEGREES: Final = 227  # people with a degree per thousand


def groups(seed: int) -> tuple[Float64[np.ndarray, " groups"], Float64[np.ndarray, " groups"]]:
    """Return the mean family size and the number of degrees of every group of ten."""
    words = SeededBits(seed).words(2 * GROUPS * PEOPLE).reshape(2, GROUPS, PEOPLE) % np.uint64(1000)
    sizes = 1 + np.searchsorted(np.cumsum(FAMILIES), words[0], side="right")
    degrees = words[1] < DEGREES
    return sizes.mean(axis=1), degrees.sum(axis=1).astype(np.float64)


SEED: Final = 2011
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2")
BUDGETS: Final = ("0.2", "0.5")
SIZES: Final = {"mean": (2, 3, 4, 6, 8, 10, 12, 16, 20), "count": (2, 3, 4, 6, 8, 10, 15, 20, 30, 50)}
FACTORS: Final = ("1/2", "1", "2", "5", "10", "20")
SMALL: Final = 10
QUERIES: Final = {"mean": mean, "count": count}
SERIES: Final = {
    "mean": (LAPLACE, STAIRCASE, TRUNCATED, RECORD, FIRST, SECOND, UNIFORM),
    "count": (GEOMETRIC, FAIR, FIRST, SECOND, UNIFORM),
}
WIDE: Final = {
    "mean": (STAIRCASE, LAPLACE, TRUNCATED, FIRST, SECOND),
    "count": (GEOMETRIC, FIRST, SECOND),
}
CONTRASTS: Final = {
    "mean": ((SECOND, FIRST), (STAIRCASE, FIRST), (STAIRCASE, SECOND)),
    "count": ((SECOND, FIRST), (GEOMETRIC, FIRST), (GEOMETRIC, SECOND)),
}
BY_SIZE, BY_EPSILON, EXTENDED, SURVEY = "database size", "expected utility", "extended range", "survey"
BY_FACTOR: Final = "discretisation"
TITLES: Final = {"at the ends": "centred on the ends of the range", "within": "within the range"}
"""Where the outermost categories are: both are plausible."""
COLOUR: Final = {
    LAPLACE: 0,
    GEOMETRIC: 0,
    STAIRCASE: 2,
    FAIR: 2,
    TRUNCATED: 3,
    RECORD: 6,
    FIRST: 1,
    SECOND: 4,
    UNIFORM: 5,
}


def by_size() -> Iterable[Row]:
    """Yield the rows of figures 5.4 to 5.7: losses by the number of records."""
    for query, sizes in SIZES.items():
        for epsilon, size, series in product(BUDGETS, sizes, SERIES[query]):
            table = tabled(QUERIES[query](size), series, epsilon)
            yield row(f"{BY_SIZE}, {query}, ε = {epsilon}", series, str(size), table)


def by_factor() -> Iterable[Row]:
    """Yield the rows of figure 5.8: losses by ε, at several sizes of response categories, placed in two
    ways.
    """
    for place, factor, series, epsilon in product(TITLES, FACTORS, (LAPLACE, FIRST, UNIFORM), EPSILONS):
        table = tabled(mean(SMALL), series, epsilon, Fraction(factor), inside=place == "within")
        yield row(f"{BY_FACTOR} {place}, {series}", f"× {factor}", epsilon, table)


def by_epsilon() -> Iterable[Row]:
    """Yield the rows of figures 5.9 to 5.12: losses by ε, within the range and on three times the range."""
    for name, query in (("mean", mean(SMALL)), ("count", count(SMALL))):
        for epsilon in EPSILONS:
            for series in SERIES[name]:
                yield row(f"{BY_EPSILON}, {name}", series, epsilon, tabled(query, series, epsilon))
            for series in WIDE[name]:
                table = tabled(query, series, epsilon, wide=True)
                yield row(f"{EXTENDED}, {name}", f"{series} (ext)", epsilon, table)


COLUMNS: Final = ("family_size", "degree")
"""Columns of a census file in CSV: family size from 1 to 7, and whether somebody has a degree, 0 or 1."""
Surveys = tuple[tuple[str, Query, Floats], ...]


def census(path: Path) -> tuple[Floats, Floats]:
    """Return mean family size and number of degrees of groups of ten people, in the order of a census file.

    Its last records are left out if they make no group. Raises `UsageError` for another file.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = np.array([[int(row[name]) for name in COLUMNS] for row in csv.DictReader(file)])
    except (OSError, ValueError, TypeError, KeyError, csv.Error) as error:
        problem = f"{path} is no CSV of whole numbers with the columns {', '.join(COLUMNS)}"
        raise UsageError(problem, hint="write it from your copy of the census file") from error
    whole = len(rows) // PEOPLE * PEOPLE
    if whole < 2 * PEOPLE or rows.min() < 0 or not ((rows >= (1, 0)) & (rows <= (7, 1))).all():
        problem = f"{path} has not two groups of ten people with families of 1 to 7 and degrees of 0 or 1"
        raise UsageError(problem, hint="7 stands for 7 or more, and 1 for a degree")
    sizes, degrees = rows[:whole].reshape(-1, PEOPLE, 2).astype(np.float64).transpose(2, 0, 1)
    return sizes.mean(axis=1), degrees.sum(axis=1)


def surveys(own: Path | None = None) -> Surveys:
    """Return name, query and true answers for both queries about the survey's groups, or a census file's."""
    sizes, degrees = groups(SEED) if own is None else census(own)
    return ("mean", mean(PEOPLE, 1, 7), sizes), ("count", count(PEOPLE), degrees)


def by_survey(those: Surveys) -> Iterable[Row]:
    """Yield the rows of figures 5.13 and 5.14: losses by ε on groups of ten people."""
    for name, query, truths in those:
        for epsilon, series in product(EPSILONS, SERIES[name]):
            losses = tabled(query, series, epsilon)
            found = {measure: _interval(losses.at(truths, measure)) for measure in POWERS}
            yield _row(f"{SURVEY}, {name}", series, epsilon, found)


def differences(those: Surveys) -> list[Row]:
    """Return differences of expected losses on the same groups of the survey, with their intervals.

    Four decimals: smaller differences are rounding of integer weights and of the solver.
    """
    found = []
    for name, query, truths in those:
        for (first, second), epsilon in product(CONTRASTS[name], EPSILONS):
            both = [tabled(query, series, epsilon) for series in (first, second)]
            apart = {m: np.subtract(*(one.at(truths, m) for one in both)) for m in POWERS}
            values = {m: _interval(losses) for m, losses in apart.items()}
            found.append(_row(f"{SURVEY}, {name}", f"{first} - {second}", epsilon, values, ".4f"))
    return found


def row(sweep: str, series: str, x: str, table: Tabled) -> Row:
    """Return all losses for equally likely answers, which are exact, so intervals have no width."""
    return _row(sweep, series, x, {measure: (table.expected(measure),) * 3 for measure in POWERS})


def _row(
    sweep: str, series: str, x: str, found: dict[str, tuple[float, float, float]], form: str = ".6g"
) -> Row:
    made = {"sweep": sweep, "series": series, "x": x}
    for measure, numbers in found.items():
        made |= estimate(measure, numbers, form)
    return made


def _pair(
    title: str, xlabel: str, series: Iterable[str], rows: Sequence[Row], wide: Sequence[str] = ()
) -> bytes:
    """Return a figure of both measures; `wide` series are broken lines of three times the range."""
    panels = [
        Panel(measure, xlabel, label, logx=xlabel == "ε")
        for measure, label in (("error", "at face value"), ("bayes", "Bayesian user"))
    ]
    for panel in panels:
        for name in series:
            panel.curve(name, rows, COLOUR[name], ":" if name == UNIFORM else "-")
        for name in wide:
            panel.curve(f"{name} (ext)", rows, COLOUR[name], "--")
    return figure(title, *panels, same=True)


def figures(rows: Sequence[Row], survey: str, whole: bool) -> dict[str, bytes]:
    """Return all figures, numbered as in the thesis, or without `whole` those of the survey alone."""

    def of(*sweeps: str) -> list[Row]:
        return [row for row in rows if row["sweep"] in sweeps]

    made: dict[int | str, bytes] = {}
    for number, (name, epsilon) in enumerate(product(SIZES, BUDGETS) if whole else (), 4):
        own = of(f"{BY_SIZE}, {name}, ε = {epsilon}")
        made[number] = _pair(f"Figure 5.{number}: {name} query, ε = {epsilon}", "records", SERIES[name], own)
    for letter, (place, words) in zip("ab", TITLES.items(), strict=True) if whole else ():
        panels = []
        for series in (LAPLACE, FIRST, UNIFORM):
            panels.append(Panel("error", "ε", series, logx=True))
            for factor in FACTORS:
                panels[-1].curve(f"× {factor}", of(f"{BY_FACTOR} {place}, {series}"))
        title = f"Figure 5.8: mean query, size of response categories, the outermost {words}"
        made[f"8{letter}"] = figure(title, *panels, same=True)
    for number, (name, shown, more) in enumerate(
        (("mean", (STAIRCASE, TRUNCATED, FIRST), ()), ("count", (GEOMETRIC, FIRST), (FAIR,)))
        if whole
        else (),
        9,
    ):
        title, within = f"{name} query of {SMALL} records", f"{BY_EPSILON}, {name}"
        made[number] = _pair(f"Figure 5.{number}: {title}", "ε", SERIES[name], of(within))
        title, both = f"{title}, range of 300 %", of(within, f"{EXTENDED}, {name}")
        made[number + 2] = _pair(f"Figure 5.{number + 2}: {title}", "ε", (*shown, *more), both, shown)
    for number, name, label in ((13, "mean", "mean family size"), (14, "count", "people with a degree")):
        title = f"Figure 5.{number}: {label}, {survey}"
        made[number] = _pair(title, "ε", SERIES[name], of(f"{SURVEY}, {name}"))
    return {f"figure-5-{number}.png": plot for number, plot in made.items()}


def make(own: Path | None = None) -> dict[str, bytes]:
    """Return every file of the experiment by its name: two tables and a plot per figure.

    `own` is a census file: then figures 5.13 and 5.14 alone are made, of its people. Raises `UsageError`.
    """
    those = surveys(own)
    rows = [] if own else [one for sweep in (by_size, by_factor, by_epsilon) for one in sweep()]
    rows += by_survey(those)
    plots = figures(rows, own.name if own else "made-up survey", own is None)
    return {"results.csv": to_csv(rows), "differences.csv": to_csv(differences(those)), **plots}

"""Croft's thesis, figures 5.4 to 5.14: range-adherent mechanisms by database size, categories, ε and range.

Expected losses are sums over the mechanism matrix; only the survey is drawn. Where the text does not give the
values of an axis, they are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from dpveil_research.losses import POWERS, Floats, Tabled
from dpveil_research.plots import Figure, Line, Panel, draw
from dpveil_research.queries import (
    EXPONENTIAL,
    FAIR,
    FIRST,
    GEOMETRIC,
    LAPLACE,
    PERMUTE,
    RECORD,
    SECOND,
    STAIRCASE,
    TRUNCATED,
    UNIFORM,
    Query,
    count,
    mean,
    tabled,
)
from dpveil_research.results import Row, estimate, to_csv
from dpveil_research.survey import PEOPLE, groups

SEED: Final = 2011
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2")
BUDGETS: Final = ("0.2", "0.5")
SIZES: Final = {"mean": (2, 3, 4, 6, 8, 10, 12, 16, 20), "count": (2, 3, 4, 6, 8, 10, 15, 20, 30, 50)}
FACTORS: Final = ("1/2", "1", "2", "5", "10", "20")
SMALL: Final = 10
QUERIES: Final = {"mean": mean, "count": count}
SERIES: Final = {
    "mean": (LAPLACE, STAIRCASE, TRUNCATED, RECORD, FIRST, SECOND, UNIFORM),
    "count": (GEOMETRIC, FAIR, EXPONENTIAL, PERMUTE, FIRST, SECOND, UNIFORM),
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
PLACES: Final = {"at the ends": False, "within": True}
"""Whether the outermost categories are centred on the ends of the range, or end there: both are plausible."""
TITLES: Final = {"at the ends": "centred on the ends of the range", "within": "within the range"}
COLOUR: Final = {
    LAPLACE: 0,
    GEOMETRIC: 0,
    STAIRCASE: 2,
    FAIR: 2,
    TRUNCATED: 3,
    EXPONENTIAL: 3,
    RECORD: 6,
    PERMUTE: 6,
    FIRST: 1,
    SECOND: 4,
    UNIFORM: 5,
}


def extended(series: str) -> str:
    """Return the name of a series on three times the range."""
    return f"{series} (ext)"


def by_size() -> Iterable[Row]:
    """Yield the rows of figures 5.4 to 5.7: losses by the number of records."""
    for query, sizes in SIZES.items():
        for epsilon in BUDGETS:
            for size in sizes:
                for series in SERIES[query]:
                    table = tabled(QUERIES[query](size), series, epsilon)
                    yield row(f"{BY_SIZE}, {query}, ε = {epsilon}", series, str(size), table)


def by_factor() -> Iterable[Row]:
    """Yield the rows of figure 5.8: losses by ε, at several sizes of response categories, placed in two
    ways.
    """
    for place, inside in PLACES.items():
        for factor in FACTORS:
            for series in (LAPLACE, FIRST, UNIFORM):
                for epsilon in EPSILONS:
                    table = tabled(mean(SMALL), series, epsilon, Fraction(factor), inside=inside)
                    yield row(f"{BY_FACTOR} {place}, {series}", f"× {factor}", epsilon, table)


def by_epsilon() -> Iterable[Row]:
    """Yield the rows of figures 5.9 to 5.12: losses by ε, within the range and on three times the range."""
    for name, query in (("mean", mean(SMALL)), ("count", count(SMALL))):
        for epsilon in EPSILONS:
            for series in SERIES[name]:
                yield row(f"{BY_EPSILON}, {name}", series, epsilon, tabled(query, series, epsilon))
            for series in WIDE[name]:
                table = tabled(query, series, epsilon, wide=True)
                yield row(f"{EXTENDED}, {name}", extended(series), epsilon, table)


def surveys() -> tuple[tuple[str, Query, Floats], ...]:
    """Return name, query and true answers for both queries about the survey's groups."""
    sizes, degrees = groups(SEED)
    return ("mean", mean(PEOPLE, 1, 7), sizes), ("count", count(PEOPLE), degrees)


def by_survey() -> Iterable[Row]:
    """Yield the rows of figures 5.13 and 5.14: losses by ε on groups of ten people."""
    for name, query, truths in surveys():
        for epsilon in EPSILONS:
            for series in SERIES[name]:
                table = tabled(query, series, epsilon)
                found = {measure: table.over(truths, measure) for measure in POWERS}
                yield _row(f"{SURVEY}, {name}", series, epsilon, found)


def differences() -> list[Row]:
    """Return differences of expected losses on the same groups of the survey, with their intervals.

    Four decimals: smaller differences are rounding of integer weights and of the solver.
    """
    found = []
    for name, query, truths in surveys():
        for first, second in CONTRASTS[name]:
            for epsilon in EPSILONS:
                one, other = tabled(query, first, epsilon), tabled(query, second, epsilon)
                values = {m: one.difference(other, truths, m) for m in POWERS}
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
    name: str, title: str, sweep: str, xlabel: str, series: Sequence[Line], more: str | None = None
) -> Figure:
    """Return a figure of both measures; lines of another style come from the sweep `more`."""
    panels = tuple(
        Panel(sweep, measure, xlabel, tuple(series), label, logx=xlabel == "ε", more=more)
        for measure, label in (("error", "at face value"), ("bayes", "Bayesian user"))
    )
    return Figure(name, title, panels, same=True)


def _lines(names: Iterable[str]) -> list[Line]:
    return [Line(name, COLOUR[name], ":" if name == UNIFORM else "-") for name in names]


def figures() -> list[Figure]:
    """Return all figures, numbered as in the thesis."""
    found = []
    for number, (name, epsilon) in enumerate(((q, e) for q in SIZES for e in BUDGETS), 4):
        sweep = f"{BY_SIZE}, {name}, ε = {epsilon}"
        title = f"Figure 5.{number}: {name} query, ε = {epsilon}"
        found.append(_pair(f"figure-5-{number}", title, sweep, "records", _lines(SERIES[name])))
    shades = [Line(f"× {factor}", place) for place, factor in enumerate(FACTORS)]
    for place, letter in zip(PLACES, "ab", strict=True):
        panels = tuple(
            Panel(f"{BY_FACTOR} {place}, {series}", "error", "ε", tuple(shades), series, logx=True)
            for series in (LAPLACE, FIRST, UNIFORM)
        )
        title = f"Figure 5.8: mean query, size of response categories, the outermost {TITLES[place]}"
        found.append(Figure(f"figure-5-8{letter}", title, panels, same=True))
    for number, name in ((9, "mean"), (10, "count")):
        title = f"Figure 5.{number}: {name} query of {SMALL} records"
        found.append(_pair(f"figure-5-{number}", title, f"{BY_EPSILON}, {name}", "ε", _lines(SERIES[name])))
    for number, name, shown in (
        (11, "mean", (STAIRCASE, TRUNCATED, FIRST)),
        (12, "count", (GEOMETRIC, FIRST)),
    ):
        title = f"Figure 5.{number}: {name} query of {SMALL} records, range of 300 %"
        lines = [*_lines(shown), *(Line(extended(one), COLOUR[one], "--") for one in shown)]
        if name == "count":
            lines += _lines((FAIR,))
        found.append(
            _pair(f"figure-5-{number}", title, f"{BY_EPSILON}, {name}", "ε", lines, f"{EXTENDED}, {name}")
        )
    for number, name, label in ((13, "mean", "mean family size"), (14, "count", "people with a degree")):
        title = f"Figure 5.{number}: {label}, made-up survey"
        found.append(_pair(f"figure-5-{number}", title, f"{SURVEY}, {name}", "ε", _lines(SERIES[name])))
    return found


def make() -> dict[str, bytes]:
    """Return every file of the experiment by its name: two tables and a plot per figure."""
    rows = [one for sweep in (by_size, by_factor, by_epsilon, by_survey) for one in sweep()]
    plots = {f"{figure.name}.png": draw(figure, rows) for figure in figures()}
    return {"results.csv": to_csv(rows), "differences.csv": to_csv(differences()), **plots}

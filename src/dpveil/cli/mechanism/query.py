"""`dpveil mechanism query`: a private answer about one column of a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.mechanism import options
from dpveil.cli.options import AsJson, number
from dpveil.core.numbers import show
from dpveil.core.parameters import SCALE
from dpveil.errors import DataError, InvalidParameter, UnknownName

if TYPE_CHECKING:
    from dpveil.numbers import Answer, Plan

NO_RANGE = "give what is publicly known of the values, never what the data show, such as 0:120"
QUERIES = ("mean", "count", "standard-deviation", "histogram")


def query_command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA.csv", help="A CSV file with a header line, in UTF-8.")
    ],
    column: Annotated[str | None, typer.Option(metavar="NAME", help="The column to ask about.")] = None,
    query: Annotated[str | None, typer.Option(metavar="QUERY", help=f"One of {', '.join(QUERIES)}.")] = None,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Range of the values: from public knowledge, never from the data. Others are clipped.",
        ),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="The budget. No default.")] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="See `dpveil mechanism list`. Default: the least expected error."),
    ] = None,
    relation: Annotated[
        str, typer.Option(metavar="NAME", help="database-record, or any-database, which is stronger.")
    ] = "database-record",
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE", help="What a missing value counts as. Default: refuse.")
    ] = None,
    bins: Annotated[
        str | None, typer.Option(metavar="K|A,B,...", help="Histogram: how many equal bins, or their edges.")
    ] = None,
    equals: Annotated[str | None, typer.Option(metavar="VALUE", help="Count rows with this value.")] = None,
    above: Annotated[str | None, typer.Option(metavar="X", help="Count rows above this number.")] = None,
    below: Annotated[str | None, typer.Option(metavar="X", help="Count rows below this number.")] = None,
    step: options.Step = None,
    delimiter: Annotated[str, typer.Option(metavar="C", help="Separator between cells.")] = ",",
    json: AsJson = False,
    seed: options.Seed = None,
) -> int:
    """Release a private answer about one column of a CSV file; nothing else from the file is shown.

    \b
    Examples:
      dpveil mechanism query data.csv --column age --query mean --range 0:120 --epsilon 1
      dpveil mechanism query data.csv --column answer --query count --equals yes --epsilon 1
      dpveil mechanism query data.csv --column age --query histogram --range 0:120 --bins 12 --epsilon 1

    The number of rows is public, and neighbours have one record replaced. What goes wrong with a value is
    said on stderr alone, since it is about the data.
    """
    given = {"range": range_, "missing": missing, "bins": bins, "step": step}
    given |= {"equals": equals, "above": above, "below": below}
    settings = _settings(query, {name: text for name, text in given.items() if text is not None})
    if column is None:
        raise InvalidParameter("--column", None, "is missing", hint="the name of a column of the table")
    if epsilon is None:
        raise InvalidParameter("epsilon", None, "is missing", hint=SCALE)
    settings |= {"epsilon": number(epsilon), "mechanism": mechanism}
    try:
        answer = _ask(data, column, str(query), delimiter, {**settings, "relation": relation}, seed)
    except DataError as error:
        if error.private:
            say.note(f"dpveil: private, not for publication: {error.private}")
        raise
    if json:
        say.document({"column": column, **answer.to_json()})
    else:
        _tell(answer, column)
    return exits.DONE


def _ask(
    data: Path, column: str, query: str, delimiter: str, settings: dict[str, Any], seed: int | None
) -> Answer:
    from dpveil import numbers
    from dpveil.io.names import shown

    values = numbers.column(data, column, delimiter=delimiter)
    try:
        plan: Plan = getattr(numbers, query.replace("-", "_"))(values, **settings)
    except DataError as error:
        raise error.about(f"{shown(data)}, column {column!r}") from None
    return plan.release(options.source(seed))


TAKES = {
    "mean": {"range", "missing", "step"},
    "standard-deviation": {"range", "missing", "step"},
    "histogram": {"range", "missing", "bins"},
    "count": {"equals", "above", "below"},
}
"""The options of each query."""


def _settings(query: str | None, given: dict[str, str]) -> dict[str, Any]:
    """Return the query's settings; raises `InvalidParameter` for options of other queries and missing
    ones.
    """
    if query is None:
        raise InvalidParameter("--query", None, "is missing", hint=f"one of {', '.join(QUERIES)}")
    if query not in QUERIES:
        raise UnknownName("query", query, QUERIES)
    for name in given:
        if name not in TAKES[query]:
            raise InvalidParameter(
                f"--{name}", given[name], f"does not belong to a {query}", hint=_hint(TAKES[query])
            )
    if query == "count":
        if not given:
            raise InvalidParameter("condition", None, "is missing", hint="give --equals, --above or --below")
        return {n: text if n == "equals" else number(text) for n, text in given.items()}
    if "range" not in given:
        raise InvalidParameter("--range", None, "is missing", hint=NO_RANGE)
    settings: dict[str, Any] = {"range": options.range_of(given.pop("range"))}
    if query == "histogram":
        text = given.pop("bins", None)
        if text is None:
            raise InvalidParameter(
                "--bins", None, "is missing", hint="how many, or edges such as 0,18,65,120"
            )
        edges = options.listed(text, "bins")
        settings["bins"] = edges[0] if edges and len(edges) == 1 and isinstance(edges[0], int) else edges
    return settings | {name: number(text) for name, text in given.items()}


def _hint(names: set[str]) -> str:
    return "it takes " + ", ".join(f"--{name}" for name in sorted(names))


def _tell(answer: Answer, column: str) -> None:
    if answer.edges is None or not isinstance(answer.response, tuple):
        say.answer(f"{answer.query} of {column}: {answer.response:.15g}")
    else:
        say.answer(f"{answer.query} of {column}")
        pairs = list(zip(answer.edges, answer.edges[1:], strict=False))
        lines = [
            [f"{show(a, 8)} to {show(b, 8)}", f"{n:.15g}"]
            for (a, b), n in zip(pairs, answer.response, strict=True)
        ]
        options.table(lines, "  ")
    say.answer("")
    say.answer(f"mechanism     {answer.mechanism.name}, range {answer.mechanism.range}")
    say.answer(f"error         {answer.expected_error:.3g} expected (absolute, on average over the range)")
    say.answer(f"guarantee     {answer.guarantee}")
    say.answer(f"about         {answer.guarantee.scope.covers}")
    for entry in answer.guarantee.scope.in_the_clear:
        say.answer(f"in the clear  {entry}")
    for warning in answer.warnings:
        say.note(f"warning: {warning}")

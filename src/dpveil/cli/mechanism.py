"""`dpveil mechanism`: release a number about a database within its known range."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

import numpy as np
import typer

from dpveil import numbers
from dpveil.accounting import compose
from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import AsJson, LedgerUrl, Payer, Seed, Text, number
from dpveil.cli.run_report import check_payer
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.parameters import SCALE
from dpveil.core.rationals import float_above, show, to_json
from dpveil.core.registry import SCALAR
from dpveil.errors import DataError, InvalidParameter, UnknownName, UsageError
from dpveil.io.names import show_path
from dpveil.ledger.ledger import Ledger
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import DATABASE_RECORD
from dpveil.mechanisms.scalar.ranges import HINT
from dpveil.noise.bits import BitSource, SecureBits, SeededBits, bits_kind
from dpveil.numbers import Answer, Plan, build

mechanism_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@mechanism_app.callback()
def _root() -> None:
    """Release counts, means and other numbers that stay in the range they are known to have.

    \b
    Examples:
      dpveil mechanism release --mechanism truncated-laplace --range 0: --sensitivity 1 --epsilon 0.5 3.2
      dpveil mechanism query data.csv --column age --query mean --range 0:120 --epsilon 1
    """


SEEDED = "NOT FOR PUBLICATION: the bits follow from --seed, so whoever knows it can take the noise off"

Name = Annotated[Text, typer.Option(metavar="NAME", help="See `dpveil mechanism list`.")]
Allowed = Annotated[
    Text,
    typer.Option("--range", metavar="LOW:HIGH", help="Known range: 0:5, --range=-5:5, or 0: without an end."),
]
Gap = Annotated[
    list[str] | None,
    typer.Option(metavar="LOW:HIGH", help="A part of the range that holds no answers. Repeatable."),
]
Sensitivity = Annotated[
    Text, typer.Option(metavar="DF", help="ΔF, the most that one record moves the answer. No default.")
]
Epsilon = Annotated[Text, typer.Option(metavar="E", help="The budget of each answer. No default.")]
RelationOption = Annotated[
    Text,
    typer.Option(
        metavar="NAME", help="database-record (ε for one record), or any-database (ε for every ΔF)."
    ),
]
Step = Annotated[Text, typer.Option(metavar="S", help="Round answers to multiples of this.")]


def built(
    name: str | None, allowed: str | None, gaps: list[str] | None, relation: str | None, **given: str | None
) -> ScalarMechanism:
    query = {key: number(value) for key, value in given.items() if value is not None}
    if name is None:
        raise InvalidParameter("--mechanism", None, "is missing", hint=f"choose from {', '.join(SCALAR)}")
    if allowed is None:
        hint = f"what is publicly known of the answer; {HINT}"
        raise InvalidParameter("--range", None, "is missing", hint=hint)
    return build(name, **query, range=Range.parse(allowed, gaps or ()), relation=relation)


def _source(seed: int | None) -> BitSource:
    return SecureBits() if seed is None else SeededBits(seed, "mechanism")


def _numbers(text: str | None, name: str) -> list[Any] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidParameter(name, text, "is not a list of numbers", hint="such as 0,1,2.5")
    return [number(part) for part in parts]


def _tell(guarantee: Guarantee, first: Mapping[str, object], warnings: Sequence[str]) -> None:
    for name, text in {**first, "guarantee": guarantee}.items():
        say.answer(f"{name:<13} {text}")
    for entry in guarantee.scope.in_the_clear:
        say.answer(f"not hidden    {entry}")
    for warning in warnings:
        say.note(f"warning: {warning}")


@mechanism_app.command("list", cls=Command, short_help="List every mechanism for numbers.")
def list_command(json: AsJson = False) -> int:
    """List every mechanism for numbers: what it does, what it can promise, and where it comes from.

    \b
    Example:
      dpveil mechanism list
    """
    rows: list[dict[str, Any]] = [
        {"name": name, "relations": list(kind.relations), "both_ends": kind.finite_only}
        | {"summary": kind.summary, "source": kind.source}
        for name, kind in SCALAR.items()
    ]
    if json:
        say.document({"mechanisms": rows})
    for row in () if json else rows:
        ends = "a range with both ends" if row["both_ends"] else "any range"
        say.answer(f"{row['name']}  {row['summary']}")
        say.answer(f"    takes: {ends}; holds: {' or '.join(row['relations'])}; source: {row['source']}")
    return exits.DONE


@mechanism_app.command(
    "release",
    cls=Command,
    short_help="Release answers that you computed.",
    context_settings={"ignore_unknown_options": True},  # answers below 0 look like options
)
def release_command(
    answers: Annotated[list[str], typer.Argument(metavar="ANSWER...", help="True answers, one or more.")],
    mechanism: Name = None,
    range_: Allowed = None,
    gap: Gap = None,
    sensitivity: Sensitivity = None,
    epsilon: Epsilon = None,
    relation: RelationOption = None,
    step: Step = None,
    json: AsJson = False,
    seed: Seed = None,
) -> int:
    """Release one response for every answer, within the range.

    \b
    Examples:
      dpveil mechanism release --mechanism truncated-laplace --range 0: --sensitivity 1 --epsilon 0.5 3.2
      dpveil mechanism release --mechanism laplace --range=-5:5 --sensitivity 1 --epsilon 1 -3 2.5

    Every answer costs epsilon: k answers about the same records cost k times as much. Other people can read
    what you type here, in the shell's history for one: `query` reads a file instead.
    """
    for text in answers:
        if text.startswith("-") and not text.lstrip("-+.")[:1].isdigit():
            raise UsageError(f"no such option: {text}", hint="see dpveil mechanism release --help")
    query = {"sensitivity": sensitivity, "epsilon": epsilon, "step": step}
    chosen = built(mechanism, range_, gap, relation, **query)
    chosen.prepare()  # fails before a bit is drawn, if at all
    bits = _source(seed)
    responses = chosen.release(np.array(answers, dtype=object), bits).tolist()
    each, count = chosen.guarantee(), len(answers)
    # of metric privacy, only the user knows the distance of the databases, so its ε is added as it is
    budget = (each.epsilon or Fraction(0)) * count
    total = compose([each] * count) if each.kind == "pure" else replace(each, epsilon=budget)
    words = f"{count} answers about the same records, {show(each.epsilon or Fraction(0))} each"
    words += f": epsilon {show(total.epsilon or Fraction(0))} in total (sequential)"
    if count > 1:
        scope = Scope(f"{count} answers, each {each.scope.covers}", each.scope.in_the_clear)
        total = replace(total, scope=scope)
    warnings = [] if seed is None else [SEEDED]
    if json:
        several = {"each": each.to_json(), "composition": words} if count > 1 else {}
        settings = {"mechanism": chosen.name, "parameters": chosen.parameters(), "bits": bits_kind(bits)}
        document = {"responses": responses, "guarantee": total.to_json(), **several, **settings}
        say.document({**document, "warnings": warnings})
        return exits.DONE
    for response in responses:
        say.answer(f"{response:.15g}")
    first = {"composition": words} if count > 1 else {}
    _tell(total, {**first, "neighbours": total.relation.in_words()}, warnings)
    return exits.DONE


QUERIES: dict[str, Callable[..., Plan]] = {
    "mean": numbers.mean,
    "sum": numbers.total,
    "median": numbers.median,
    "quantile": numbers.quantile,
    "standard-deviation": numbers.standard_deviation,
    "count": numbers.count,
    "count-by": numbers.count_by,
    "histogram": numbers.histogram,
}


@mechanism_app.command("query", cls=Command, short_help="Compute and release an answer about a CSV column.")
def query_command(
    data: Annotated[Path, typer.Argument(metavar="DATA.csv", help="A CSV file with a header line.")],
    column: Annotated[Text, typer.Option(metavar="NAME", help="The column to ask about.")] = None,
    query: Annotated[Text, typer.Option(metavar="QUERY", help=f"One of {', '.join(QUERIES)}.")] = None,
    range_: Annotated[
        Text,
        typer.Option("--range", metavar="LOW:HIGH", help="Publicly known range; other values are clipped."),
    ] = None,
    epsilon: Epsilon = None,
    mechanism: Annotated[
        Text, typer.Option(metavar="NAME", help="See `dpveil mechanism list`. Default: the least error.")
    ] = None,
    relation: Annotated[
        str, typer.Option(metavar="NAME", help="database-record, or any-database, which is stronger.")
    ] = DATABASE_RECORD,
    missing: Annotated[
        Text, typer.Option(metavar="VALUE", help="What a missing value counts as. Default: refuse.")
    ] = None,
    bins: Annotated[
        Text, typer.Option(metavar="K|A,B,...", help="Histogram: how many bins, or their edges.")
    ] = None,
    equals: Annotated[Text, typer.Option(metavar="VALUE", help="Count rows with this value.")] = None,
    above: Annotated[Text, typer.Option(metavar="X", help="Count rows above this number.")] = None,
    below: Annotated[Text, typer.Option(metavar="X", help="Count rows below this number.")] = None,
    q: Annotated[Text, typer.Option(metavar="Q", help="Quantile: the share of rows below it.")] = None,
    groups: Annotated[Text, typer.Option(metavar="NAME", help="Sum: the column of groups.")] = None,
    categories: Annotated[
        Text, typer.Option(metavar="A,B,...", help="The groups: known publicly, never from the data.")
    ] = None,
    by: Annotated[Text, typer.Option(metavar="NAME", help="Count-by: a second column.")] = None,
    by_categories: Annotated[Text, typer.Option(metavar="A,B,...", help="Its groups.")] = None,
    step: Step = None,
    delimiter: Annotated[str, typer.Option(metavar="C", help="Separator between cells.")] = ",",
    ledger: LedgerUrl = None,
    subject: Payer = None,
    json: AsJson = False,
    seed: Seed = None,
) -> int:
    """Release a private answer about one column of a CSV file; nothing else from the file is shown.

    \b
    Examples:
      dpveil mechanism query data.csv --column age --query mean --range 0:120 --epsilon 1
      dpveil mechanism query data.csv --column answer --query count --equals yes --epsilon 1
      dpveil mechanism query data.csv --column age --query histogram --range 0:120 --bins 12 --epsilon 1
      dpveil mechanism query data.csv --column age --query median --range 0:120 --epsilon 1
      dpveil mechanism query data.csv --column pay --query sum --range 0:9000 --epsilon 1 \\
          --groups town --categories north,south

    The number of rows is public, and neighbours have one record replaced. What goes wrong with a value is
    said on stderr alone, since it is about the data.
    """
    given = {"range": range_, "missing": missing, "bins": bins, "step": step, "equals": equals}
    given |= {"above": above, "below": below, "q": q, "groups": groups, "categories": categories, "by": by}
    given |= {"by-categories": by_categories, "mechanism": mechanism}
    given |= {"relation": None if relation == DATABASE_RECORD else relation}
    check_payer(ledger, subject, seed)
    settings = _settings(query, {name: text for name, text in given.items() if text is not None})
    for name, value in (("--column", column), ("epsilon", epsilon)):
        if value is None:
            hint = SCALE if name == "epsilon" else "the name of a column of the table"
            raise InvalidParameter(name, None, "is missing", hint=hint)
    settings |= {"epsilon": number(str(epsilon))}
    where = f"{show_path(data)}, column {column!r}"
    try:
        values = numbers.column(data, str(column), delimiter=delimiter)
        for name in {"groups", "by"} & settings.keys():
            settings[name] = numbers.column(data, settings[name], delimiter=delimiter)
        try:
            plan = QUERIES[str(query)](values, **settings)
        except DataError as error:
            raise error.about(where) from None
        if ledger is not None:
            with Ledger(ledger) as book:  # every answer is drawn anew, so none has been paid for
                book.debit(str(subject), plan.guarantee, token_hex(32))
        answer = plan.release(_source(seed))
    except DataError as error:
        if error.private:
            say.note(f"dpveil: private, not for publication: {error.private}")
        raise
    if json:
        say.document({"column": column, **answer.to_json()})
    else:
        _tell_answer(answer, str(column))
    return exits.DONE


def _settings(query: str | None, given: dict[str, str]) -> dict[str, Any]:
    if query not in QUERIES:
        raise UnknownName("query", str(query), QUERIES)
    words = dict.fromkeys(("categories", "by-categories"), lambda text: text.split(","))
    read: dict[str, Any] = {"range": Range.parse, "bins": _bins, **words}
    read |= dict.fromkeys(("groups", "by", "equals", "mechanism", "relation"), str)
    settings = {name.replace("-", "_"): read.get(name, number)(text) for name, text in given.items()}
    share = {"q": 0.5} if query == "median" else {}
    function = numbers.quantile if share else QUERIES[query]
    try:
        inspect.signature(function).bind([], epsilon=1, **share, **settings)
    except TypeError as error:
        hint = (
            "see dpveil mechanism query --help; a range is what is publicly known, never what the data show"
        )
        raise UsageError(f"--query {query}: {error}", hint=hint) from error
    if query == "count" and not given:
        raise InvalidParameter("condition", None, "is missing", hint="give --equals, --above or --below")
    return settings


def _bins(text: str) -> Any:
    edges = _numbers(text, "bins")
    return edges[0] if edges and len(edges) == 1 and isinstance(edges[0], int) else edges


def _tell_answer(answer: Answer, column: str) -> None:
    names = answer.groups
    if answer.edges is not None:
        names = tuple(f"{show(a, 8)} to {show(b, 8)}" for a, b in pairwise(answer.edges))
    if names is None:
        say.answer(f"{answer.query} of {column}: {answer.shown}")
    else:
        say.answer(f"{answer.query} of {column}")
        say.table(zip(names, answer.shown.split(", "), strict=True), indent="  ", numbers=True)
    told = {"mechanism": f"{answer.mechanism.name}, range {answer.mechanism.range}"}
    if answer.expected_error is not None:
        told["error"] = f"{answer.expected_error:.3g} expected (absolute, on average over the range)"
    _tell(answer.guarantee, {**told, "about": answer.guarantee.scope.covers}, answer.warnings)


COUNTED = {
    "epsilon": "for one record, as counted over the whole table",
    "per_distance": "for each sensitivity between two answers",
    "overall": "for any two answers",
}
"""What a certificate of a whole table states; a law without an end has a proof instead."""


@mechanism_app.command("matrix", cls=Command, short_help="Tabulate the probability of every response.")
def matrix_command(
    mechanism: Name = None,
    range_: Allowed = None,
    gap: Gap = None,
    sensitivity: Sensitivity = None,
    epsilon: Epsilon = None,
    relation: RelationOption = None,
    step: Step = None,
    responses: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Responses to tabulate, each with all that is nearest to it."),
    ] = None,
    answers: Annotated[str | None, typer.Option(metavar="A,B,...", help="True answers to tabulate.")] = None,
    json: AsJson = False,
) -> int:
    """Print the mechanism matrix: rows are responses, columns true answers, and every column sums to 1.

    \b
    Examples:
      dpveil mechanism matrix --mechanism geometric --range 0:5 --sensitivity 1 --epsilon 0.5
      dpveil mechanism matrix --mechanism laplace --range 0: --sensitivity 1 --epsilon 1 \\
          --responses 0,1,2,3,4,5 --answers 0,1,2

    Spends nothing: no data are read and nothing is drawn.
    """
    query = {"sensitivity": sensitivity, "epsilon": epsilon, "step": step}
    chosen = built(mechanism, range_, gap, relation, **query)
    given = {"responses": _numbers(responses, "responses"), "answers": _numbers(answers, "answers")}
    rows, columns = (chosen.numbers(name, points) for name, points in given.items())
    matrix = chosen.matrix(responses=rows, answers=columns).tolist()
    found = chosen.certificate
    counted = None if found is None else {n: float_above(getattr(found, n)) for n in COUNTED}
    if json:
        document = {
            "matrix": matrix,
            "responses": [to_json(row) for row in rows],
            "answers": [to_json(column) for column in columns],
            "guarantee": chosen.guarantee().to_json(),
            "certificate": counted,
            "mechanism": chosen.name,
            "parameters": chosen.parameters(),
        }
        say.document(document)
        return exits.DONE
    say.answer(f"{chosen.name} on {chosen.range}: {chosen.guarantee()}")
    say.answer("rows are responses, columns true answers\n")
    lines = [["", *(show(column, 6) for column in columns)]]
    for response, chances in zip(rows, matrix, strict=True):
        cells = (f"{one:.3e}" if 0 < one < 5e-4 else f"{one:.4f}" for one in chances)
        lines.append([show(response, 6), *cells])
    say.table(lines, numbers=True)
    for name, value in (counted or {}).items():
        say.answer(f"certificate   {value:.9g} {COUNTED[name]}")
    return exits.DONE

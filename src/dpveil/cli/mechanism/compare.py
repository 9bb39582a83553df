"""`dpveil mechanism compare`: the expected errors of all mechanisms for a query, with a recommendation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.mechanism import options
from dpveil.cli.options import AsJson, number
from dpveil.core.numbers import show, to_json
from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.numbers import Candidate, Utility

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5")
"""Default values of ε."""
MOST_EPSILONS = 24
"""Most values of ε in one comparison."""


def compare_command(
    range_: options.Allowed = None,
    gap: options.Gap = None,
    sensitivity: options.Sensitivity = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Repeatable. Default: 0.1, 0.2, 0.5, 1, 2 and 5.")
    ] = None,
    relation: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Required guarantee: database-record, or any-database, which is stronger."
        ),
    ] = "database-record",
    step: options.Step = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="See `dpveil mechanism list`; repeatable. Default: all."),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="True answers to average over. Default: the whole range."),
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Answers are real numbers, not counts.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also plot error over epsilon.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plot.")] = False,
    json: AsJson = False,
) -> int:
    """Compare the expected absolute error of all mechanisms that fit a query, and recommend one.

    \b
    Examples:
      dpveil mechanism compare --range 0:10 --sensitivity 1
      dpveil mechanism compare --range 0:100 --sensitivity 0.5 --continuous --epsilon 1 --out errors.png

    Errors are computed from the laws, all answers being as likely. Reads no data and spends nothing.
    """
    from dpveil.numbers import candidates

    budgets = list(dict.fromkeys(epsilon or EPSILONS))
    if several := next((text for text in budgets if "," in text), None):
        raise InvalidParameter(
            "--epsilon", several, "is not one number", hint="repeat it: --epsilon 0.1 --epsilon 1"
        )
    if len(budgets) > MOST_EPSILONS:
        raise InvalidParameter(
            "--epsilon", len(budgets), "values are too many", hint=f"at most {MOST_EPSILONS}"
        )
    query = options.typed(sensitivity=sensitivity, step=step)
    if sensitivity is None:
        raise InvalidParameter(
            "sensitivity",
            None,
            "is missing",
            hint="there is no default: the most that one record moves the answer",
        )
    query |= {"range": options.range_of(range_, gap), "relation": relation, "whole": not continuous}
    query |= {"answers": options.listed(answers, "answers"), "names": mechanism}
    found = [candidates(epsilon=number(budget), **query) for budget in budgets]
    found.sort(key=lambda at: at[0].epsilon)
    if out is not None:
        from dpveil.cli.mechanism.plot import draw_errors

        draw_errors(found, _title(query), out, replace=force)
    if json:
        say.document(_document(found, query))
    else:
        _tell(found, query)
    return exits.DONE


def _title(query: dict[str, Any]) -> str:
    return f"range {query['range']}, sensitivity {query['sensitivity']}, {query['relation']}"


def _document(found: list[list[Candidate]], query: dict[str, Any]) -> dict[str, Any]:
    return {
        "range": str(query["range"]),
        "sensitivity": query["sensitivity"],
        "relation": query["relation"],
        "compared": [
            {
                "epsilon": to_json(at[0].epsilon),
                "recommended": at[0].name if at[0].utility else None,
                "mechanisms": [_row(one) for one in at],
            }
            for at in found
        ],
    }


def _row(one: Candidate) -> dict[str, Any]:
    if one.utility is None or one.mechanism is None:
        return {"name": one.name, "reason": one.reason}
    errors = {"mean": one.utility.mean, "worst": one.utility.worst, "remapped": one.utility.remapped}
    return {"name": one.name, "error": errors, "guarantee": one.mechanism.guarantee().to_json()}


def _tell(found: list[list[Candidate]], query: dict[str, Any]) -> None:
    say.answer(f"expected absolute error; {_title(query)}")
    say.answer("")
    names = list(dict.fromkeys(one.name for at in reversed(found) for one in at if one.utility))
    by = [{one.name: one for one in at} for at in found]
    lines = [["epsilon", *(show(at[0].epsilon) for at in found)]]
    for name in names:
        lines.append([name, *(_error(row[name]) for row in by)])
    options.table(lines)
    left_out: dict[str, dict[str, None]] = {}
    for one in (one for at in found for one in at if not one.utility):
        left_out.setdefault(one.reason, {})[one.name] = None
    for reason, without in left_out.items():
        say.answer(f"left out ({reason}): {', '.join(without)}")
    say.answer("")
    for at in found:
        _recommend(at)


def _error(one: Candidate) -> str:
    return "-" if one.utility is None else f"{one.utility.mean:.4g}"


def _recommend(at: list[Candidate]) -> None:
    """Print the mechanism with the least mean error, the next one, and others that win by another
    criterion.
    """
    able = [(one.name, one.utility) for one in at if one.utility]
    if not able:
        say.answer(f"at epsilon {show(at[0].epsilon)}: nothing fits")
        return
    (best, error), *others = able
    ahead = f"at epsilon {show(at[0].epsilon)}: "
    say.answer(f"{ahead}{best}, off by {error.mean:.4g} on average{_next(error.mean, others)}")
    name, least = min(((name, one.worst) for name, one in able), key=lambda pair: pair[1])
    words = f"at worst {error.worst:.4g}{_instead(name, least, error.worst)}"
    remapped = [(name, one.remapped) for name, one in able if one.remapped is not None]
    if error.remapped is not None:
        name, least = min(remapped, key=lambda pair: pair[1])
        words += f"; after remapping {error.remapped:.4g}{_instead(name, least, error.remapped)}"
    say.answer(" " * len(ahead) + words)


def _next(least: float, others: list[tuple[str, Utility]]) -> str:
    if not others:
        return ""
    name, error = others[0]
    more = 100 * (error.mean / least - 1) if least else 0.0
    return f" ({name}: {more:.2g} % more)" if more > 0.005 else f" ({name}: as much)"


def _instead(name: str, least: float, own: float) -> str:
    return f" ({name}: {least:.4g})" if least < 0.9999 * own else ""

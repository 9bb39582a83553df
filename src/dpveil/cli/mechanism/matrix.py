"""`dpveil mechanism matrix`: the probability of every response given every answer."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.mechanism import options
from dpveil.cli.options import AsJson
from dpveil.core.numbers import float_above, show, to_json
from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.mechanisms.scalar import ScalarMechanism

WIDE = 12
"""Columns shown on a terminal; the JSON document has all of them."""


def matrix_command(
    mechanism: options.Name = None,
    range_: options.Allowed = None,
    gap: options.Gap = None,
    sensitivity: options.Sensitivity = None,
    epsilon: options.Epsilon = None,
    relation: options.RelationOption = None,
    step: options.Step = None,
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
    chosen = options.built(mechanism, range_, gap, relation, **query)
    rows = _points(chosen, "responses", responses)
    columns = _points(chosen, "answers", answers)
    matrix = chosen.matrix(responses=rows, answers=columns).tolist()
    if json:
        document = {
            "matrix": matrix,
            "responses": [to_json(row) for row in rows],
            "answers": [to_json(column) for column in columns],
            "guarantee": chosen.guarantee().to_json(),
            "certificate": _certificate(chosen),
            "mechanism": chosen.name,
            "parameters": chosen.parameters(),
        }
        say.document(document)
    else:
        _tell(chosen, matrix, rows, columns)
    return exits.DONE


def _points(chosen: ScalarMechanism, name: str, text: str | None) -> list[Fraction]:
    """Return the numbers given by the user, or else the mechanism's; raises `InvalidParameter` if
    unordered.
    """
    given = chosen.numbers(name, options.listed(text, name))
    if any(a >= b for a, b in pairwise(given)):
        raise InvalidParameter(
            name, text, "are not in order", hint="each larger than the last, such as 0,1,2"
        )
    return given


def _certificate(chosen: ScalarMechanism) -> dict[str, Any] | None:
    found = chosen.certificate
    if found is None:
        return None
    names = ("epsilon", "per_distance", "overall")
    return {name: float_above(getattr(found, name)) for name in names}


def _tell(
    chosen: ScalarMechanism, matrix: list[list[float]], rows: list[Fraction], columns: list[Fraction]
) -> None:
    say.answer(f"{chosen.name} on {chosen.range}: {chosen.guarantee()}")
    say.answer("rows are responses, columns true answers")
    say.answer("")
    shown = columns[:WIDE]
    lines = [["", *(show(column, 6) for column in shown)]]
    for response, chances in zip(rows, matrix, strict=True):
        lines.append([show(response, 6), *(_chance(chance) for chance in chances[:WIDE])])
    options.table(lines)
    if len(columns) > WIDE:
        say.answer(f"and {len(columns) - WIDE} more answers: choose with --answers, or take --json")
    certificate = _certificate(chosen)
    say.answer("")
    if certificate is None:
        say.answer("certificate   none: the law has no end, and its proof takes the place of a table")
        return
    say.answer(f"certificate   {certificate['epsilon']:.9g} for one record, as counted over the whole table")
    say.answer(f"              {certificate['per_distance']:.9g} for each sensitivity between two answers")
    say.answer(f"              {certificate['overall']:.9g} for any two answers")


def _chance(chance: float) -> str:
    return f"{chance:.3e}" if 0 < chance < 5e-4 else f"{chance:.4f}"

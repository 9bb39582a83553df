"""Options that the commands for numbers share, and the mechanism built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import say
from dpveil.cli.options import number
from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.mechanisms.scalar import Range, ScalarMechanism
    from dpveil.noise.bits import BitSource

SEEDED = "NOT FOR PUBLICATION: the bits follow from --seed, so whoever knows it can take the noise off"

Name = Annotated[str | None, typer.Option(metavar="NAME", help="See `dpveil mechanism list`.")]
Allowed = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="LOW:HIGH",
        help="Known range of answers, and of responses: 0:5, --range=-5:5, or 0: without an end.",
    ),
]
Gap = Annotated[
    list[str] | None,
    typer.Option(metavar="LOW:HIGH", help="A part of the range that holds no answers; repeatable."),
]
Sensitivity = Annotated[
    str | None, typer.Option(metavar="DF", help="ΔF, the most that one record moves the answer. No default.")
]
Epsilon = Annotated[str | None, typer.Option(metavar="E", help="The budget of each answer. No default.")]
RelationOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="database-record (ε for one record) or any-database (ε for every ΔF between answers).",
    ),
]
Step = Annotated[
    str | None, typer.Option(metavar="S", help="Spacing of the points that answers are rounded to.")
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Reproduce: bits follow from it. NOT FOR PUBLICATION.")
]


def range_of(text: str | None, gaps: list[str] | None = None) -> Range:
    """Return the range written as LOW:HIGH with its gaps; raises `InvalidParameter`."""
    from dpveil.mechanisms.scalar import Range
    from dpveil.mechanisms.scalar.ranges import HINT

    if text is None:
        raise InvalidParameter(
            "--range", None, "is missing", hint=f"what is publicly known of the answer; {HINT}"
        )
    return Range.parse(text, gaps or ())


def typed(**values: str | None) -> dict[str, Any]:
    """Return the options that were given, with integers as int and other numbers as exact text."""
    return {name: number(value) for name, value in values.items() if value is not None}


def built(
    name: str | None, allowed: str | None, gaps: list[str] | None, relation: str | None, **numbers: str | None
) -> ScalarMechanism:
    """Return the mechanism of that name, from options as the user wrote them.

    Raises `InvalidParameter` and `UnknownName`.
    """
    from dpveil.mechanisms.scalar import TABLE
    from dpveil.numbers import build

    query = {**typed(**numbers), "range": range_of(allowed, gaps), "relation": relation}
    if name is None:
        raise InvalidParameter("--mechanism", None, "is missing", hint=f"choose from {', '.join(TABLE)}")
    return build(name, **query)


def source(seed: int | None) -> BitSource:
    """Return a secure bit source, or a seeded one."""
    from dpveil.noise.bits import SecureBits, SeededBits

    return SecureBits() if seed is None else SeededBits(seed, "mechanism")


def listed(text: str | None, name: str) -> list[Any] | None:
    """Return the numbers of a comma-separated list, or None; raises `InvalidParameter`."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidParameter(name, text, "is not a list of numbers", hint="such as 0,1,2.5")
    return [number(part) for part in parts]


def table(rows: list[list[str]], indent: str = "") -> None:
    """Print rows of cells, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        say.answer(indent + "  ".join(cells).rstrip())

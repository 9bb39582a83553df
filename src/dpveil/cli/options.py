"""Options that several commands share, and the method that they build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.mechanisms.pixel import PixelMethod

Text = str | None

Method = Annotated[Text, typer.Option(metavar="NAME", help="See `dpveil methods`.")]
Epsilon = Annotated[Text, typer.Option(metavar="E", help="What each region may cost. No default.")]
Delta = Annotated[Text, typer.Option(metavar="D", help="δ, for methods that take it.")]
Rho = Annotated[Text, typer.Option(metavar="R", help="ρ, for methods that take it.")]
Block = Annotated[Text, typer.Option(metavar="B", help="Side of a block in pixels.")]
Neighbourhood = Annotated[
    Text, typer.Option(metavar="M", help="Pixels in which neighbours differ; default: all of them.")
]
Blur = Annotated[Text, typer.Option(metavar="S", help="Blur afterwards, in pixels; free.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def build_method(name: Text, **options: Text) -> PixelMethod:
    """Return the method of that name with the options that were given."""
    from dpveil.catalogue import build
    from dpveil.mechanisms.pixel import TABLE

    if name is None:
        raise InvalidParameter(
            "--method", None, "is missing", hint=f"choose from {', '.join(TABLE)} (see dpveil methods)"
        )
    return build(name, {key: number(text) for key, text in options.items() if text is not None})


def number(text: str) -> int | str:
    """Return a whole number as an int; anything else stays text, so that it stays exact."""
    stripped = text.strip()
    digits = stripped.removeprefix("-").removeprefix("+")
    return int(stripped) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text

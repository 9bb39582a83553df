"""`dpveil methods`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from dpveil.cli import say


def methods_command(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """List every method: what it promises, what it takes, and where it comes from.

    \b
    Example:
      dpveil methods
    """
    from dpveil.catalogue import REQUIRED, methods

    rows = methods()
    if json:
        say.document({"methods": rows})
        return 0
    for row in rows:
        taken = [_spoken(name, value, REQUIRED) for name, value in row["parameters"].items()]
        say.answer(f"{row['name']}  [{row['kind']}]  {row['summary']}")
        say.answer(f"    parameters: {', '.join(taken)}")
        say.answer(f"    source: {row['source']}")
    return 0


def _spoken(name: str, default: object, required: str) -> str:
    if default is None:
        return f"--{name} (optional)"
    return f"--{name} (required)" if default == required else f"--{name} {default}"

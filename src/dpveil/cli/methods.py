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
        others = [" and ".join(f"--{name}" for name in budget) for budget in row["budgets"][1:]]
        taken = [_spoken(name, value, REQUIRED) for name, value in row["parameters"].items()]
        say.answer(f"{row['name']}  [{row['kind']}]  {row['summary']}")
        say.answer(f"    parameters: {', '.join(taken)}")
        if others:
            say.answer(f"    or, as budget: {', or '.join(others)}")
        say.answer(f"    source: {row['source']}")
    return 0


def _spoken(name: str, default: object, required: str) -> str:
    option = "--" + name.replace("_", "-")
    if default is None or default is False:
        return f"{option} (optional)"
    return f"{option} (required)" if default == required else f"{option} {default}"

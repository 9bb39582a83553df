"""`dpveil methods`: the available methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import say

if TYPE_CHECKING:
    from dpveil.catalogue import MechanismRow


def methods_command(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """List every method: what it promises, what it takes, and where it comes from; latent mechanisms, too.

    \b
    Example:
      dpveil methods
    """
    from dpveil.catalogue import REQUIRED, latent_mechanisms, methods

    rows, mechanisms = methods(), latent_mechanisms()
    if json:
        say.document({"methods": rows, "latent_mechanisms": mechanisms})
        return 0
    for row in rows:
        others = [" and ".join(f"--{name}" for name in budget) for budget in row["budgets"][1:]]
        taken = [_written(name, value, REQUIRED) for name, value in row["parameters"].items()]
        say.answer(f"{row['name']}  [{', '.join(row['kinds'])}]  {row['summary']}")
        say.answer(f"    parameters: {', '.join(taken)}")
        if others:
            say.answer(f"    or, as budget: {', or '.join(others)}")
        say.answer(f"    source: {row['source']}")
    _tell_mechanisms(mechanisms, REQUIRED)
    return 0


def _tell_mechanisms(rows: list[MechanismRow], required: str) -> None:
    say.answer("")
    say.answer("latent mechanisms, for --method latent --mechanism NAME:")
    for row in rows:
        named = f", --metric {row['metric']}" if row["metric"] else ""
        taken = [_written(name, value, required) for name, value in row["parameters"].items()]
        say.answer(f"{row['name']}  [{row['kind']}{named}]  {row['summary']}")
        say.answer(f"    parameters: {', '.join(taken)}")
        say.answer(f"    source: {row['source']}")


def _written(name: str, default: object, required: str) -> str:
    option = "--" + name.replace("_", "-")
    if default is None or default is False:
        return f"{option} (optional)"
    return f"{option} (required)" if default == required else f"{option} {default}"

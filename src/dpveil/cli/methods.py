"""`dpveil methods`: the available methods."""

from __future__ import annotations

from typing import Annotated

import typer

from dpveil.catalogue import REQUIRED, latent_mechanisms, methods
from dpveil.cli import say
from dpveil.cli.options import explained
from dpveil.core.registry import METHODS
from dpveil.errors import UnknownName


def methods_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Show parameters and source of these alone.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """List every method and what it promises; with names, what these take and where they come from.

    \b
    Examples:
      dpveil methods
      dpveil methods dp-pix box-laplace
    """
    rows, mechanisms = methods(), latent_mechanisms()
    if names:
        known = [row["name"] for row in rows] + [row["name"] for row in mechanisms]
        for name in names:
            if name not in known:
                raise UnknownName("method", name, known)
        rows = [row for row in rows if row["name"] in names]
        mechanisms = [row for row in mechanisms if row["name"] in names]
    if json:
        say.document({"methods": rows, "latent_mechanisms": mechanisms})
        return 0
    for row in rows:
        say.answer(_line(row["name"], row["kinds"], row["summary"]))
        if names:
            for name, (metavar, words) in explained(METHODS[row["name"]]).items():
                say.answer(f"    {f'{_option(name)} {metavar}'.strip()}: {words}")
            say.answer(f"    source: {row['source']}")
    if mechanisms:
        say.answer("\nlatent mechanisms, for --method latent --mechanism NAME:")
    for mechanism in mechanisms:
        metric = f", --metric {mechanism['metric']}" if names and mechanism["metric"] else ""
        say.answer(_line(mechanism["name"], [mechanism["kind"] + metric], mechanism["summary"]))
        if names:
            taken = [_written(name, value) for name, value in mechanism["parameters"].items()]
            say.answer(f"    parameters: {', '.join(taken)}")
            say.answer(f"    source: {mechanism['source']}")
    if not names:
        say.answer("\ndpveil methods NAME shows parameters and source of one.")
    return 0


def _line(name: str, kinds: list[str], summary: str) -> str:
    return f"{name:<22}{', '.join(kinds):<25} {summary}"


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _written(name: str, default: object) -> str:
    option = _option(name)
    if default is None or default is False:
        return f"{option} (optional)"
    return f"{option} (required)" if default == REQUIRED else f"{option} {default}"

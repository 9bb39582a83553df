"""`dpveil demo`: one photograph at several budgets, and one sheet that shows them all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpveil.cli import say


def demo_command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path("demo"),
    gallery: Annotated[
        str, typer.Option(metavar="FILE", help="The faces of nobody: a file, drawn, or default.")
    ] = "default",
) -> int:
    """Release a public photograph at several budgets, with another face or noisy pixels, side by side.

    \b
    Example:
      dpveil demo --out demo
    """
    from dpveil.cli.demo_releases import make_demo

    sheet, releases, count = make_demo(out, gallery)
    say.answer(f"wrote {count} releases with their certificates to {releases}")
    say.answer(f"check them with: dpveil verify {releases}")
    say.answer(f"look at {sheet}: every tile states its guarantee, its strength and its noise")
    return 0

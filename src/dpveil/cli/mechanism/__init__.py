"""`dpveil mechanism`: release a number about a database within its known range."""

from __future__ import annotations

import typer

from dpveil.cli.mechanism.compare import compare_command
from dpveil.cli.mechanism.listing import list_command
from dpveil.cli.mechanism.matrix import matrix_command
from dpveil.cli.mechanism.query import query_command
from dpveil.cli.mechanism.release import release_command

mechanism_app = typer.Typer(add_completion=False, rich_markup_mode=None)
mechanism_app.command("list", short_help="List every mechanism for numbers.")(list_command)
mechanism_app.command(
    "release",
    short_help="Release answers that you computed.",
    context_settings={"ignore_unknown_options": True},  # answers below 0 look like options
)(release_command)
mechanism_app.command("query", short_help="Compute and release an answer about a CSV column.")(query_command)
mechanism_app.command("matrix", short_help="Tabulate the probability of every response.")(matrix_command)
mechanism_app.command("compare", short_help="Compare expected errors, and recommend.")(compare_command)


@mechanism_app.callback()
def _root() -> None:
    """Release counts, means and other numbers that stay in the range they are known to have.

    \b
    Examples:
      dpveil mechanism release --mechanism truncated-laplace --range 0: --sensitivity 1 --epsilon 0.5 3.2
      dpveil mechanism query data.csv --column age --query mean --range 0:120 --epsilon 1
    """

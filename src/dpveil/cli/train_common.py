"""What the subcommands of `dpveil train` share: their inputs and their output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dpveil.cli import exits, say

if TYPE_CHECKING:
    from dpveil.training import Trained


class Common(TypedDict):
    """The fields of every `training.Order`."""

    paths: tuple[Path, ...]
    out: Path
    seed: int
    data: str
    terms: str
    replace: bool


def failed(made: Trained[Any]) -> int:
    """Tell of the first pictures that were left out; return the exit code."""
    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    return exits.INCOMPLETE if made.failed else exits.DONE


def document(made: Trained[Any], out: Path, **own: Any) -> None:
    """Print the JSON document of a training; `own` is what only this kind of model has."""
    from dpveil.assets import card_path

    done = {
        "output": str(out),
        "card": str(card_path(out)),
        "sha256": made.digest,
        **own,
        "images": made.images,
        "metrics": dict(made.model.card.metrics),
    }
    left_out = [{"error": error.message, "hint": error.hint} for error in made.failed]
    say.document({"trained": [done], "failed": left_out})

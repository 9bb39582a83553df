"""Inputs and outputs that the subcommands of `dpveil train` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from dpveil.cli import exits, say

if TYPE_CHECKING:
    from dpveil.training import Trained


NETWORKS: Final = {
    "gan": "dpveil.training.generators.orders",
    "stylegan": "dpveil.training.stylegan.orders",
    "upconv": "dpveil.training.upconv.orders",
    "denoiser": "dpveil.training.denoiser.orders",
}
"""The module that trains each network: its `PLANS` by name, its `NetworkOrder` and the function `train`."""


class Common(TypedDict):
    """The fields of every `training.Order`."""

    paths: tuple[Path, ...]
    out: Path
    seed: int
    data: str
    terms: str
    replace: bool


def failed(made: Trained[Any]) -> int:
    """Print the first errors of images that were left out, and return the exit code."""
    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    return exits.INCOMPLETE if made.failed else exits.DONE


def document(made: Trained[Any], out: Path, **own: Any) -> None:
    """Print the JSON document of a training; `own` are entries of this kind of model."""
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

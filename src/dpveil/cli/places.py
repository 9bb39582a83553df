"""Arguments that are paths on this disk, or places by URL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.core.guarantee import counted
from dpveil.core.urls import place
from dpveil.errors import PhotoError

if TYPE_CHECKING:
    from dpveil.batch import Task

Inputs = Annotated[
    list[Any],  # of Path: Typer would make a plain one of each
    typer.Argument(
        metavar="INPUT",
        parser=place,
        help="Photos, clips, PDF and multi-page TIFF files, WebDataset shards (.tar), Parquet files, and"
        " folders; photos, shards and Parquet files also by URL (s3://).",
    ),
]
"""What is released."""
Out = Annotated[
    Any,
    typer.Option(
        metavar="PATH",
        parser=place,
        help="A folder, made if missing, or a prefix (s3://); for one input, also a file, in a folder"
        " that exists.",
    ),
]
"""Where releases go."""


def notes_on(inputs: Sequence[Path], tasks: Sequence[Task], out: Path) -> list[str]:
    """Return notes on what is left out of folders, and on releases among originals, if any.

    Raises `PhotoError` if there is nothing to release.
    """
    from dpveil.batch import among_originals, left_out
    from dpveil.io.names import shown

    notes, around = [], among_originals(inputs, tasks, out)
    for what, paths in left_out(inputs, out).items():
        if paths:
            notes.append(
                f"left out: {counted(len(paths), what)}, such as {shown(paths[0])}: name it to release it"
            )
    if around is not None:
        where = f"releases in {shown(out)} lie among the originals of {shown(around)}"
        notes.append(f"{where}: keep them apart, so that no original is published for one")
    if not tasks:
        problem = "; ".join(["there are no photos among the inputs", *notes])
        raise PhotoError(problem, hint="name image files, or folders that contain some")
    return notes

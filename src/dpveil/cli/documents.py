"""Options about documents, and what of a command line does not go with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import say
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.batch import Choices, Task
    from dpveil.batch.pages import Scan

TEXT_STAYS = (
    "text in documents is not looked for, and stays readable: --regions text or faces+text replaces it"
)
Dpi = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Draw the pages of PDF files at so many pixels per inch, from 36 to 1200, and write PDF files at"
        " as many; default: 200.",
    ),
]
Pages = Annotated[
    str | None, typer.Option(metavar="1-3,7", help="Release these pages of each PDF or multi-page TIFF.")
]


def scan_of(dpi: int | None, pages: str | None) -> Scan:
    """Return how documents are read; raises `InvalidParameter`."""
    from dpveil.batch.pages import Scan

    return Scan.of(dpi, pages)


def check_documents(
    tasks: Sequence[Task], dpi: int | None, pages: str | None, choices: Choices, *, quiet: bool
) -> None:
    """Raise `UsageError` for options about documents where there are none, and a PDF that is to be marked.

    Says, unless `quiet`, that text in documents stays readable if faces are looked for and text is not.
    """
    from dpveil.core.origin import FACE, TEXT
    from dpveil.release.origins import kind_of

    scanned = [task for task in tasks if task.inside is not None and task.inside.shard.scan is not None]
    if not scanned and (dpi, pages) != (None, None):
        given = "--pages" if dpi is None else "--dpi"
        raise UsageError(f"{given} is about documents, and there are none", hint="leave it out")
    kinds = [kind_of(finder.description) for finder in choices.regions] if scanned else []
    if FACE in kinds and TEXT not in kinds and not quiet:
        say.note(TEXT_STAYS)
    if choices.mark is not None and any(task.shard is not None for task in scanned):
        hint = "leave out --c2pa, or name a folder, in which each page is a picture"
        raise UsageError("a PDF of pictures holds no C2PA manifests", hint=hint)

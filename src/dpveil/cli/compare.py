"""`dpveil compare`: one photo released by every method at several budgets, on one sheet with measures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import options_of
from dpveil.cli.options import AsJson, MaxPixels, Text, number
from dpveil.cli.region_options import NOTHING, Chosen, takes_regions
from dpveil.errors import InvalidParameter, OutputError

if TYPE_CHECKING:
    from dpveil.cli.grid import Line

BUDGETS = ("1", "5", "20")
"""Default values of ε."""
NEIGHBOURHOODS = ("256", "all")
"""Default neighbourhoods in pixels."""


@takes_regions
def compare_command(
    context: typer.Context,
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="One photo.")],
    out: Annotated[
        Path, typer.Option(metavar="SHEET.png", help="Where to write the sheet. Keep it private.")
    ] = Path("compare.png"),
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="See `dpveil methods`; repeatable. Default: all.")
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Repeatable. Default: 1, 5 and 20.")
    ] = None,
    delta: Annotated[
        Text,
        typer.Option(
            metavar="D", help="δ, for all methods that take it. Default: 1e-6, for those alone that need it."
        ),
    ] = None,
    block: Annotated[str, typer.Option(metavar="B", help="Side of a block in pixels.")] = "16",
    neighbourhood: Annotated[
        list[str] | None,
        typer.Option(metavar="M", help="A number of pixels, or all; repeatable. Default: 256 and all."),
    ] = None,
    gallery: Annotated[
        Text, typer.Option(metavar="FILE", help="Faces of face-space methods: a file, drawn, or default.")
    ] = None,
    regions: Chosen = NOTHING,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing sheet.")] = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Lay releases of one photo by several methods and budgets side by side, each with what it promises.

    \b
    Examples:
      dpveil compare photo.jpg --out compare.png
      dpveil compare group.jpg --out compare.png --regions faces --epsilon 2 --epsilon 10

    Without --regions each method takes its own: the whole photo, or every face that is found.
    SSIM and PSNR are computed from the original, and the costs of many releases add up: the sheet is for the
    owner of the original only, NOT FOR PUBLICATION.
    """
    from dpveil.cli.compare_sheet import NOT_PRIVATE, compare
    from dpveil.io import encode, read, write_together

    options = options_of(context)
    lines, missing = _lines(method, epsilon, delta, block, neighbourhood, gallery, options)
    usual = sorted({one.regions for line in lines for one in line.methods if one is not None})
    finders = regions.finders(usual)
    chosen = {kind: finders if regions.specs else [finders[n]] for n, kind in enumerate(usual)}
    original = read(photo, max_pixels=max_pixels)
    _check_out(out, photo, force)
    compared, notes = compare(original, lines, chosen, every=method is None, options=options)
    for text in (*missing, *notes):
        say.note(f"note: {text}")
    write_together([(out, encode(compared.draw(), "png"))], replace=force)
    if json:
        say.document({"sheet": str(out), **compared.to_json()})
    else:
        for text in compared.in_words():
            say.answer(text)
        say.answer(f"wrote {out}")
    say.note(f"{out}: {NOT_PRIVATE}")
    return exits.DONE


def _lines(
    names: list[str] | None,
    budgets: list[str] | None,
    delta: Text,
    block: str,
    neighbourhoods: list[str] | None,
    gallery: Text,
    options: Mapping[str, str],
) -> tuple[list[Line], list[str]]:
    from dpveil.cli import grid
    from dpveil.core.registry import METHODS

    choice = grid.Choice(
        names=tuple(dict.fromkeys(names or METHODS.rows)),
        budgets=tuple(dict.fromkeys(budgets or BUDGETS)),
        neighbourhoods=grid.neighbourhoods(neighbourhoods or NEIGHBOURHOODS),
        delta=delta,
        block=number(block),
        gallery=gallery,
    )
    return grid.lines(choice, every=names is None, options=options)


def _check_out(out: Path, photo: Path, force: bool) -> None:
    """Raise an error, before anything is computed, if the sheet cannot be written to `out`."""
    if out.suffix.lower() != ".png":
        raise InvalidParameter("--out", str(out), "is not the name of a PNG file", hint="end it in .png")
    if not out.parent.exists():
        raise OutputError(f"cannot write {out}: there is no such folder", hint="make the folder first")
    if not out.exists():
        return
    if photo.exists() and out.samefile(photo):
        raise OutputError(f"{out} is the photo itself", hint="give the sheet another name")
    if not force:
        raise OutputError(
            f"cannot write {out}: it exists already", hint="choose another --out, or use --force"
        )

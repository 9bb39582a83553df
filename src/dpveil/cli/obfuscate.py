"""`dpveil obfuscate`: photos in, private photos and certificates out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import faces_options, say
from dpveil.cli.options import AsJson, PostProcessing, Text, takes_method
from dpveil.errors import DPVeilError, InvalidParameter, PhotoError

if TYPE_CHECKING:
    from dpveil.cli.batch import Report
    from dpveil.mechanisms.method import Method

SHOWN_WARNINGS = 5


@takes_method
def obfuscate_command(
    inputs: Annotated[list[Path], typer.Argument(metavar="INPUT", help="Photos, and folders of them.")],
    out: Annotated[Path, typer.Option(metavar="PATH", help="A folder; for one photo, also a file.")],
    method: Method,
    post_processing: PostProcessing = None,
    regions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="whole, faces, x,y,w,h, or a mask image; repeatable. Default: by the method.",
        ),
    ] = None,
    only: Annotated[Text, typer.Option(metavar="N,N", help="Of the faces, only these numbers.")] = None,
    except_: Annotated[
        Text, typer.Option("--except", metavar="N,N", help="Of the faces, all but these numbers.")
    ] = None,
    threshold: faces_options.Threshold = None,
    margin: faces_options.Margin = None,
    min_face: faces_options.MinFace = None,
    long_side: faces_options.LongSide = None,
    detector: faces_options.DetectorName = None,
    detector_model: faces_options.DetectorModel = None,
    if_none: Annotated[
        Text, typer.Option(metavar="whole|copy", help="What to do where no region is found; default: refuse.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")] = False,
    json: AsJson = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Reproduce: bits follow from this and each output's name. NOT FOR PUBLICATION.",
        ),
    ] = None,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos that have more pixels.")
    ] = 100_000_000,
) -> int:
    """Release photos with differential privacy, each with a certificate beside it.

    \b
    Examples:
      dpveil obfuscate photo.jpg --out private.png --method dp-pix --epsilon 2 --block 16 \\
          --neighbourhood 16 --regions 170,60,100,130
      dpveil obfuscate group.jpg --out private.png --method attributes --attributes gender=1,age=1 \\
          --except 2
      dpveil obfuscate photos --out private --method dp-pix --epsilon 1 --block 32 --neighbourhood 16

    A folder's tree is mirrored under --out, as PNG files. One bad photo never stops the rest, and a rerun
    skips what is finished, so that nothing is paid for twice.
    """
    from dpveil.cli.batch import Choices, release_all
    from dpveil.cli.inputs import plan
    from dpveil.postprocessing import parse_all

    faces: faces_options.Settings = {
        "only": only,
        "exclude": except_,
        "threshold": threshold,
        "margin": margin,
    }
    faces = {**faces, "min_face": min_face, "long_side": long_side}
    faces = {**faces, "detector": detector, "model": detector_model}
    if if_none not in (None, "whole", "copy"):
        raise InvalidParameter("--if-none", if_none, "is unknown", hint="whole, copy, or leave it out")
    choices = Choices(
        method=method,
        regions=method.accepts(faces_options.finders(regions or [method.regions], faces)),
        post_processing=parse_all(post_processing or ()),
        if_none=if_none,
        seed=seed,
        max_pixels=max_pixels,
        force=force,
    )
    tasks = plan(inputs, out)
    if not tasks:
        raise PhotoError("there are no photos among the inputs", hint="name image files or folders with some")
    with _progress(len(tasks)) as step:
        report = release_all(tasks, choices, step=step)
    _tell(report, json)
    return report.exit_code


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal while the block runs; yield what to call after each photo."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("releasing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=total)
        yield lambda: progress.advance(bar)


def _tell(report: Report, json: bool) -> None:
    if json:
        say.document(report.to_json())
    else:
        _tell_each(report)
    warnings = list(dict.fromkeys(report.warnings))
    for text in warnings[:SHOWN_WARNINGS]:
        say.note(f"warning: {text}")
    if len(warnings) > SHOWN_WARNINGS:
        say.note(f"and {len(warnings) - SHOWN_WARNINGS} more warnings: see the certificates")
    counts = (len(report.released), len(report.failed), len(report.skipped), len(report.no_region))
    say.note("released {}, failed {}, skipped {}, no region {}".format(*counts))


def _tell_each(report: Report) -> None:
    from dpveil.io.names import shown

    for entry in report.released:
        source, output = shown(entry["input"]), shown(entry["output"])
        say.answer(f"{source} -> {output}  {report.promises[entry['output']]}")
    tried = report.failed[: len(report.failed) - report.untried]
    for entry in report.no_region + tried:
        say.note(f"{shown(entry['input'])}: {DPVeilError(entry['error'], hint=entry['hint'])}")
    if report.untried:
        first = report.failed[len(tried)]
        say.note(f"{shown(first['input'])} and what follows, {report.untried} in all: {first['error']}")

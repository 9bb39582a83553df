"""`dpveil video`: plans a clip, and renders it by its plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import (
    AsJson,
    AtLeast,
    LedgerUrl,
    MethodCommand,
    PostProcessing,
    Quiet,
    Text,
    takes_method,
)
from dpveil.cli.region_options import NOTHING, Chosen, takes_regions
from dpveil.cli.video_options import NO_CLIPS, ClipOptions, takes_clips

if TYPE_CHECKING:
    from dpveil.mechanisms.method import Method

video_app = typer.Typer(add_completion=False, rich_markup_mode=None)

KEPT: Final = "what is rendered is kept: the same command goes on there, and pays nothing twice"
Sheet = Annotated[
    Path | None,
    typer.Option(metavar="SHEET.png", help="Write a sheet for your own eyes: it shows the original."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@video_app.callback()
def _root() -> None:
    """Plan clips, change the plan, and render it.

    \b
    Examples:
      dpveil video analyze clip.mp4 --out plan.json --sheet tracks.png
      dpveil video render plan.json --out private.mp4
    """


def _analyze(
    clip_file: Annotated[Path, typer.Argument(metavar="CLIP", help="A clip: MP4, MOV, MKV, WebM, AVI, MPEG.")],
    out: Annotated[Path, typer.Option(metavar="PLAN.json", help="Where the plan goes. It is private.")],
    method: Method,
    sheet: Sheet = None,
    post_processing: PostProcessing = None,
    regions: Chosen = NOTHING,
    if_none: Annotated[
        Text, typer.Option(metavar="whole", help="If nothing is found, replace all of every frame.")
    ] = None,
    clip: ClipOptions = NO_CLIPS,
    at_least: AtLeast = None,
    force: Force = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> int:
    """Find and follow what is to be replaced in a clip, and write a plan that you can change.

    \b
    Examples:
      dpveil video analyze clip.mp4 --out plan.json --sheet tracks.png
      dpveil video analyze clip.mp4 --out plan.json --keep 2 --link 1,4
      dpveil video analyze clip.mp4 --out plan.json --method dp-pix --epsilon 2 --block 16 \\
          --neighbourhood 16 --regions whole

    Nothing is drawn and nothing is paid. Plan and sheet show the original: keep them as private as the clip.
    """
    from dpveil.cli.video_words import told_plan
    from dpveil.cli.video_progress import frames_bar
    from dpveil.video.analyze import analyze
    from dpveil.video.plan_file import to_text

    check_written([out, sheet], [clip_file], force=force)
    with frames_bar(quiet=quiet, as_json=json) as progress:
        plan = analyze(
            clip_file,
            method,
            regions=regions.finders([method.regions]),
            post_processing=post_processing or (),
            if_none=if_none,
            at_least=at_least,
            progress=progress,
            **clip.settings(),
        )

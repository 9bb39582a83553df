"""`dpveil video`: plans a clip, and renders it by its plan."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.key import opened
from dpveil.cli.options import (
    NOTHING,
    AsJson,
    AtLeast,
    Chosen,
    LedgerUrl,
    MethodCommand,
    PostProcessing,
    Quiet,
    Text,
    takes_method,
    takes_regions,
)
from dpveil.cli.progress import frames_bar, stopping
from dpveil.cli.run_report import paying
from dpveil.cli.video_options import NO_CLIPS, ClipOptions, takes_clips

if TYPE_CHECKING:
    from dpveil.mechanisms.method import Method

video_app = typer.Typer(add_completion=False, rich_markup_mode=None)

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


@video_app.command("analyze", cls=MethodCommand, short_help="Plan how a clip will be replaced.")
@partial(takes_clips, planning=True)
@takes_regions
@takes_method
def analyze_command(
    source: Annotated[Path, typer.Argument(metavar="CLIP", help="A clip: MP4, MOV, MKV, WebM, AVI or MPEG.")],
    out: Annotated[Path, typer.Option(metavar="PLAN.json", help="Where the plan goes. Keep it private.")],
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

    Nothing is drawn and nothing is paid. Plan and sheet tell of the original: keep them as private as the
    clip.
    """
    from dpveil.cli.clips import (
        OPTIONS,
        check_apart_from,
        check_different,
        plan_document,
        tell_plan,
        tell_written,
    )
    from dpveil.io import write_together
    from dpveil.video.analyzing import analyze
    from dpveil.video.plan_file import to_text
    from dpveil.video.reading import open_clip
    from dpveil.video.sheets import track_sheet, write_sheet

    check_apart_from([source], {"--out": out, "--sheet": sheet}, replace=force)
    check_different({"the plan": out, "the sheet": sheet})
    with stopping("no plan was written"), frames_bar(quiet=quiet, as_json=json) as progress:
        plan = analyze(
            source,
            method,
            regions=regions.finders([method.regions]),
            post_processing=post_processing or (),
            if_none=if_none,
            at_least=at_least,
            progress=progress,
            **clip.settings(),
        )
        write_together([(out, to_text(plan).encode())], replace=force, private=True)
        if sheet is not None:
            with open_clip(source) as opened:
                write_sheet(sheet, track_sheet(plan, opened), replace=force)
    if json:
        say.document(plan_document(plan, out, sheet))
    tell_plan(plan, say.note if json else say.answer, OPTIONS)
    tell_written(out, sheet)
    return exits.DONE


@video_app.command("render", cls=Command, short_help="Replace in a clip what its plan says.")
def render_command(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.json", help="A plan by dpveil video analyze.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="PRIVATE.mp4", help="Where the release goes: .mp4, .mov, .mkv, .webm."),
    ] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="CLIP", help="The clip; default: beside the plan, by its name there."),
    ] = None,
    preview: Annotated[
        Path | None,
        typer.Option(
            metavar="PREVIEW.png", help="Show what would be replaced, in grey; draw and pay nothing."
        ),
    ] = None,
    sheet: Sheet = None,
    keep: Annotated[
        Text,
        typer.Option(metavar="N,N", help="Also leave these tracks as they are; the plan stays as it is."),
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="Also take these tracks as one person; repeatable."),
    ] = None,
    at_least: AtLeast = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Sign the certificate with this private key (dpveil key new)."),
    ] = None,
    ledger: LedgerUrl = None,
    subject: Annotated[
        Text, typer.Option(metavar="NAME", help="Who pays from the ledger, such as studio/album-7.")
    ] = None,
    other_regions: Annotated[
        bool,
        typer.Option(
            "--other-regions", help="With --ledger: take a clip whose earlier releases replaced other tracks."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Reproduce the bits. NOT FOR PUBLICATION.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it costs and promises; draw, pay and write nothing.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> int:
    """Replace in a clip what its plan says, and write the release and its certificate: both or neither.

    \b
    Examples:
      dpveil video render plan.json --preview preview.png
      dpveil video render plan.json --out private.mp4

    Everybody is drawn once, paid before that, and shown in every frame from that draw. After any end, also
    kill -9, the same command goes on where it was, and pays nothing twice. A plan of another file is refused.
    """
    from dpveil.cli.video_render import Rendering

    given = {"keep": keep, "link": link}
    chosen = ClipOptions({name: value for name, value in given.items() if value}).settings()
    rendering = Rendering(
        plan_file=plan_file,
        clip=clip,
        out=out,
        sheet=sheet,
        preview=preview,
        force=force,
        quiet=quiet,
        json=json,
        chosen=chosen,
    )
    payer = paying(ledger, subject, other_regions, seed, (plan_file, sheet, preview, out, clip))
    key = None if sign is None else opened(sign)
    return rendering.run({**payer, "seed": seed, "sign": key}, at_least=at_least, dry=dry_run)

"""`dpveil video`: plans a clip, and renders it by its plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.clips import (
    NO_CLIPS,
    OPTIONS,
    ClipOptions,
    check_different,
    plan_document,
    takes_clips,
    tell_plan,
    tell_private,
)
from dpveil.cli.command import Command
from dpveil.cli.key import read_key
from dpveil.cli.options import (
    NO_REGIONS,
    AsJson,
    AtLeast,
    Chosen,
    Force,
    LedgerUrl,
    MethodCommand,
    OtherRegions,
    Payer,
    PostProcessing,
    Quiet,
    Seed,
    Sign,
    Silent,
    Text,
    Verbose,
    takes_method,
    takes_regions,
)
from dpveil.cli.progress import frames_bar, stopping
from dpveil.cli.review import check_apart_from
from dpveil.cli.run_report import exit_code, paying, print_report, tell_budget, tell_cost, tell_terms
from dpveil.cli.say import Voice
from dpveil.core.notes import notes_with_options
from dpveil.errors import ClipError, UsageError
from dpveil.io.names import show_path
from dpveil.release.saving import certificate_path

if TYPE_CHECKING:
    from dpveil.batch.report import Entry
    from dpveil.batch.tasks import Task
    from dpveil.mechanisms.method import Method

video_app = typer.Typer(add_completion=False, rich_markup_mode=None)

Sheet = Annotated[
    Path | None,
    typer.Option(metavar="SHEET.png", help="Write a sheet for your own eyes: it shows the original."),
]


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
@partial(takes_regions, of_clips=True)
@takes_method
def analyze_command(
    context: typer.Context,  # of which the method is read
    source: Annotated[Path, typer.Argument(metavar="CLIP", help="A clip: MP4, MOV, MKV, WebM, AVI or MPEG.")],
    out: Annotated[Path, typer.Option(metavar="PLAN.json", help="Where the plan goes. Keep it private.")],
    method: Method,
    sheet: Sheet = None,
    post_processing: PostProcessing = None,
    regions: Chosen = NO_REGIONS,
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
    from dpveil.io.writing import write_together
    from dpveil.video.make_plan import analyze
    from dpveil.video.reading import open_clip
    from dpveil.video.sheets import track_sheet, write_sheet

    check_apart_from([source], {"--out": out, "--sheet": sheet}, replace=force)
    check_different({"the plan": out, "the sheet": sheet})
    with stopping("no plan was written"), frames_bar(quiet=quiet) as progress:
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
        write_together([(out, plan.to_text().encode())], replace=force, private=True)
        if sheet is not None:
            write_sheet(sheet, track_sheet(plan, open_clip(source)), replace=force)
    if json:
        say.document(plan_document(plan, out, sheet))
    tell_plan(plan, say.note if json else say.answer)
    name = show_path(out)
    say.note(f"wrote {name}: change it, and release with dpveil video render {name} --out ...")
    if sheet is not None:
        tell_private(sheet)
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
    at_least: AtLeast = None,
    sign: Sign = None,
    ledger: LedgerUrl = None,
    subject: Payer = None,
    other_regions: OtherRegions = False,
    seed: Seed = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it costs and promises; draw, pay and write nothing.")
    ] = False,
    force: Force = False,
    quiet: Silent = False,
    verbose: Verbose = False,
    json: AsJson = False,
) -> int:
    """Replace in a clip what its plan says, and write the release and its certificate: both or neither.

    \b
    Examples:
      dpveil video render plan.json --dry-run
      dpveil video render plan.json --out private.mp4

    Everybody is drawn once, paid before that, and shown in every frame from that draw. After any end, also
    kill -9, the same command goes on, and pays nothing twice. A plan of another file is refused.
    """
    from dpveil.batch.tasks import Task
    from dpveil.video.clip_in_batch import GOES_ON, earlier_entry, release_clip
    from dpveil.video.plan import Payer, read_plan
    from dpveil.video.reading import open_clip
    from dpveil.video.render_job import check_out, check_possible, check_same, settings_of, unfinished_nonce
    from dpveil.video.writing import container_for

    voice = Voice.of(quiet=quiet, verbose=verbose)
    payer = paying(ledger, subject, other_regions, seed, (plan_file, out, clip))
    payment = Payer(**payer, seed=seed)
    payer |= {"seed": seed, "sign": None if sign is None else read_key(sign)}
    if out is None and not dry_run:
        raise UsageError("there is no name for the release", hint="add --out private.mp4, or --dry-run")
    plan = read_plan(plan_file)
    plan.check_strength(at_least)
    source = clip or plan_file.with_name(plan.clip)
    if clip is None and not source.exists():
        raise ClipError(f"there is no {show_path(source)}, beside the plan", hint="name the clip with --clip")
    named = {"the plan": plan_file, "the clip": source, "the release": out}
    certificate = None if out is None else certificate_path(out)
    check_different({**named, "the release's certificate": certificate})
    task = None if out is None else Task(source, out, out.name)
    if task is not None:
        check_out(task.output, source)
        there = None if force else earlier_entry(task, plan, payer)
        if there is not None:
            return _print_report(task, there, voice, json=json)
    nonce = unfinished_nonce(out, settings_of(plan, out, payment.payer, seed)) if out else None
    if nonce is not None:
        voice.note(GOES_ON)
    elif payment.ledger is not None:
        tell_cost("the clip", [plan.total], payer["ledger"], payer["subject"], voice)
    if task is not None and not dry_run:
        with stopping(KEPT), frames_bar(quiet=voice.quiet) as progress:
            entry = release_clip(task, plan, {**payer, "replace": force, "progress": progress})
        code = _print_report(task, entry, voice, json=json, seeded=seed is not None)
        tell_terms((plan.method, *plan.post_processing), voice)
        tell_budget(payer.get("ledger"), subject, voice)
        return code
    payment.check(plan, nonce)
    opened = open_clip(source)
    check_same(plan, opened.facts, source)
    container = None if out is None else container_for(out)
    check_possible(plan, opened, container)
    if json:
        say.document(plan_document(plan, plan_file, None))
    tell_plan(plan, say.note if json else say.answer)
    say.note("nothing was drawn, paid or released")
    return exits.DONE


KEPT: Final = "the same command goes on, and pays nothing twice"


def _print_report(task: Task, entry: Entry, voice: Voice, *, json: bool, seeded: bool = False) -> int:
    from dpveil.batch.report import Report

    report = Report(entries=[replace(entry, warnings=notes_with_options(entry.warnings, OPTIONS))])
    print_report(report, json, voice, out=task.output, seeded=seeded)
    return exit_code(report)

"""`dpveil obfuscate`: photos and clips in, private ones and certificates out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.accounting.meaning import check_strength_name
from dpveil.batch.archive_inputs import PageSettings, parse_columns
from dpveil.batch.report import Report, check_manifest, write_manifest
from dpveil.batch.run import is_priced, release_all
from dpveil.batch.tasks import RunSettings, Task, other_files
from dpveil.cli import exits, say
from dpveil.cli.clips import NO_CLIPS, ClipOptions, is_video_input, planned_clips, release_clips, takes_clips
from dpveil.cli.command import options_of
from dpveil.cli.options import (
    NO_REGIONS,
    AsJson,
    AtLeast,
    Chosen,
    Force,
    LedgerUrl,
    MaxPixels,
    OtherRegions,
    Payer,
    PostProcessing,
    Preset,
    Seed,
    Sign,
    Silent,
    Text,
    Verbose,
    takes_method,
    takes_regions,
)
from dpveil.cli.progress import bar, heard_to_the_end
from dpveil.cli.run_report import (
    exit_code,
    paying,
    print_report,
    tell_dry,
    tell_more,
    tell_price,
    write_file,
)
from dpveil.cli.say import Voice
from dpveil.core.guarantee import count_noun
from dpveil.core.region_origin import FACE, TEXT
from dpveil.core.urls import Url, place
from dpveil.errors import PhotoError, UnknownName, UsageError
from dpveil.io.exif import FREE, PLACES, parse_names
from dpveil.io.names import format_of, may_name_a_person, show_path
from dpveil.io.reading import check_trust
from dpveil.postprocessing import parse_all
from dpveil.processes import keep_freed_memory
from dpveil.regions import check_if_none
from dpveil.release.words import request_kind

if TYPE_CHECKING:
    from dpveil.cli.review import Part
    from dpveil.mechanisms.method import Method

MAY_NAME = "what was kept of captions and copyright may name people: read it before publishing"
Inputs = Annotated[
    list[Any],  # of Path: Typer would make a plain one of each
    typer.Argument(
        metavar="INPUT...",
        parser=place,
        help="Photos, clips, PDF and multi-page TIFF files, WebDataset shards (.tar), Parquet files, and"
        " folders; photos, shards and Parquet files also by URL (s3://).",
    ),
]
Out = Annotated[
    Any,
    typer.Option(
        "--out",
        "-o",
        metavar="PATH",
        parser=place,
        help="A folder, made if missing, or a prefix (s3://). For one input also a file.",
    ),
]


@takes_clips
@takes_regions
@takes_method
def obfuscate_command(
    context: typer.Context,
    inputs: Inputs,
    out: Out,
    method: Method,
    preset: Preset = None,
    post_processing: PostProcessing = None,
    regions: Chosen = NO_REGIONS,
    if_none: Annotated[
        Text,
        typer.Option(
            metavar="others|whole|copy",
            help="If a region is not found: whole replaces the whole photo, copy copies it unprotected,"
            " others replaces what other --regions found (others+whole or others+copy if none was)."
            " Default: refuse.",
        ),
    ] = None,
    clip: ClipOptions = NO_CLIPS,
    at_least: AtLeast = None,
    names: Annotated[
        str, typer.Option(metavar="keep|number", help="Name outputs like inputs, or number them.")
    ] = "keep",
    format_: Annotated[
        Text,
        typer.Option(
            "--format",
            metavar="jpeg|png|webp|tiff|bmp",
            help="Format of outputs in a folder. Default: JPEG, PNG and BMP stay so, all else is PNG.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Also write the labels in a COCO or CVAT file, or a YOLO or Pascal VOC folder, without"
            " attributes, and without keypoints in what was replaced.",
        ),
    ] = None,
    new_points: Annotated[
        bool,
        typer.Option("--new-points", help="In COCO labels, give a new face the eyes, nose and mouth on it."),
    ] = False,
    keep_metadata: Annotated[
        Text,
        typer.Option(
            metavar="date,copyright,caption",
            help="Keep these of a photo's EXIF, in a JPEG or PNG, as its certificate states. Texts may name"
            " people. The orientation stays in any case.",
        ),
    ] = None,
    keep_columns: Annotated[
        Text,
        typer.Option(
            metavar="NAME,NAME",
            help="Keep these of a sample, in the clear: suffixes in a shard, such as txt, or columns of a"
            " Parquet file.",
        ),
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a row for each input to this .csv or .jsonl.")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(metavar="PAGE.html", help="Write a page to check releases by eye. Keep it private."),
    ] = None,
    sign: Sign = None,
    c2pa: Annotated[
        Path | None,
        typer.Option(
            metavar="CHAIN.pem",
            help="Mark pictures as made by a machine, in a C2PA manifest signed by the owner of this X.509"
            " certificate.",
        ),
    ] = None,
    c2pa_key: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="The private key of --c2pa.")
    ] = None,
    force: Force = False,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="So many processes. Default: one a core, if it pays."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each photo costs; draw, pay and write nothing.")
    ] = False,
    quiet: Silent = False,
    verbose: Verbose = False,
    engine: Annotated[
        Text,
        typer.Option(
            metavar="ray",
            help="Release by the machines of a Ray cluster (RAY_ADDRESS), which all see inputs and --out.",
        ),
    ] = None,
    json: AsJson = False,
    ledger: LedgerUrl = None,
    subject: Payer = None,
    other_regions: OtherRegions = False,
    seed: Seed = None,
    max_pixels: MaxPixels = 100_000_000,
    trust_source: Annotated[
        Text,
        typer.Option(
            metavar="lossless",
            help="You say that a GIF, a palette, 1 to 4 bits or a PDF lost nothing when it was made. Else its"
            " few colours may show what is hidden, and releases are not publishable.",
        ),
    ] = None,
    dpi: Annotated[
        int | None,
        typer.Option(metavar="N", help="Pixels per inch of PDF pages, from 36 to 1200. Default: 200."),
    ] = None,
    pages: Annotated[
        Text, typer.Option(metavar="1-3,7", help="Release these pages of each PDF or multi-page TIFF.")
    ] = None,
) -> int:
    """Release photos and clips with differential privacy, each with a certificate beside it.

    Without --method, every face is replaced by a synthetic one: nothing of it is kept.

    \b
    Examples:
      dpveil obfuscate photo.jpg --out private.jpg
      dpveil obfuscate group.jpg --out private.jpg --except 2
      dpveil obfuscate clip.mp4 --out private.mp4
      dpveil obfuscate scan.pdf --out private.pdf --preset scan
      dpveil obfuscate photos --out private --method dp-pix --epsilon 1 --block 32 --neighbourhood 16

    A folder's tree is mirrored under --out, and a shard becomes one of releases. One bad photo
    never stops the rest, and a rerun skips what is finished, so that nothing is paid for twice.

    --method dp-pix --help shows the options of dp-pix.
    """
    from dpveil.batch.workers import MOST_JOBS, ignore_release, usual_jobs

    voice = Voice.of(quiet=quiet, verbose=verbose)
    payer = paying(ledger, subject, other_regions, seed, (manifest, review))
    settings: dict[str, Any] = {
        "method": method,
        "regions": method.accepts(regions.finders([method.regions])),
        "post_processing": parse_all(post_processing or ()),
        "if_none": check_if_none(if_none),
        "at_least": None if at_least is None else check_strength_name(at_least),
        "max_pixels": max_pixels,
    }
    signing: dict[str, Any] = {}
    if sign or c2pa or c2pa_key:
        from dpveil.cli.key import keys

        signing = keys(sign, c2pa, c2pa_key)
    choices = RunSettings(
        seed=seed,
        trust_source=check_trust(trust_source),
        metadata=parse_names(keep_metadata),
        columns=parse_columns(keep_columns),
        force=force,
        dry=dry_run,
        **settings,
        **signing,
        **payer,
    )
    tasks, photos, clips = planned_clips(inputs, out, names, format_, clip, PageSettings.of(dpi, pages))
    if not tasks:
        hint = "name image files, or folders that contain some, without links and hidden files"
        raise PhotoError("there are no photos among the inputs", hint=hint)
    _check_documents(tasks, dpi, pages, choices, voice)
    _check_kept(tasks, choices)
    _check_written(manifest, review, tasks, choices, out)
    labelled = None
    if labels is not None:
        from dpveil.batch.labels import Labels

        labelled = Labels(labels, inputs, photos, out, new_points=new_points)
    elif others := other_files(inputs, out):
        names_of = say.first_and_count([show_path(path) for path in others], 3)
        voice.note(f"left out, as no photo, clip or document: {names_of}")
    cores, start = _cores_and_start(engine, context, tasks, out, dry=dry_run)
    usual = 1 if getattr(method, "link", False) else cores or usual_jobs(photos, method)
    many = min(jobs or usual, cores or MOST_JOBS, len(photos))
    heard = context.with_resource(heard_to_the_end(many))  # no Ctrl-C ends the run before its report is told
    parts: list[Part | None] = []
    summarise: Any = ignore_release
    write_page: Any = None
    if review is not None:
        from dpveil.cli.review import review_part as summarise
        from dpveil.cli.review import write_review as write_page
    keep_freed_memory()
    planning = dry_run or is_priced(choices, photos)
    with bar(len(photos), "planning" if planning else "releasing", quiet=voice.quiet) as step:

        def on_price(dry: Report) -> None:
            tell_price(choices, dry, voice)
            step.restart("releasing")

        report = release_all(
            photos,
            choices,
            jobs=max(many, 1),
            start=start,
            step=step,
            summarise=summarise,
            collect=parts.append,
            priced=on_price,
            options=options_of(context),
            interrupts=heard,
        )
    release_clips(report, clips, choices, clip, heard, voice, None if review is None else parts)
    if named := [task.output.name for task in tasks if may_name_a_person(task.output)]:
        which = f"{count_noun(len(named), 'output')} such as {show_path(named[0])}"
        report.notes.append(f"{which} may name a person: --names number, or another file name, tells none")
    if any(entry.promise and {*FREE} & {*entry.promise.kept} for entry in report.released):
        report.notes.append(MAY_NAME)
    listed = max(
        0 if labelled is None or dry_run else write_file(labelled.place, partial(labelled.write, report)),
        write_file(manifest, partial(write_manifest, report)),
        write_file(review, lambda path: write_page(parts, report, path, anew=choices.force)),
    )
    tell_dry(choices, report, voice)
    print_report(report, json, voice, out=out, seeded=seed is not None)
    tell_more(report, choices, voice)
    return max(exit_code(report), listed, exits.INTERRUPTED if heard.presses else exits.DONE)


def _check_documents(
    tasks: Sequence[Task], dpi: int | None, pages: str | None, choices: RunSettings, voice: Voice
) -> None:
    scanned = [task for task in tasks if task.inside is not None and task.inside.shard.scan is not None]
    if not scanned and (dpi, pages) != (None, None):
        given = "--pages" if dpi is None else "--dpi"
        raise UsageError(f"{given} is about documents, and there are none", hint="leave it out")
    kinds = [request_kind(finder.description) for finder in choices.regions] if scanned else []
    if FACE in kinds and TEXT not in kinds:
        instead = "--regions text or faces+text replaces it"
        voice.note(f"warning: text in documents is not looked for, and stays readable: {instead}")
    if choices.mark is not None and any(task.shard is not None for task in scanned):
        raise UsageError("a PDF of pictures holds no C2PA manifests", hint="leave out --c2pa")


def _check_kept(tasks: Sequence[Task], choices: RunSettings) -> None:
    for task in tasks:
        name, output = show_path(task.source), show_path(task.output)
        if choices.columns and (task.inside is None or task.inside.shard.scan is not None):
            hint = "leave out --keep-columns, or name shards and Parquet files alone"
            raise UsageError(f"{name} is in no shard or Parquet file, and has no columns", hint=hint)
        if choices.metadata and (task.inside is not None or is_video_input(task.source)):
            hint = "name photos alone, each in a file of its own"
            raise UsageError(f"no metadata is kept of {name}", hint=hint)
        if choices.metadata and format_of(task.output) not in PLACES:
            raise UsageError(f"no metadata is kept in {output}", hint=f"write {' or '.join(PLACES)}")


def _check_written(
    manifest: Path | None, review: Path | None, tasks: Sequence[Task], choices: RunSettings, out: Path
) -> None:
    if (mark := choices.mark) is not None:
        for task in tasks:
            mark.check(format_of(task.output))
    if choices.dry and (manifest is not None or review is not None):
        raise UsageError("--dry-run writes nothing", hint="leave out --manifest and --review")
    if manifest is not None:
        check_manifest(manifest, tasks, replace=choices.force)
    if review is not None:
        from dpveil.cli.review import check_review

        check_review(review, tasks, out, replace=choices.force)


def _cores_and_start(
    engine: str | None, context: typer.Context, tasks: Sequence[Task], out: Path, *, dry: bool
) -> tuple[int | None, Callable[[], Any] | None]:
    """Return how many cores a cluster has, and what starts a worker there; None without an engine."""
    if engine is None:
        return None, None
    from dpveil.batch.ray_workers import cluster

    if engine != "ray":
        raise UnknownName("engine", engine, ["ray"])
    if isinstance(out, Url):
        problem = "a machine of a cluster that is lost would lose what waits there to be put by URL"
        raise UsageError(problem, hint="name a folder that all machines see, and copy its releases later")
    one = tasks[0]
    root = one.output.parents[one.name.count("/")] if one.shard is None else one.shard.root
    return context.with_resource(cluster(None if dry else root))

"""`dpveil obfuscate`: photos in, private photos and certificates out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import options_of
from dpveil.cli.key import check_formats, keys
from dpveil.cli.options import (
    GIVEN,
    AsJson,
    AtLeast,
    LedgerUrl,
    MaxPixels,
    PostProcessing,
    Text,
    is_default,
    takes_method,
)
from dpveil.cli.progress import bar
from dpveil.cli.region_options import NOTHING, Chosen, takes_regions
from dpveil.cli.usual import Doubts, tell, tell_chosen, tell_costs, tell_drawn
from dpveil.errors import DPVeilError, PhotoError, UsageError

if TYPE_CHECKING:
    from dpveil.batch import Choices, Report, Task
    from dpveil.cli.seen import Seen
    from dpveil.ledger import Ledger
    from dpveil.mechanisms.method import Method


@takes_regions
@takes_method
def obfuscate_command(
    context: typer.Context,
    inputs: Annotated[list[Path], typer.Argument(metavar="INPUT", help="Photos, and folders of them.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            help="A folder, made if missing; for one photo, also a file, in a folder that exists.",
        ),
    ],
    method: Method,
    post_processing: PostProcessing = None,
    regions: Chosen = NOTHING,
    if_none: Annotated[
        Text,
        typer.Option(
            metavar="whole|copy",
            help="If no region is found, replace the whole photo (by one large face, if --method replaces"
            " faces), or copy it unprotected; default: refuse.",
        ),
    ] = None,
    at_least: AtLeast = None,
    names: Annotated[
        str,
        typer.Option(metavar="keep|number", help="Name outputs like inputs, or number them."),
    ] = "keep",
    manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one row per input to this .csv or .jsonl file."),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(metavar="PAGE.html", help="Write a page to check releases by eye. Keep it private."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Sign certificates with this private key (dpveil key new)."),
    ] = None,
    c2pa: Annotated[
        Path | None,
        typer.Option(
            metavar="CHAIN.pem",
            help="Mark pictures as made by a machine, in a C2PA manifest signed by the owner of this X.509"
            " certificate. Needs --c2pa-key.",
        ),
    ] = None,
    c2pa_key: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="The private key of --c2pa.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing outputs.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=256,
            help="Release photos in so many processes at once. Default: one for each core, where there are"
            " enough photos.",
        ),
    ] = None,
    json: AsJson = False,
    ledger: LedgerUrl = None,
    subject: Annotated[
        Text, typer.Option(metavar="NAME", help="Who pays from the ledger, such as studio/album-7.")
    ] = None,
    other_regions: Annotated[
        bool,
        typer.Option(
            "--other-regions",
            help="With --ledger: take photos whose earlier releases replaced other regions; their sum holds"
            " for what all of them replaced.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Reproduce: bits follow from this and each output's name. NOT FOR PUBLICATION.",
        ),
    ] = None,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Release photos with differential privacy, each with a certificate beside it.

    Without --method, every face is replaced by a face of nobody: nothing of it is kept.

    \b
    Examples:
      dpveil obfuscate photo.jpg --out private.png
      dpveil obfuscate photo.jpg --out private.png --method dp-pix --epsilon 2 --block 16 \\
          --neighbourhood 16 --regions 170,60,100,130
      dpveil obfuscate group.jpg --out private.png --attributes gender=1,age=1 --except 2
      dpveil obfuscate photos --out private --method dp-pix --epsilon 1 --block 32 --neighbourhood 16

    A folder's tree is mirrored under --out, as PNG files. One bad photo never stops the rest, and a rerun
    skips what is finished, so that nothing is paid for twice.

    --method dp-pix --help shows the options of dp-pix.
    """
    from dpveil.accounting.meaning import check_strength_name
    from dpveil.batch import Choices, check_manifest, plan_tasks, write_manifest
    from dpveil.cli.review import check_review, write_review
    from dpveil.cli.run_report import exit_code, print_report
    from dpveil.postprocessing import parse_all
    from dpveil.regions import check_if_none

    paying = _paying(ledger, subject, other_regions, seed, (manifest, review))
    choices = Choices(
        method=method,
        regions=method.accepts(regions.finders([method.regions])),
        post_processing=parse_all(post_processing or ()),
        if_none=check_if_none(if_none),
        at_least=None if at_least is None else check_strength_name(at_least),
        seed=seed,
        max_pixels=max_pixels,
        force=force,
        **keys(sign, c2pa, c2pa_key),
        **paying,
    )
    tasks = plan_tasks(inputs, out, names=names)
    check_formats(choices.mark, (task.output for task in tasks))
    notes = _notes(inputs, tasks, out)
    if manifest is not None:
        check_manifest(manifest, tasks, replace=force)
    if review is not None:
        check_review(review, tasks, out, replace=force)
    report, seen = _released(context, tasks, choices, jobs, closely=review is not None)
    report.notes += notes
    listed = max(
        _written(manifest, partial(write_manifest, report)),
        _written(review, partial(write_review, seen.pages, report, max_pixels)),
    )
    print_report(report, json)
    _tell_faces(context, method, report, seen.doubts, seeded=seed is not None)
    _tell_budget(paying.get("ledger"), subject)
    return max(exit_code(report), listed)


def _paying(
    url: str | None,
    subject: str | None,
    other_regions: bool,
    seed: int | None,
    private: Sequence[Path | None],
) -> dict[str, Any]:
    """Return how releases are paid, as arguments of `Choices`; `private` are files about the run.

    The ledger is opened, and nothing that the run writes about itself may belong to it.
    """
    if (url is None) != (subject is None):
        missing, given = ("--ledger", "--subject") if url is None else ("--subject", "--ledger")
        raise UsageError(f"{given} needs {missing}", hint="name both, or neither")
    if url is None or subject is None:
        if other_regions:
            raise UsageError("--other-regions needs --ledger", hint="without one, nothing is compared")
        return {}
    from dpveil.batch import check_apart
    from dpveil.cli.ledger_words import check_limited
    from dpveil.ledger import Ledger
    from dpveil.ledger.subjects import check_subject

    if seed is not None:
        raise UsageError("a release with --seed is not paid for", hint="leave out --seed, or --ledger")
    check_subject(subject)
    opened = Ledger(url)
    check_apart(opened.files, [path for path in private if path is not None])
    check_limited(opened, subject)
    return {"ledger": opened, "subject": subject, "other_regions": other_regions}


def _released(
    context: typer.Context, tasks: Sequence[Task], choices: Choices, jobs: int | None, *, closely: bool
) -> tuple[Report, Seen]:
    """Release all photos; return the report, and what was seen of the releases."""
    from dpveil.batch import release_all, usual_jobs
    from dpveil.cli.seen import Seen, see, see_closely
    from dpveil.core.allocator import keep_freed

    keep_freed()
    seen = Seen()
    with bar(len(tasks), "releasing") as step:
        report = release_all(
            tasks,
            choices,
            jobs=jobs or usual_jobs(tasks),
            step=step,
            see=see_closely if closely else see,
            seen=seen.add,
            options=options_of(context),
        )
    return report, seen


def _tell_budget(ledger: Ledger | None, subject: str | None) -> None:
    """Say what the subject has spent, and what is left, and let go of the ledger."""
    if ledger is not None and subject is not None:
        try:
            say.note(ledger.show(subject).in_words())
        except DPVeilError as error:  # the releases are written, and the report says if it failed
            say.note(f"dpveil: {say.one_line(error)}")
        ledger.close()


def _tell_faces(
    context: typer.Context, method: Method, report: Report, doubts: Doubts, *, seeded: bool
) -> None:
    """Say what was unsure, what is promised, and what the user chose; and what else the default could do, or
    else that heads are drawn where nobody asked for it.
    """
    doubts.tell()
    promises = [entry.promise for entry in report.released if entry.promise]
    if not seeded:
        tell(method, promises)
    if is_default(context) and not seeded:
        faces = [len(promise.guarantees) for promise in promises if promise.faces]
        if any(faces):
            tell_costs(method, max(faces), of=len(faces))
    elif not context.meta.get(GIVEN, {}).get("gallery"):
        tell_drawn(method)
    if report.released:
        tell_chosen(method)


def _notes(inputs: list[Path], tasks: Sequence[Task], out: Path) -> list[str]:
    """Return notes on linked folders, which are not followed, and on releases among originals, if any.

    Raises `PhotoError` if there is nothing to release.
    """
    from dpveil.batch import among_originals, linked_folders
    from dpveil.io.names import shown

    notes, links, around = [], linked_folders(inputs, out), among_originals(inputs, tasks, out)
    if links:
        count = "1 linked folder was" if len(links) == 1 else f"{len(links)} linked folders were"
        notes.append(f"{count} left out, such as {shown(links[0])}: name it to release what it holds")
    if around is not None:
        where = f"releases in {shown(out)} lie among the originals of {shown(around)}"
        notes.append(f"{where}: keep them apart, so that no original is published for one")
    if not tasks:
        problem = "; ".join(["there are no photos among the inputs", *notes])
        raise PhotoError(problem, hint="name image files, or folders that contain some")
    return notes


def _written(path: Path | None, write: Callable[[Path], None]) -> int:
    """Write a file about the run, if any, and return an exit code; a failure is printed and stops nothing."""
    try:
        if path is not None:
            write(path)
    except Exception as error:  # noqa: BLE001  the releases are written, and their report is due
        say.note(f"dpveil: {say.one_line(error)}")
        return exits.IMPOSSIBLE
    return exits.DONE

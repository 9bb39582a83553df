"""`dpveil obfuscate --engine ray`: the same photos, released by the machines of a cluster into one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from dpveil.batch.report import check_manifest, write_manifest
from dpveil.batch.tasks import check_apart, photos_in
from dpveil.cli.command import options_of
from dpveil.cli.progress import bar
from dpveil.cli.run_report import exit_code, print_report, tell_terms
from dpveil.cli.say import Voice
from dpveil.core.urls import Url
from dpveil.datasets.releaser import KEY
from dpveil.errors import PhotoError, UnknownName, UsageError
from dpveil.io import is_present
from dpveil.io.folders import is_folder
from dpveil.io.names import show_path
from dpveil.scale import release_files
from dpveil.scale.files import FAILURES

if TYPE_CHECKING:
    from dpveil.ledger import Ledger


ENGINES: Final = ("ray",)
WITHOUT: Final = (
    "names format_ labels new_points keep_metadata keep_columns review sign c2pa c2pa_key force seed"
    " other_regions dry_run dpi pages trust_source"
)
"""Options of `obfuscate` that a store does not have."""


def released_by(
    engine: str,
    context: typer.Context,
    places: tuple[Sequence[Path], Path, Path | None],
    jobs: int | None,
    json: bool,
    settings: Mapping[str, Any],
    voice: Voice,
    *,
    ledger: Ledger | None,
) -> int:
    """Release photos by an engine, report on it, and return the exit code.

    `places` are the inputs, the store, and a manifest, if any. The opened `ledger` is closed before the first
    release, as workers open it by its URL in `settings`.
    """
    inputs, store, manifest = places
    _check(engine, context, store)
    photos = photos_in(inputs)
    if not photos:
        raise PhotoError("there are no photos among the inputs", hint="name image files, or folders of them")
    if manifest is not None:
        check_manifest(manifest, (), replace=False)
    if ledger is not None:
        check_apart(ledger.files, [*photos, store, store / KEY])
        ledger.close()

    with bar(len(photos), "releasing", quiet=voice.quiet) as step:
        report = release_files(photos, store=store, workers=jobs, step=step, **settings)
    if report.failed or report.no_region:
        report.notes.append(f"what was not released, and why, is in {show_path(store / FAILURES)}, too")
    if manifest is not None:
        write_manifest(report, manifest)
    print_report(report, json, voice, out=store)
    tell_terms((settings["method"], *settings["post_processing"]), voice)
    return exit_code(report)


def _check(engine: str, context: typer.Context, store: Path) -> None:
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    options = options_of(context)
    for name in WITHOUT.split():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            hint = f"leave it out, or release without --engine {engine}"
            raise UsageError(f"{options[name]} is not possible with --engine {engine}", hint=hint)
    out, kind = f"{options['out']} {show_path(store)}", f"a store of --engine {engine}"
    if isinstance(store, Url):
        problem = f"{out} has no locks, which {kind} needs"
        raise UsageError(problem, hint="name a folder that all machines see, and copy its releases later")
    if is_folder(store) and any(store.iterdir()) and not is_present(store / KEY):
        hint = "name a new folder that all machines see"
        raise UsageError(f"{out} holds something else than {kind}", hint=hint)

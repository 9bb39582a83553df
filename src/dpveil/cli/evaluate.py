"""`dpveil evaluate`: data sets × methods × attacks, in a folder that another machine can check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.bare import command
from dpveil.cli.command import options_of
from dpveil.cli.evaluate_choice import Asked, settings
from dpveil.cli.evaluate_choice import attacks as attacks_of
from dpveil.cli.options import AsJson, Quiet, Text
from dpveil.cli.progress import bar
from dpveil.cli.stopping import Interrupted, stopping
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.attacks.base import Attack
    from dpveil.bench.cells import Cell
    from dpveil.bench.data import Dataset
    from dpveil.bench.run import Job
    from dpveil.bench.table import Row


@stopping("cells that are done are kept: the same command computes the others")
def evaluate_command(
    context: typer.Context,
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="Folders of photos by person; or drawn, drawn-eyes, drawn-plates, drawn-scenes.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder; one that was stopped goes on.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All methods and attacks, in hours; or a few, in minutes.")
    ] = False,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="See `dpveil methods`; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Repeatable. Default: 0.5, 1, 5, 20 and 100.")
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Repeatable: pixels, restored(embedding), context+pixels; see the docs."
        ),
    ] = None,
    delta: Annotated[Text, typer.Option(metavar="D", help="δ, for methods that take it.")] = None,
    block: Annotated[str, typer.Option(metavar="B", help="Side of a block in pixels.")] = "8",
    neighbourhood: Annotated[
        list[str] | None, typer.Option(metavar="M", help="How many pixels, or all; repeatable. Default: 16.")
    ] = None,
    k: Annotated[
        list[str] | None,
        typer.Option(metavar="K", help="How many share a picture, for k-same; repeatable. Default: 5."),
    ] = None,
    codec: Annotated[
        Text, typer.Option(metavar="FILE", help="A model of dpveil train, for k-same-m. Default: eigenfaces.")
    ] = None,
    metric: Annotated[
        Text, typer.Option(metavar="NAME", help="box-mean, chord, ...: metric privacy, for latent.")
    ] = None,
    regions: Annotated[
        Text,
        typer.Option(
            metavar="KIND", help="whole, faces, or a box x,y,w,h of every photo. Default: each method's own."
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="KIND", help="photos: all are known. people: attackers learn from others.")
    ] = "photos",
    releases: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="How many releases of each photo attackers get.")
    ] = 1,
    people: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Of each data set at most N.")
    ] = None,
    photos: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Of each person at most N photos.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=512, help="Processes. Default: one a core.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the noise.")] = 0,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Check a run: its tables follow from its cells; with DATA, some anew."
        ),
    ] = None,
    check_all: Annotated[
        bool,
        typer.Option(
            "--check-all", help="With --check and DATA: every cell anew, in as long as the run took."
        ),
    ] = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> int:
    """Attack releases of people's photos by several methods, and measure what is left of the photos.

    \b
    Examples:
      dpveil evaluate att_faces --out results
      dpveil evaluate faces --out results --method dp-pix --epsilon 1 --epsilon 10 --attack pixels
      dpveil evaluate --check results

    The folder gets results.csv, utility.csv, results.json and report.html, which needs no network. Noise is
    seeded so that the run can be made again: nothing in it is for publication but the numbers.
    """
    if check is not None or check_all:
        return _check(check, data or [], attack or [], json, every=check_all, quiet=quiet)
    if not data or out is None:
        raise UsageError(f"{'--out' if data else 'DATA'} is missing", hint="dpveil evaluate DATA --out OUT")
    from dpveil.bench.data import check_readable
    from dpveil.bench.folder import begin, finish
    from dpveil.bench.run import Job, cores, took

    asked = Asked(
        methods=tuple(method or ()),
        budgets=tuple(epsilon or ()),
        delta=delta,
        block=block,
        neighbourhoods=tuple(neighbourhood or ()),
        metric=metric,
        k=tuple(k or ()),
        codec=codec,
        regions=regions,
        releases=releases,
        full=full,
        photos=photos,
    )
    sets = _sets(data, people, asked.most_photos, split)
    chosen, notes = settings(asked, sets, options_of(context))
    attacks, left = attacks_of(attack or (), asked=asked, chosen=chosen, split=split)
    check_readable(sets)
    work = [Job(one, each, _about(attacks, one, every=bool(attack)), seed) for one in sets for each in chosen]
    replaced = begin(out, [key for job in work for key in job.keys])
    for text in (*replaced, *notes, *left):
        say.note(f"note: {text}")
    cells = _run(work, out, jobs or cores(), quiet=quiet)
    table = finish(out, cells, command(), (*notes, *left), took(work, out))
    return _told(table, out, json)


def _sets(folders: Sequence[Path], people: int | None, photos: int | None, divided: str) -> list[Dataset]:
    """Return the data sets; raises `UsageError` for those that cannot be split, and two of one name."""
    from dpveil.bench.data import SPLITS, load, split

    if divided not in SPLITS:
        raise UsageError(f"--split {divided} is none", hint=" or ".join(SPLITS))
    sets = [replace(load(folder, people=people, photos=photos), split=divided) for folder in folders]
    if len({one.name for one in sets}) < len(sets):
        raise UsageError("two data sets have the same name", hint="rename one folder, or run them apart")
    for one in sets:
        split(one)
    return sets


def _about(attacks: tuple[Attack, ...], dataset: Dataset, *, every: bool) -> tuple[Attack, ...]:
    """Return the attacks on what a data set shows, and those that were asked for in any case."""
    return tuple(one for one in attacks if every or one.about in ("", dataset.subject))


def _told(table: Sequence[Row], out: Path, json: bool) -> int:
    from dpveil.bench.bounds import up
    from dpveil.bench.league import cautions, leagues
    from dpveil.bench.report import alarm

    broken = [alarm(row) for row in table if row.above]
    if json:
        say.document({"out": str(out), "results": [dict(row.values) for row in table], "broken": broken})
    else:
        say.answer("Share of releases that the strongest attack names, with 95 % intervals:")
        for league in leagues(table, ()):
            say.answer(f"{league.dataset}: {league.title}")
            for place in league.places:
                bound = "" if place.bound is None else f", bound {up(place.bound, 2)}"
                told = ", ".join(filter(None, (place.method, place.settings)))
                rate = f"{place.risk:.2f} [{place.low:.2f}, {place.high:.2f}]"
                say.answer(f"  {rate}  {told} (by {place.by}{bound})")
        say.answer(f"wrote {out / 'report.html'}")
    for text in cautions(table):
        say.note(f"note: {text}")
    for text in broken:
        say.note(text)
    return exits.INCOMPLETE if broken else exits.DONE


def _run(work: Sequence[Job], out: Path, processes: int, *, quiet: bool) -> list[Cell]:
    """Return the cells of all jobs; says on Ctrl-C how many are there, and how the others come."""
    from dpveil.bench.run import count, run

    try:
        with bar(len(work), "settings", quiet=quiet) as step:
            return run(work, out, processes=processes, step=step)
    except KeyboardInterrupt as error:
        done = f"{count(work, out)} of {sum(len(job.keys) for job in work)} cells"
        told = f"interrupted; {done} are done and kept"
        raise Interrupted(told, hint="the same command computes the others") from error


@stopping("no cell was changed")
def _check(
    folder: Path | None, data: Sequence[Path], names: Sequence[str], json: bool, *, every: bool, quiet: bool
) -> int:
    from dpveil.bench.check import again, check, left_out, other_code, reported

    if folder is None or (every and not data):
        raise UsageError("--check-all needs a run and its data", hint="dpveil evaluate --check FOLDER DATA")
    cells, problems = check(folder)
    repeated = 0
    if not problems and data:
        with bar(len(cells) if every else 0, "cells", quiet=quiet) as step:
            repeated, problems = again(cells, data, names, every=every, step=step)
        for text in left_out(cells, names):
            say.note(f"note: {text}")
    same = reported(folder, cells) if cells and not problems else None
    problems += ["report.html is not what the cells say"] * (same is False)
    if other_code(cells) or (cells and same is None and not problems):
        say.note("note: some was computed by other code than this, and report.html was not compared")
    if json:
        say.document({"cells": len(cells), "repeated": repeated, "problems": problems})
    elif not problems:
        more = f", and {repeated} were computed again and are the same" if data else ""
        say.answer(f"{folder}: the tables are what {len(cells)} cells say{more}")
    for text in problems:
        say.note(text)
    return exits.INCOMPLETE if problems else exits.DONE

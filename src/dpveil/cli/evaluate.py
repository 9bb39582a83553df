"""`dpveil evaluate`: data sets × methods × attacks, in a folder that another machine can check."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpveil.attacks.combined import attack, missing
from dpveil.bench.bounds import up
from dpveil.bench.data import Dataset, check_readable, load
from dpveil.bench.league import cautions, leagues
from dpveil.bench.report import alarm
from dpveil.bench.run import Job, begin, count, finish, run
from dpveil.bench.setting import Setting, can_be_regions
from dpveil.catalogue import build
from dpveil.cli import exits, say
from dpveil.cli.command import options_of
from dpveil.cli.compare import lines_of, neighbourhoods_of
from dpveil.cli.options import AsJson, Quiet, Text, number
from dpveil.cli.progress import Interrupted, bar, stopping
from dpveil.core.registry import ATTACKS, FACES, METHODS
from dpveil.errors import UnknownName, UsageError
from dpveil.processes import cores

if TYPE_CHECKING:
    from dpveil.attacks.base import Attack
    from dpveil.bench.table import Row


QUICK: Final = {
    "methods": ("dp-pix", "dp-samp", "dp-svd", "snow"),
    "budgets": ("0.5", "1", "5", "20", "100"),
    "attacks": ("pixels", "restored", "embedding", "network"),
}
"""What a run compares unless it is told; `--full` takes all methods and attacks that are installed."""
SEVERAL: Final = ("averaged",)
"""Attacks on several releases of one photo, which are run where there are some."""
AROUND: Final = ("placement", "context", "context+placement", "outside(network)")
"""Attacks that look beside the regions, which are run where regions are not the whole photo."""
PLAIN: Final = ("blur", "mosaic", "fill")
"""Methods that promise nothing, which every run shows beside the others."""
FULL_PHOTOS: Final = 10
"""Most photos of a person in a full run, unless it is told: some people of LFW have hundreds."""


@dataclass(frozen=True)
class Asked:
    """What the user asked for, in the user's words; None or nothing for what was not said."""

    methods: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    delta: str | None = None
    block: str = "8"
    neighbourhoods: tuple[str, ...] = ()
    metric: str | None = None
    regions: str | None = None
    releases: int = 1
    full: bool = False
    photos: int | None = None

    @property
    def most_photos(self) -> int | None:
        """How many photos of each person are taken at most; None for all."""
        return FULL_PHOTOS if self.full and self.photos is None else self.photos


def settings(
    asked: Asked, sets: Sequence[Dataset], options: Mapping[str, str]
) -> tuple[list[Setting], list[str]]:
    """Return the settings that are compared, photos as they are first, and notes on what is left out.

    `options` say what an argument is called in errors. Raises `UsageError` and `InvalidParameter`.
    """
    names = tuple(dict.fromkeys(asked.methods or (METHODS.rows if asked.full else QUICK["methods"])))
    for name in names:
        if name not in METHODS:
            raise UnknownName("method", name, METHODS)
    if not can_be_regions(asked.regions):
        problem = f"--regions {asked.regions} is none of evaluate's"
        raise UsageError(problem, hint="whole, faces or a box x,y,w,h")
    notes = []
    known = {name: {field.name for field in fields(METHODS[name])} for name in names}
    for option, given, sign in (("epsilon", asked.budgets, "ε"), ("delta", asked.delta, "δ")):
        without = [name for name in names if option not in known[name]]
        told = f"{', '.join(without)} {'takes' if len(without) == 1 else 'take'} no {sign}"
        if given and len(without) == len(names):
            raise UsageError(told, hint=f"leave out --{option}")
        if given and without and option == "epsilon":
            notes.append(f"{told}: --epsilon changes nothing there")
    alone = "everybody is in one photo, and attackers have that photo itself"
    notes += [f"{one.name}: {alone}" for one in sets if one.has_single_photos]
    if asked.most_photos != asked.photos:
        notes.append(f"of each person at most {FULL_PHOTOS} photos are taken: --photos says how many")
    # as the default does, some keep nothing unless they are told, and then cost nothing
    free = [name for name in names if () in METHODS[name].budgets and asked.methods and not asked.budgets]
    lines, more = lines_of(
        (*(name for name in PLAIN if name not in names), *(one for one in names if one not in free)),
        asked.budgets or (("1", "10", "100") if asked.full else QUICK["budgets"]),
        neighbourhoods_of(asked.neighbourhoods or ("16",)),
        every=asked.full and not asked.methods,
        options=options,
        delta=asked.delta,
        block=number(asked.block),
        metric=asked.metric,
    )
    methods = dict.fromkeys(one for line in lines for one in line.methods if one is not None)
    methods |= dict.fromkeys(build(name, {}) for name in free)
    own = [Setting(one, asked.regions, releases=asked.releases) for one in methods]
    return [Setting(None), *own], [*notes, *more]


def attacks_on(
    names: Sequence[str], *, asked: Asked, chosen: Sequence[Setting]
) -> tuple[tuple[Attack, ...], list[str]]:
    """Return the attacks with these names, or the usual ones on the `chosen` settings, and notes on those
    that cannot run; one that was asked for is refused.
    """
    usual = [name for name in ATTACKS if name not in SEVERAL] if asked.full else [*QUICK["attacks"]]
    if asked.releases > 1:
        usual += SEVERAL
    if asked.regions not in (None, "whole") or any(one.name in FACES.rows for one in chosen):
        usual += AROUND
    made: list[Attack] = []
    notes: list[str] = []
    for name in dict.fromkeys(names or usual):
        one = attack(name)
        lacking = missing(one)
        needs, hint = "needs what is not installed", f"pip install 'dpveil[{','.join(lacking)}]'"
        if not lacking:
            made.append(one)
        elif names:
            raise UsageError(f"the attack {name} {needs}", hint=hint)
        else:
            notes.append(f"the attack {name} is left out, as it {needs}: {hint}")
    return tuple(made), notes


def command() -> str:
    """Return the command line without the folders of its paths: where they lie is nobody's business."""
    text = f"dpveil {shlex.join(map(_without_folders, sys.argv[1:]))}"
    return text.encode("utf-8", "replace").decode()  # names of files may be no text


def _without_folders(word: str) -> str:
    """Return a word without the folders of the paths in it.

    >>> [_without_folders(word) for word in ("--out=/home/me/results/", "embedding:/home/me/own.onnx", "1/3")]
    ['--out=results', 'embedding:own.onnx', '1/3']
    """
    parts = re.split(r"([:=()+,])", word)
    is_path = [part[:1] in ("/", "~", ".") or ("/" in part and Path(part).exists()) for part in parts]
    return "".join(Path(part).name if named else part for part, named in zip(parts, is_path, strict=True))


@stopping("cells that are done are kept: the same command computes the others")
def evaluate_command(
    context: typer.Context,
    data: Annotated[
        list[Path] | None, typer.Argument(metavar="[DATA]...", help="Folders of photos by person; or drawn.")
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
    metric: Annotated[
        Text, typer.Option(metavar="NAME", help="box-mean, chord, ...: metric privacy, for latent.")
    ] = None,
    regions: Annotated[
        Text,
        typer.Option(
            metavar="KIND", help="whole, faces, or a box x,y,w,h of every photo. Default: each method's own."
        ),
    ] = None,
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
        Path | None, typer.Option(metavar="FOLDER", help="Check a run: its tables follow from its cells.")
    ] = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> int:
    """Attack releases of people's photos by several methods, and measure what is left of the photos.

    \b
    Examples:
      dpveil evaluate att_faces --out results
      dpveil evaluate faces --out results --method dp-pix --epsilon 1 --epsilon 10 --attack pixels
      dpveil evaluate --check results

    The folder gets results.csv, utility.csv and report.html, which needs no network. Noise is
    seeded so that the run can be made again: nothing in it is for publication but the numbers.
    """
    if check is not None:
        return _check(check, json)
    if not data or out is None:
        raise UsageError(f"{'--out' if data else 'DATA'} is missing", hint="dpveil evaluate DATA --out OUT")

    asked = Asked(
        methods=tuple(method or ()),
        budgets=tuple(epsilon or ()),
        delta=delta,
        block=block,
        neighbourhoods=tuple(neighbourhood or ()),
        metric=metric,
        regions=regions,
        releases=releases,
        full=full,
        photos=photos,
    )
    sets = [load(folder, people=people, photos=asked.most_photos) for folder in data]
    if len({one.name for one in sets}) < len(sets):
        raise UsageError("two data sets have the same name", hint="rename one folder, or run them apart")
    chosen, notes = settings(asked, sets, options_of(context))
    attacks, left = attacks_on(attack or (), asked=asked, chosen=chosen)
    check_readable(sets)
    work = [Job(one, each, attacks, seed) for one in sets for each in chosen]
    replaced = begin(out, [key for job in work for key in job.keys])
    for text in (*replaced, *notes, *left):
        say.note(f"note: {text}")
    try:
        with bar(len(work), "settings", quiet=quiet) as step:
            cells = run(work, out, processes=jobs or cores(), step=step)
    except KeyboardInterrupt as error:
        done = f"{count(work, out)} of {sum(len(job.keys) for job in work)} cells"
        hint = "the same command computes the others"
        raise Interrupted(f"interrupted; {done} are done and kept", hint=hint) from error
    table = finish(out, cells, command(), (*notes, *left))
    return _print_results(table, out, json)


def _print_results(table: Sequence[Row], out: Path, json: bool) -> int:
    broken = [alarm(row) for row in table if row.above]
    if json:
        say.document({"out": str(out), "results": [dict(row.values) for row in table], "broken": broken})
    else:
        say.answer("Share of releases that the strongest attack names, with 95 % intervals:")
        for league in leagues(table, ()):
            told = f" - not ranked: {league.unranked}" * bool(league.unranked)
            say.answer(f"{league.dataset}: {league.title}{told}")
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


def _check(folder: Path, json: bool) -> int:
    from dpveil.bench.run import check, other_code

    cells, problems = check(folder)
    if other_code(cells):
        say.note("note: some was computed by other code than this")
    if json:
        say.document({"cells": len(cells), "problems": problems})
    elif not problems:
        say.answer(f"{folder}: the tables are what {len(cells)} cells say")
    for text in problems:
        say.note(text)
    return exits.INCOMPLETE if problems else exits.DONE

"""`dpveil synthesize`: a synthetic data set of faces, with one promise for all photos of a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.card import COLUMN, FOLDERS
from dpveil.cli.options import AsJson, LedgerUrl, Quiet, Text
from dpveil.cli.progress import bar
from dpveil.cli.stopping import stopping
from dpveil.cli.synthesize_paid import Payer
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.cli.synthesize_photos import Points
    from dpveil.ledger import Reservation
    from dpveil.noise.bits import BitSource
    from dpveil.synthesis import Plan, Simulator
    from dpveil.synthesis.certificate import SetCertificate


@stopping("nothing was made, and nothing is paid")
def synthesize_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Photos in a folder for each person, or shards.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder for the data set.")],
    epsilon: Annotated[
        Text,
        typer.Option(metavar="E", help="What the set costs each person: 1 or less is strong.  [required]"),
    ] = None,
    delta: Annotated[
        Text,
        typer.Option(
            metavar="D", help="δ, well below one over the number of people, such as 1e-6.  [required]"
        ),
    ] = None,
    pictures: Annotated[int, typer.Option(metavar="N", help="Pictures to make.")] = 256,
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds of votes, which share the budget.")] = 1,
    candidates: Annotated[
        int | None,
        typer.Option(metavar="N", help="Faces to vote for. Default: a rule of ε, δ, rounds and people."),
    ] = None,
    crop: Annotated[
        str,
        typer.Option(metavar="KIND", help="face: the largest face of each photo. middle: its middle square."),
    ] = "face",
    codec: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A model of dpveil train gan, pca, mixture, ...; default: that of dpveil-faces.",
        ),
    ] = "default",
    table: Annotated[
        Text,
        typer.Option(
            "--people",
            metavar="TABLE",
            help="Who is in which photo: a CSV file; or folders, one for each person, whatever their names.",
        ),
    ] = None,
    subject_column: Annotated[
        Text, typer.Option(metavar="NAME", help="The table's column of people. Default: person.")
    ] = None,
    ledger: LedgerUrl = None,
    subject: Annotated[
        Text, typer.Option(metavar="NAME", help="Who pays from the ledger, such as studio/album-7.")
    ] = None,
    key: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="With --ledger: a name of this set, by which a retry finds it and pays nothing.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Reproducible, so not for publication.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Count people, say what the set promises and costs; read no photo, pay nothing."
        ),
    ] = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> int:
    """Make a synthetic data set of faces that is (ε, δ)-private for all photos of each person together.

    \b
    Examples:
      dpveil synthesize faces/ --out made --epsilon 1 --delta 1e-6 --dry-run
      dpveil synthesize faces/ --out made --epsilon 1 --delta 1e-6
      dpveil synthesize faces/ --out made --epsilon 1 --delta 1e-6 --people who.csv
      dpveil verify made

    People's photos vote for faces of nobody, and only noisy counts of votes are kept (Private Evolution).
    Neighbours are two sets of photos of the same number of people, of whom one is replaced with all photos:
    how many people there are is public. People are folders, or `person` in the .json of shards; a photo
    without a person counts as one. With --people every photo needs one person: a folder, or a row of a
    table with the columns `file` and `person`. Choose every option without looking at the photos. Exit code
    1: the set was made, and some photos could not be read. Exit code 3: the ledger has less left than the
    set costs. Once a ledger has paid, the set is written before Ctrl-C ends the command.
    """
    from dpveil.cli.synthesize_photos import Album, check_apart, crop_of, embedded
    from dpveil.synthesis import Plan, Simulator

    payer = Payer(ledger, subject, key, seed)
    payer.check_new(out)
    check_apart(out, folder)
    album = Album.of(folder, _whose(table, subject_column))
    _note(album.notes)
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pictures": pictures, "rounds": rounds}
    settings |= {"candidates": candidates, "crop": crop, "codec": codec}
    plan = Plan(people=album.people, **settings)
    _note(_expected(plan))
    if (there := payer.check(plan, out, dry=dry_run)) is not None:
        _tell(out, there, "skipped", json)
        return exits.DONE
    simulator = Simulator(plan.codec.held)
    cropped = crop_of(plan, simulator)
    if dry_run:
        _tell(out, _planned(plan, seed), "priced", json, photos=len(album.items))
        return exits.DONE
    points, failed = embedded(album, cropped, simulator, quiet=quiet)
    with payer.paying(plan, out) as paid:
        certificate = _made(out, plan, simulator, points, paid, seed, quiet=quiet)
        _tell(out, certificate, "synthesized", json, photos=len(album.items), failed=failed)
    return exits.INCOMPLETE if failed else exits.DONE


def _whose(table: str | None, column: str | None) -> tuple[Path, str] | str | None:
    """Return the table of people and its column, or `FOLDERS`, if either is named."""
    if table in (None, FOLDERS):
        if column is not None:
            raise UsageError("--subject-column needs a table", hint="give one with --people TABLE.csv")
        return table
    return Path(str(table)), COLUMN if column is None else column


def _note(notes: Iterable[str]) -> None:
    for text in notes:
        say.note(f"note: {text}")


def _made(
    out: Path,
    plan: Plan,
    simulator: Simulator,
    points: Points,
    paid: Reservation | None,
    seed: int | None,
    *,
    quiet: bool,
) -> SetCertificate:
    """Draw the set and write it; return its certificate, which a ledger that `paid` knows."""
    from dpveil.noise.bits import SecureBits, SeededBits
    from dpveil.synthesis import evolve
    from dpveil.synthesis.saving import save

    bits: BitSource = SecureBits() if seed is None else SeededBits(seed)
    with bar(plan.rounds, "rounds", quiet=quiet) as step:
        made = evolve(plan, simulator, points.rows, points.people, bits, step)
    return save(out, plan, made.pictures, bits, paid)


def _planned(plan: Plan, seed: int | None) -> SetCertificate:
    """Return the certificate of a set that is not made: of no files."""
    from dpveil.noise.bits import SECURE, SEEDED
    from dpveil.synthesis.certificate import SetCertificate

    return SetCertificate(plan=plan, bits=SECURE if seed is None else SEEDED, files={})


def _expected(plan: Plan) -> list[str]:
    """Return what to expect of a plan, before anything is read."""
    from dpveil.cards.people import headcount
    from dpveil.core.guarantee import counted
    from dpveil.release.explain import sentence
    from dpveil.synthesis.certificate import FAINT

    mean, vote = plan.people / plan.chosen, "votes" if plan.people == 1 else "vote"
    told = (
        f"{headcount(plan.people)} {vote} for {plan.chosen:,} candidates in {counted(plan.rounds, 'round')}:"
        f" {mean:.1f} votes each on average, under noise with a standard deviation of {plan.noise:.2g}"
    )
    return [told, *[FAINT] * plan.faint, sentence(plan.guarantee)]


def _tell(
    out: Path,
    certificate: SetCertificate,
    status: str,
    json: bool,
    *,
    photos: int = 0,
    failed: Sequence[str] = (),
) -> None:
    """Say what was made (`status` synthesized), is there since an earlier run (skipped), or would be made by
    a run that is not dry (priced).
    """
    from dpveil.core.guarantee import counted
    from dpveil.io.names import shown
    from dpveil.synthesis.plan import SHEET

    plan = certificate.plan
    for text in failed[:10]:
        say.note(f"left out: {text}")
    if len(failed) > 10:
        say.note(f"left out: {len(failed) - 10} more")
    if status == "skipped":
        say.note("skipped: the set of this --key is there, paid and intact; nothing was drawn")
    if json:
        sets: dict[str, Any] = {"synthesized": [], "skipped": []}
        sets[status] = [_entry(out, certificate)]
        say.document({**sets, "photos": photos, "failed": [*failed]})
        return
    would = "would be " if status == "priced" else ""
    promise = f"{counted(plan.pictures, 'picture')}, {plan.guarantee}: {certificate.strength}"
    say.answer(f"{out}: {would}{promise}")
    say.answer(f"neighbours    {plan.guarantee.relation.in_words()}")
    for text in plan.guarantee.scope.in_the_clear:
        say.answer(f"in the clear  {text}")
    for text in certificate.warnings:
        say.note(f"warning: {text}")
    look = f"look at {shown(out / SHEET)}; check the set with: dpveil verify {shown(out)}"
    say.note("a dry run reads no photo, draws, pays and writes nothing" if would else look)


def _entry(out: Path, certificate: SetCertificate) -> dict[str, Any]:
    """Return a set as JSON."""
    plan = certificate.plan
    return {
        "output": str(out),
        "guarantee": plan.guarantee.to_json(),
        "parameters": plan.parameters(),
        "candidates": plan.chosen,
        "noise": plan.noise,
        "strength": certificate.strength,
        "publishable": certificate.publishable,
        "warnings": list(certificate.warnings),
    }

"""`dpveil synthesize`: a synthetic data set of faces, with one promise for all photos of a person."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.card import COLUMN
from dpveil.cli.options import AsJson, LedgerUrl, Text
from dpveil.cli.progress import bar
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.cli.synthesize_photos import Album
    from dpveil.noise.bits import BitSource
    from dpveil.synthesis import Plan
    from dpveil.synthesis.certificate import SetCertificate


def synthesize_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Photos in a folder for each person, or shards.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder for the data set.")],
    epsilon: Annotated[Text, typer.Option(metavar="E", help="What the set costs each person.")] = None,
    delta: Annotated[
        Text, typer.Option(metavar="D", help="δ, well below one over the number of people.")
    ] = None,
    pictures: Annotated[int, typer.Option(metavar="N", help="Pictures to make.")] = 256,
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds of votes, which share the budget.")] = 1,
    candidates: Annotated[
        int | None,
        typer.Option(metavar="N", help="Faces to vote for. Default: a rule of ε, δ, rounds and people."),
    ] = None,
    crop: Annotated[
        str,
        typer.Option(metavar="KIND", help="face: the largest one of each photo. middle: its middle square."),
    ] = "face",
    codec: Annotated[
        str, typer.Option(metavar="FILE", help="A model of dpveil train gan, pca, mixture, ...; or default.")
    ] = "default",
    table: Annotated[
        Text,
        typer.Option(
            "--people",
            metavar="TABLE",
            help="Who is in which photo: a CSV file, instead of names of folders and files.",
        ),
    ] = None,
    subject_column: Annotated[
        Text, typer.Option(metavar="NAME", help="The table's column of people. Default: person.")
    ] = None,
    ledger: LedgerUrl = None,
    subject: Annotated[
        Text, typer.Option(metavar="NAME", help="Who pays from the ledger, such as studio/album-7.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Reproducible, so not for publication.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Make a synthetic data set of faces that is (ε, δ)-private for all photos of each person together.

    \b
    Examples:
      dpveil synthesize faces/ --out made --epsilon 1 --delta 1e-6
      dpveil synthesize faces/ --out made --epsilon 1 --delta 1e-6 --people who.csv
      dpveil verify made

    People's photos vote for faces of nobody, and only noisy counts of votes are kept (Private Evolution).
    Neighbours are two sets of photos of the same number of people, of whom one is replaced with all photos:
    how many people there are is public. People are folders, or `person` in the .json of shards; a photo
    without a person counts as one. In a table, with the columns `file` and `person`, every photo needs one
    person. Choose every option without looking at the photos. Exit code 1: the set
    was made, and some photos could not be read.
    """
    from dpveil.cli.synthesize_photos import Album, embedded
    from dpveil.noise.bits import SecureBits, SeededBits
    from dpveil.synthesis import Plan, Simulator, evolve
    from dpveil.synthesis.saving import check_new, save

    check_new(out)
    album = Album.of(folder, _table(table, subject_column))
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pictures": pictures, "rounds": rounds}
    settings |= {"candidates": candidates, "crop": crop, "codec": codec}
    plan = Plan(people=album.people, **settings)
    simulator = Simulator(plan.codec.held)
    for text in (*album.notes, *_expected(plan)):
        say.note(f"note: {text}")
    _check_payer(ledger, subject, seed)
    points, failed = embedded(album, plan, simulator)
    bits: BitSource = SecureBits() if seed is None else SeededBits(seed)
    _pay(ledger, subject, plan)
    with bar(plan.rounds, "rounds") as step:
        made = evolve(plan, simulator, points.rows, points.people, bits, step)
    certificate = save(out, plan, made.pictures, bits)
    _tell(out, plan, certificate, album, failed, json)
    return exits.INCOMPLETE if failed else exits.DONE


def _table(table: str | None, column: str | None) -> tuple[Path, str] | None:
    """Return the table of people and its column, if one is named."""
    if table is None:
        if column is not None:
            raise UsageError("--subject-column needs a table", hint="give one with --people TABLE.csv")
        return None
    return Path(table), COLUMN if column is None else column


def _expected(plan: Plan) -> list[str]:
    """Return what to expect of a plan, before anything is read."""
    from dpveil.core.guarantee import counted
    from dpveil.synthesis.certificate import FAINT

    mean = plan.people / plan.chosen
    told = (
        f"{plan.people:,} people vote for {plan.chosen:,} candidates in {counted(plan.rounds, 'round')}:"
        f" {mean:.1f} votes each on average, under noise with a standard deviation of {plan.noise:.1f}"
    )
    return [told, FAINT] if plan.faint else [told]


def _check_payer(ledger: str | None, subject: str | None, seed: int | None) -> None:
    if (ledger is None) != (subject is None):
        missing, given = ("--ledger", "--subject") if ledger is None else ("--subject", "--ledger")
        raise UsageError(f"{given} needs {missing}", hint="name both, or neither")
    if ledger is not None and seed is not None:
        raise UsageError("a release with --seed is not paid for", hint="leave out --seed, or --ledger")


def _pay(url: str | None, subject: str | None, plan: Plan) -> None:
    """Debit the whole set from a ledger, if one is named, before anything is drawn."""
    if url is None or subject is None:
        return
    from dpveil.cli.ledger_words import check_limited
    from dpveil.ledger import Ledger

    opened = Ledger(url)
    try:
        check_limited(opened, subject)
        opened.debit(subject, plan.guarantee, secrets.token_bytes(16))
        say.note(opened.show(subject).in_words())
    finally:
        opened.close()


def _tell(
    out: Path, plan: Plan, certificate: SetCertificate, album: Album, failed: list[str], json: bool
) -> None:
    warnings = list(certificate.warnings)
    for text in failed[:10]:
        say.note(f"left out: {text}")
    if len(failed) > 10:
        say.note(f"left out: {len(failed) - 10} more")
    if json:
        made = {"output": str(out), "guarantee": certificate.plan.guarantee.to_json()}
        settings = {"parameters": plan.parameters(), "candidates": plan.chosen, "noise": plan.noise}
        told = {
            "strength": certificate.strength,
            "publishable": certificate.publishable,
            "warnings": warnings,
        }
        read = {"photos": len(album.items), "failed": failed}
        say.document({"synthesized": [{**made, **settings, **told}], **read})
        return
    say.answer(f"{out}: {plan.pictures:,} pictures, {plan.guarantee}: {certificate.strength}")
    say.answer(f"neighbours    {plan.guarantee.relation.in_words()}")
    for text in plan.guarantee.scope.in_the_clear:
        say.answer(f"in the clear  {text}")
    for text in warnings:
        say.note(f"warning: {text}")

"""`dpveil synthesize`: a synthetic data set of faces, with one promise for all photos of a person."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import typer

from dpveil.batch.interrupts import Interrupts
from dpveil.bench.dataset_layouts import LAYOUTS, items_of, layout_of, one_person_each
from dpveil.bench.items import Item
from dpveil.cli import exits, say
from dpveil.cli.ledger import check_limited
from dpveil.cli.options import AsJson, LedgerUrl, Payer, Quiet, Seed, Text
from dpveil.cli.progress import Interrupted, bar, stopping
from dpveil.cli.run_report import check_payer, tell_cost
from dpveil.core.array_types import Int64
from dpveil.core.guarantee import count_noun
from dpveil.core.photo import Photo
from dpveil.errors import DataError, PhotoError, UnknownName, UsageError
from dpveil.faces.geometry.align import Frame
from dpveil.faces.portrait_placement import canonical, centred
from dpveil.io.folders import DATA_SET, real
from dpveil.io.names import escape_text, show_path
from dpveil.io.untrusted_files import is_present
from dpveil.ledger import Ledger, Reservation
from dpveil.mechanisms.method import Image
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.regions.detectors import choose
from dpveil.release.explain import sentence
from dpveil.synthesis import SetPlan, Simulator, evolve
from dpveil.synthesis.plan import SHEET
from dpveil.synthesis.saving import FAINT, SetCertificate, check_new, save

if TYPE_CHECKING:
    from dpveil.synthesis.face_variations import Embedded


@contextmanager
def _paying(url: str | None, subject: str, plan: SetPlan, out: Path) -> Iterator[Reservation | None]:
    """Debit the whole set before anything is drawn, if there is a ledger, and hold it open.

    What is paid is written to `out` before Ctrl-C ends the command.
    """
    if url is None:
        yield None
        return
    with Ledger(url) as opened, Interrupts() as interrupts, interrupts.handled_by(lambda: None):
        paid = opened.debit(subject, plan.guarantee, secrets.token_bytes(16))
        say.note(opened.show(subject).in_words())
        yield paid
    if interrupts.presses:
        raise Interrupted("interrupted", hint=f"the set was paid, and {out} is complete")


Crop = Callable[[Photo], Image]
NOBODY = (
    "{} photos have no person's name and count as a person each: somebody in several of them is protected in"
    " one of them only; if somebody may be, give each person a folder"
)
FOLDERS = "folders"  # the value of --people for folders that are people
FLAT = "no photo is in a person's folder"
FOLDED = "each folder is a person, with the folders in it"


@dataclass(frozen=True)
class Album:
    """The photos of a folder, sorted by name, with the number of each one's person."""

    items: tuple[Item, ...]
    numbers: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def people(self) -> int:
        return max(self.numbers) + 1

    @classmethod
    def of(cls, folder: Path, *, folders: bool = False) -> Self:
        """Return the photos of a folder in one of the layouts of `dpveil evaluate`, and those in no folder.

        Layouts that split a person's photos are read as a folder for each person: one with eyes, where each
        eye is one, and UTKFace with photos in folders. With `folders` these are people, whatever the layout
        looks like.
        """
        if not folder.is_dir():
            hint = "give a folder with a folder for each person"
            raise UsageError(f"{show_path(folder)} is not a folder", hint=hint)
        layout = LAYOUTS[-1] if folders else layout_of(folder)
        if layout.name in ("CASIA-Iris", "UTKFace"):
            layout = LAYOUTS[-1]  # never one that gives photos of a folder several people
        beside = one_person_each(folder) if layout is LAYOUTS[-1] else []
        if beside and folders:
            told = f"{count_noun(len(beside), 'photo')} of {show_path(folder)} in no person's folder"
            problem = f"{told}, such as {escape_text(beside[0].name)}"
            raise DataError(problem, hint="move it into one, or leave out --people: each counts as a person")
        found = [*{item.name: item for item in (*items_of(folder, layout), *beside)}.values()]
        if not found:
            raise PhotoError(f"there are no photos in {folder}", hint="give a folder for each person")
        bare = sum(item.person.removeprefix("./") == item.name for item in found)
        how = f", read as {layout.name}: people are told apart by {layout.identity}"
        if layout is LAYOUTS[-1]:
            how = f": {FLAT if bare == len(found) else FOLDED}"
        # in NFC, as an accented letter may be written in several ways that look the same
        named = (replace(item, person=unicodedata.normalize("NFC", item.person)) for item in found)
        items = tuple(sorted(named, key=lambda item: item.name))
        known = {person: number for number, person in enumerate(sorted({item.person for item in items}))}
        notes = [f"{headcount(len(known))} with {count_noun(len(items), 'photo')}{how}"]
        if bare:
            one = "one photo has no person's name and counts as a person"
            notes.append(one if bare == 1 else NOBODY.format(f"{bare:,}"))
        return cls(items, tuple(known[item.person] for item in items), tuple(notes))


def headcount(count: int) -> str:
    """Return a number of people in words.

    >>> headcount(1), headcount(4260)
    ('1 person', '4,260 people')
    """
    return f"{count:,} {'person' if count == 1 else 'people'}"


def check_apart(out: Path, folder: Path) -> None:
    """Raise `UsageError` if `out` would lie among the photos, or a synthetic set is or lies among them.

    Its pictures would count as a person's.
    """
    why = "pictures would count as a person's"
    if real(out).is_relative_to(real(folder)):
        problem = f"{{out}} {show_path(out)} lies in {show_path(folder)}, where its {why}"
        raise UsageError(problem, hint="choose one beside it", arguments={"out": "out"})
    inside = [place for place in folder.iterdir() if not place.is_symlink()] if folder.is_dir() else []
    for place in (folder, *inside):
        if is_present(place / DATA_SET):
            problem = f"{show_path(place)} is a synthetic data set, and its {why}"
            raise UsageError(problem, hint="name the folder of the photos, and keep sets apart from them")


def embed_photos(
    album: Album, crop: Crop, simulator: Simulator, *, quiet: bool = False
) -> tuple[Embedded, Int64[np.ndarray, " n"], list[str]]:
    """Return what votes: a point for every photo that could be read, and the number of its person; and one
    line for each that could not.

    That there may be no points refuses nothing, as it depends on the photos.
    """
    rows: list[Embedded] = [np.empty((0, simulator.codec.length), np.int16)]
    people: list[int] = []
    failed: list[str] = []
    with bar(len(album.items), "photos", quiet=quiet) as step:
        for item, number in zip(album.items, album.numbers, strict=True):
            try:
                rows.append(simulator.embed(crop(item.read())))
                people.append(number)
            except PhotoError as error:
                failed.append(say.one_line(error))
            step()
    return np.concatenate(rows), np.array(people, np.int64), failed


@stopping("nothing was made, and nothing is paid")
def synthesize_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Photos in a folder for each person.")],
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
    people: Annotated[
        Text, typer.Option(metavar=FOLDERS, help="Folders are people, whatever their names.")
    ] = None,
    ledger: LedgerUrl = None,
    subject: Payer = None,
    seed: Seed = None,
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
      dpveil verify made

    People's photos vote for synthetic faces, and only noisy counts of votes are kept (Private Evolution).
    Neighbours are two sets of photos of the same number of people, of whom one is replaced with all photos:
    how many people there are is public. People are folders; a photo without a person counts as one. Choose
    every option without looking at the photos. Exit code 1: the set was made, and some photos could not be
    read. Exit code 3: the ledger has less left than the set costs. Once a ledger has paid, the set is written
    before Ctrl-C ends the command.
    """
    check_payer(ledger, subject, seed)
    if people not in (None, FOLDERS):
        raise UnknownName("people", people, (FOLDERS,))
    check_new(out)
    check_apart(out, folder)
    album = Album.of(folder, folders=people is not None)
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pictures": pictures, "rounds": rounds}
    settings |= {"candidates": candidates, "crop": crop, "codec": codec}
    plan = SetPlan(people=album.people, **settings)
    vote, among = "votes" if plan.people == 1 else "vote", count_noun(plan.rounds, "round")
    expected = (
        f"{headcount(plan.people)} {vote} for {plan.chosen:,} candidates in {among}:"
        f" {plan.people / plan.chosen:.1f} votes each on average, under noise with a standard deviation of"
        f" {plan.noise:.2g}"
    )
    for text in (*album.notes, expected, *[FAINT] * plan.faint, sentence(plan.guarantee)):
        say.note(f"note: {text}")
    if ledger is not None:
        with Ledger(ledger) as opened:  # closed again: none of its files may be among the photos
            check_limited(opened, str(subject))
            price = f"a set of {count_noun(plan.pictures, 'picture')}", [plan.guarantee], opened, str(subject)
            tell_cost(*price)
            opened.check_room(str(subject), [plan.guarantee])
    simulator = Simulator(plan.codec.held)
    side = simulator.codec.canvas[0]
    frame = Frame(side)
    if plan.crop == "face":
        choose("auto")  # refuses, if nothing finds faces here

    def cropped(photo: Photo) -> Image:
        return canonical(photo, frame) if plan.crop == "face" else centred(photo, (side, side, 3))

    if dry_run:
        bits = SECURE if seed is None else SEEDED
        _tell(out, SetCertificate(plan=plan, bits=bits, files={}), json, photos=len(album.items))
        return exits.DONE
    rows, numbers, failed = embed_photos(album, cropped, simulator, quiet=quiet)
    with _paying(ledger, str(subject), plan, out) as paid:
        source: BitSource = SecureBits() if seed is None else SeededBits(seed)
        with bar(plan.rounds, "rounds", quiet=quiet) as step:
            made = evolve(plan, simulator, rows, numbers, source, step)
        certificate = save(out, plan, made.pictures, source, paid)
        _tell(out, certificate, json, photos=len(album.items), failed=failed)
    return exits.INCOMPLETE if failed else exits.DONE


def _tell(
    out: Path, certificate: SetCertificate, json: bool, *, photos: int, failed: Sequence[str] = ()
) -> None:
    """Say what was made, or would be made by a run that is not dry: the certificate is of no files then."""
    plan = certificate.plan
    for text in failed[:10]:
        say.note(f"left out: {text}")
    if len(failed) > 10:
        say.note(f"left out: {len(failed) - 10} more")
    dry = not certificate.files
    if json:
        sets: dict[str, Any] = {"synthesized": []}
        entry = {
            "output": str(out),
            "guarantee": plan.guarantee.to_json(),
            "parameters": plan.parameters(),
            "candidates": plan.chosen,
            "noise": plan.noise,
            "strength": certificate.strength,
            "publishable": certificate.publishable,
            "warnings": list(certificate.warnings),
        }
        sets["priced" if dry else "synthesized"] = [entry]
        say.document({**sets, "photos": photos, "failed": [*failed]})
        return
    would = "would be " * dry
    promise = f"{count_noun(plan.pictures, 'picture')}, {plan.guarantee}: {certificate.strength}"
    say.answer(f"{out}: {would}{promise}")
    say.answer(f"neighbours    {plan.guarantee.relation.in_words()}")
    for text in plan.guarantee.scope.in_the_clear:
        say.answer(f"not hidden    {text}")
    for text in certificate.warnings:
        say.note(f"warning: {text}")
    look = f"look at {show_path(out / SHEET)}; check the set with: dpveil verify {show_path(out)}"
    say.note("a dry run reads no photo, draws, pays and writes nothing" if would else look)

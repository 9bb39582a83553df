"""`dpveil synthesize`: a synthetic data set of faces, with one promise for all photos of a person."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import typer

from dpveil.batch.interrupts import delay_interrupts
from dpveil.bench.items import Item, ShardPhoto
from dpveil.bench.layouts import LAYOUTS, SUFFIXES, Layout, all_photos, items_of, layout_of, one_person_each
from dpveil.cli import exits, say
from dpveil.cli.ledger import check_limited, digest_of
from dpveil.cli.options import AsJson, LedgerUrl, Quiet, Text
from dpveil.cli.people import COLUMN, FOLDERS, by_table, headcount, name_of, similar_names
from dpveil.cli.progress import Interrupted, bar, stopping
from dpveil.cli.run_report import check_payer, tell_cost
from dpveil.core.arrays import Int64
from dpveil.core.guarantee import count_noun
from dpveil.core.photo import Photo
from dpveil.errors import DataError, DPVeilError, PhotoError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import canonical, centred
from dpveil.io import is_present
from dpveil.io.folders import real, walk
from dpveil.io.names import escape_text, show_path
from dpveil.io.unreadable import Refused
from dpveil.ledger import Ledger, Reservation
from dpveil.mechanisms.placement import Image
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.regions.detectors import choose
from dpveil.release.explain import sentence
from dpveil.synthesis import Plan, Simulator, evolve
from dpveil.synthesis.plan import NAME, SHEET
from dpveil.synthesis.saving import FAINT, SetCertificate, check_new, is_set, read_set, save

if TYPE_CHECKING:
    from dpveil.synthesis.simulator import Embedded


class Payer:
    """Who pays for a set from which ledger, if one is named; with a `key`, a retry finds the set.

    Raises `UsageError` for options that do not belong together.
    """

    def __init__(self, ledger: str | None, subject: str | None, key: str | None, seed: int | None) -> None:
        check_payer(ledger, subject, seed)
        if key is not None and (ledger is None or not key):
            raise UsageError("--key needs --ledger and a name", hint="give all of them, or leave out --key")
        self._url, self._subject, self._key = ledger, subject or "", key
        self._opened: Ledger | None = None

    def check_new(self, out: Path) -> None:
        """Raise `OutputError` unless `out` is free for a new set, or may be the set of an earlier run."""
        if self._key is None or not is_set(out):
            check_new(out)

    def check(self, plan: Plan, out: Path, *, dry: bool = False) -> SetCertificate | None:
        """Raise any error of paying for a set, before photos are read; return the one of this key at `out`.

        Says what the set will cost, if it has to be paid; in a `dry` run also if that is more than is left.
        Raises `DPVeilError` if the set of this key is not there, `BudgetRefused`, `LedgerError` and
        `OutputError`.
        """
        if self._url is None:
            return None

        self._opened = Ledger(self._url)
        try:
            check_limited(self._opened, self._subject)
            found = () if self._key is None else self._opened.find(self._subject, self._key)
            if not found:
                check_new(out)
                self._check_price(self._opened, plan, dry=dry)
        finally:
            self._opened.close()  # photos are read next, and no file of a ledger may be among them
        return _existing_set(found, plan, out) if found else None

    def _check_price(self, ledger: Ledger, plan: Plan, *, dry: bool) -> None:
        """Say what a set will cost; raise `BudgetRefused` if that is more than is left, and then say it only
        in a `dry` run.
        """
        price = f"a set of {count_noun(plan.pictures, 'picture')}", [plan.guarantee], ledger, self._subject
        if dry:
            tell_cost(*price)
        ledger.check_room(self._subject, [plan.guarantee])
        if not dry:
            tell_cost(*price)

    @contextmanager
    def paying(self, plan: Plan, out: Path) -> Iterator[Reservation | None]:
        """Debit the whole set before anything is drawn, if there is a ledger, and hold it open.

        What is paid is written to `out` before Ctrl-C ends the command.
        """
        if self._opened is None:
            yield None
            return

        paid = None
        try:
            with delay_interrupts():
                key = secrets.token_bytes(16) if self._key is None else self._key
                paid = self._opened.debit(self._subject, plan.guarantee, key)
                say.note(self._opened.show(self._subject).in_words())
                yield paid
        except KeyboardInterrupt as error:
            if error.__context__ is not None:  # what failed is to be told
                raise error.__context__ from None
            if paid is None:  # it came before signals were held
                raise
            raise Interrupted("interrupted", hint=f"the set was paid, and {out} is complete") from error
        finally:
            self._opened.close()


def _existing_set(found: tuple[str, ...], plan: Plan, out: Path) -> SetCertificate:
    """Return the certificate of the set at `out` if it is the paid one, intact, and with these settings.

    Raises `DPVeilError` for any other, which says where the paid set is, or how to know it.
    """
    if not _is_paid(out, found):
        raise _other_folder_error(found, out)
    (made, problems), own = read_set(out), plan.parameters()
    problem = f"{show_path(out)} is the set that was paid for this key, but"
    if made is None or problems:
        hint = (
            "get an intact copy of it, which costs nothing, or choose another --key, for a set that is paid"
        )
        raise DPVeilError(f"{problem} {escape_text(problems[0])}", hint=hint)
    stated = made.plan.parameters()
    if other := [_setting(name, stated[name]) for name in own if stated[name] != own[name]]:
        hint = "ask for these settings, or choose another --key and another --out, for a set that is paid"
        raise DPVeilError(f"{problem} it was made with other settings: {', '.join(other)}", hint=hint)
    return made


def _setting(name: str, value: object) -> str:
    return f"{name} {'by default' if value is None else value}"


def _other_folder_error(found: tuple[str, ...], out: Path) -> DPVeilError:
    """Return the error for a retry with another folder than that of the paid set, which its hash tells."""
    problem = "the set of this --key was paid and written already"
    known = f"dpveil verify says {say.hash_in_short(found[-1])} of its folder"
    hint = (
        f"{known}: use that one, which costs nothing; if it is lost, another --key makes and pays another set"
    )
    return DPVeilError(f"{problem}, and {show_path(out)} is not that set", hint=hint)


def _is_paid(place: Path, found: tuple[str, ...]) -> bool:
    """Whether a set with one of these hashes is at a place."""
    with suppress(Refused):
        return is_set(place) and digest_of(place) in found
    return False


Crop = Callable[[Photo], Image]
NOBODY = (
    "{} photos have no person's name and count as a person each: somebody in several of them is protected in"
    " one of them only; if somebody may be, give each person a folder, or a row for each photo in a table"
    " (--people)"
)
MISSED = "{} in the folder left out: links, or too deep"
MISPLACED = (
    f"{MISSED}, or not where this layout has photos; --people folders reads a folder for each person,"
    " whatever it looks like"
)
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
        """How many people there are."""
        return max(self.numbers) + 1

    @classmethod
    def of(cls, folder: Path, whose: tuple[Path, str] | str | None = None) -> Self:
        """Return the photos of a folder in one of the layouts of `dpveil evaluate`, and those in no folder.

        Layouts that split a person's photos are read as a folder for each person: one with eyes, where each
        eye is one, and UTKFace with photos in folders. `whose` may be a table, a CSV file and its column of
        people: then these are all photos of the folder, and folders and names say nothing of whose they are.
        Any text says that folders are people, whatever the layout looks like.

        Raises `UsageError` for what is no folder, `PhotoError` if there is no photo, and `DataError` unless
        the table says of every photo, and of nothing else, who the one person in it is; or every photo is in
        a person's folder, if these are named.
        """
        if not folder.is_dir():
            hint = "give a folder with a folder for each person, or the one that shards are in"
            raise UsageError(f"{show_path(folder)} is not a folder", hint=hint)
        if isinstance(whose, tuple):
            found, notes = _by_table(folder, *whose)
        else:
            found, notes = _by_folder(folder) if whose else _by_layout(folder)
        if not found:
            raise PhotoError(
                f"there are no photos in {folder}", hint="give a folder for each person, or shards"
            )
        named = (replace(item, person=name_of(item.person)) for item in found)
        items = tuple(sorted(named, key=lambda item: item.name))
        known = {person: number for number, person in enumerate(sorted({item.person for item in items}))}
        people = f"{headcount(len(known))} with {count_noun(len(items), 'photo')}"
        told = (
            f"{people}{notes[0]}",
            *similar_names(item.person for item in found if not _is_unnamed(item)),
            *notes[1:],
        )
        return cls(items, tuple(known[item.person] for item in items), told)


def _by_layout(folder: Path) -> tuple[list[Item], list[str]]:
    """Return photos as their layout says whose they are; how it does, and what else to know of it."""
    layout = _layout(folder)
    found = {item.name: item for item in (*items_of(folder, layout), *_photos_of_nobody(folder, layout))}
    items = [*found.values()]
    how = f", read as {layout.name}: people are told apart by {layout.identity}"
    if layout is LAYOUTS[-1]:
        how = f": {FLAT if all(map(_is_unnamed, items)) else FOLDED}"
    return items, [how, *_nameless_notes(items), *_left_out(folder, items, MISPLACED)]


def _by_folder(folder: Path) -> tuple[list[Item], list[str]]:
    """Return the photos in folders, each of which is a person; raises `DataError` for any beside them."""
    beside, items = one_person_each(folder), items_of(folder, LAYOUTS[-1])
    if beside:
        problem = (
            f"{count_noun(len(beside), 'photo')} of {show_path(folder)} {_are(len(beside))}"
            " in no person's folder"
        )
        hint = (
            "move them into one, name people in a table, or leave out --people, and each counts as a person"
        )
        raise DataError(f"{problem}: {_names_text([item.name for item in beside])}", hint=hint)
    return items, [f": {FOLDED}", *_left_out(folder, items, MISSED)]


def _by_table(folder: Path, table: Path, column: str) -> tuple[list[Item], list[str]]:
    """Return all photos, each of the one person that a table names; raises `DataError` for any other."""
    items = all_photos(folder)
    people = by_table(table, column, [item.name for item in items], folder) if items else {}
    nobody = [item.name for item in items if item.name not in people]
    several = [item.name for item in items if len(people.get(item.name, ())) > 1]
    for names, what in ((nobody, "no person"), (several, "several people")):
        if names:
            have = f"{count_noun(len(names), 'photo')} {'has' if len(names) == 1 else 'have'}"
            problem = (
                f"{have} {what} in the column {escape_text(column)} of {show_path(table)}:"
                f" {_names_text(names)}"
            )
            hint = "name one person for each photo, or take photos out of the folder"
            raise DataError(problem, hint=hint)
    own = [replace(item, person=person) for item in items for person in people[item.name]]
    how = f"; people are told apart by the column {escape_text(column)} of {show_path(table)}"
    return own, [how, *_left_out(folder, own, MISSED)]


def _names_text(names: list[str]) -> str:
    """Return the first name, and how many more there are."""
    return escape_text(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def check_apart(out: Path, folder: Path) -> None:
    """Raise `UsageError` if `out` would lie among the photos, or a synthetic set is or lies among them.

    Its pictures would count as a person's.
    """
    if real(out).is_relative_to(real(folder)):
        problem = (
            f"{{out}} {show_path(out)} lies in {show_path(folder)}, where its pictures"
            " would count as a person's"
        )
        raise UsageError(problem, hint="choose one beside it", arguments={"out": "out"})
    for place in (folder, *(_folders(folder) if folder.is_dir() else ())):
        if is_present(place / NAME):
            problem = (
                f"{show_path(place)} is a synthetic data set, and its pictures would count as a person's"
            )
            hint = "name the folder of the photos, and keep sets apart from them"
            raise UsageError(problem, hint=hint)


def _folders(folder: Path) -> list[Path]:
    return [place for place in folder.iterdir() if place.is_dir() and not place.is_symlink()]


def _layout(folder: Path) -> Layout:
    """Return the layout of a folder of people: never one that gives photos of a folder several of them."""
    found = layout_of(folder)
    return found if found.subject == "faces" and found.name != "UTKFace" else LAYOUTS[-1]


def _photos_of_nobody(folder: Path, layout: Layout) -> list[Item]:
    """Return photos that lie in no person's folder, if the layout has such folders."""
    return one_person_each(folder) if layout is LAYOUTS[-1] else []


def _nameless_notes(items: list[Item]) -> list[str]:
    """Return what to know of photos without a person's name, if there are some."""
    bare = sum(map(_is_unnamed, items))
    if bare == 1:
        return ["one photo has no person's name and counts as a person"]
    return [NOBODY.format(f"{bare:,}")] if bare else []


def _is_unnamed(item: Item) -> bool:
    return item.person.removeprefix("./") == item.name


def _left_out(folder: Path, items: list[Item], words: str) -> list[str]:
    """Return in `words` how many photos in a folder do not vote, if there are some.

    Hidden files are not counted.
    """
    there = sum(path.suffix.lower() in SUFFIXES for path, _ in walk(folder))
    missed = there - sum(not isinstance(item, ShardPhoto) for item in items)
    return [words.format(count_noun(missed, "photo"))] if missed > 0 else []


@dataclass(frozen=True, eq=False)
class Points:
    """What votes: a point for every photo that could be read, and the number of its person."""

    rows: Embedded
    people: Int64[np.ndarray, " n"]


def embed_photos(
    album: Album, crop: Crop, simulator: Simulator, *, quiet: bool = False
) -> tuple[Points, list[str]]:
    """Return the points of all photos, and one line for each that could not be read.

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
    return Points(np.concatenate(rows), np.array(people, np.int64)), failed


def crop_of(plan: Plan, simulator: Simulator) -> Crop:
    """Return what makes the crop of a photo; raises `UsageError` if nothing finds faces here."""
    side = simulator.codec.canvas[0]
    frame = Frame(side)
    if plan.crop == "face":
        choose("auto", None)
        return lambda photo: canonical(photo, frame)
    return lambda photo: centred(photo, (side, side, 3))


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

    People's photos vote for synthetic faces, and only noisy counts of votes are kept (Private Evolution).
    Neighbours are two sets of photos of the same number of people, of whom one is replaced with all photos:
    how many people there are is public. People are folders, or `person` in the .json of shards; a photo
    without a person counts as one. With --people every photo needs one person: a folder, or a row of a
    table with the columns `file` and `person`. Choose every option without looking at the photos. Exit code
    1: the set was made, and some photos could not be read. Exit code 3: the ledger has less left than the
    set costs. Once a ledger has paid, the set is written before Ctrl-C ends the command.
    """
    payer = Payer(ledger, subject, key, seed)
    payer.check_new(out)
    check_apart(out, folder)
    album = Album.of(folder, _people_table(table, subject_column))
    _note(album.notes)
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pictures": pictures, "rounds": rounds}
    settings |= {"candidates": candidates, "crop": crop, "codec": codec}
    plan = Plan(people=album.people, **settings)
    _note(_expectations(plan))
    if (there := payer.check(plan, out, dry=dry_run)) is not None:
        _tell(out, there, "skipped", json)
        return exits.DONE
    simulator = Simulator(plan.codec.held)
    cropped = crop_of(plan, simulator)
    if dry_run:
        _tell(out, _dry_certificate(plan, seed), "priced", json, photos=len(album.items))
        return exits.DONE
    points, failed = embed_photos(album, cropped, simulator, quiet=quiet)
    with payer.paying(plan, out) as paid:
        certificate = _make_set(out, plan, simulator, points, paid, seed, quiet=quiet)
        _tell(out, certificate, "synthesized", json, photos=len(album.items), failed=failed)
    return exits.INCOMPLETE if failed else exits.DONE


def _people_table(table: str | None, column: str | None) -> tuple[Path, str] | str | None:
    """Return the table of people and its column, or `FOLDERS`, if either is named."""
    if table in (None, FOLDERS):
        if column is not None:
            raise UsageError("--subject-column needs a table", hint="give one with --people TABLE.csv")
        return table
    return Path(str(table)), COLUMN if column is None else column


def _note(notes: Iterable[str]) -> None:
    for text in notes:
        say.note(f"note: {text}")


def _make_set(
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
    bits: BitSource = SecureBits() if seed is None else SeededBits(seed)
    with bar(plan.rounds, "rounds", quiet=quiet) as step:
        made = evolve(plan, simulator, points.rows, points.people, bits, step)
    return save(out, plan, made.pictures, bits, paid)


def _dry_certificate(plan: Plan, seed: int | None) -> SetCertificate:
    """Return the certificate of a set that is not made: of no files."""
    return SetCertificate(plan=plan, bits=SECURE if seed is None else SEEDED, files={})


def _expectations(plan: Plan) -> list[str]:
    """Return what to expect of a plan, before anything is read."""
    mean, vote = plan.people / plan.chosen, "votes" if plan.people == 1 else "vote"
    told = (
        f"{headcount(plan.people)} {vote} for {plan.chosen:,} candidates in"
        f" {count_noun(plan.rounds, 'round')}:"
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
    promise = f"{count_noun(plan.pictures, 'picture')}, {plan.guarantee}: {certificate.strength}"
    say.answer(f"{out}: {would}{promise}")
    say.answer(f"neighbours    {plan.guarantee.relation.in_words()}")
    for text in plan.guarantee.scope.in_the_clear:
        say.answer(f"not hidden    {text}")
    for text in certificate.warnings:
        say.note(f"warning: {text}")
    look = f"look at {show_path(out / SHEET)}; check the set with: dpveil verify {show_path(out)}"
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

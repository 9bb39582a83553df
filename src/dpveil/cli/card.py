"""`dpveil card`: a data-set card of a folder of releases, with what they promise each person together."""

from __future__ import annotations

import json as written
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.accounting.meaning import NONE, check_strength_name, strength
from dpveil.cards.croissant import (
    CHECK,
    NO_PERSON,
    TO_FILL,
    About,
    Listed,
    People,
    Person,
    Totals,
    by_folder,
    by_table,
    card,
    headcount,
    of_set,
    pictures,
    prefix,
    releases,
    similar_names,
    totals,
)
from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, MaxPixels, Text, Trust
from dpveil.cli.verify import results, sets_below
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.errors import CertificateError, InvalidParameter, UsageError
from dpveil.io import is_present, write_together
from dpveil.io.folders import is_folder, is_link, real
from dpveil.io.names import escape_text, show_path
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.saving import SUFFIX
from dpveil.release.words import worth
from dpveil.synthesis.plan import NAME
from dpveil.synthesis.saving import is_set
from dpveil.verifying import SetVerification, verify

if TYPE_CHECKING:
    from dpveil.synthesis.saving import SetCertificate


LOW: Final = {NONE: "weak", "weak": "moderate"}
"""Strengths that are warned of, and the least --at-least that refuses each."""
STANDING: Final = {NONE: {1: ", is not publishable", 2: ", are not publishable"}, "weak": {}}
FLAT: Final = (
    "no release lies in a person's folder below this one, so that nobody is named: move them into some, or"
    " say who is in which photo in a table (--people TABLE.csv)"
)
UNNAMED: Final = "--people says who is in which photo, and totals are smaller then"
UNKNOWN: Final = "all releases together, which may be of one person"


def in_words(out: Path, files: Sequence[Listed], found: Totals) -> Iterator[str]:
    """Yield what a card states of all files, and of totals with their strength."""
    if is_of_set(files):
        yield f"{out}: {count_noun(len(files), 'file')} of a synthetic data set"
        yield f"per person    at most {_promise(found.people[0].total)}"
        return
    whom = (
        count_noun(found.named, "named person").replace("persons", "people")
        if found.named
        else "nobody named"
    )
    yield f"{out}: {count_noun(len(files), 'file')}, {whom}"
    for total, number in found.most:
        yield f"per person    at most {_promise(total)}{f' ({headcount(number)})' if found.named else ''}"
    if found.together is not None:
        yield f"together      {_promise(found.together)}"


def to_json(found: Totals) -> dict[str, Any]:
    """Return the totals of all people, for the owner's eyes."""
    people = [
        {
            "person": one.name,
            "releases": one.releases,
            "total": one.total.to_json(),
            "strength": strength(one.total),
        }
        for one in found.people
    ]
    return {"named": found.named, "people": people, "without_person": [*found.unnamed]}


def warnings(files: Sequence[Listed], found: Totals, *, by_folder: bool) -> Iterator[str]:
    """Yield a line for each kind of what hardly protects anybody, and for what is not known of people.

    `by_folder` says that folders are people.
    """
    if found.unnamed:
        bare = count_noun(len(found.unnamed), "photo")
        have = f"{bare} {'has' if len(found.unnamed) == 1 else 'have'}"
        yield (
            f"{NO_PERSON.format(have)}: {say.first_and_count([escape_text(name) for name in found.unnamed])}"
        )
        if not found.named:
            yield FLAT if by_folder else UNNAMED
    yield from similar_names(one.name for one in found.people)
    for grade, least in LOW.items():
        yield from _low_files(files, grade, least)
    everybody = "" if found.named else UNKNOWN
    if is_of_set(files):
        everybody = "the set"
    for grade in LOW:
        low = [one for one in found.people if strength(one.total) == grade]
        yield from _low_totals(low, grade, everybody)


def is_of_set(files: Sequence[Listed]) -> bool:
    """Whether files are those of a synthetic set, which have no certificates of their own."""
    return all(one.certificate is None for one in files)


def _promise(total: Guarantee) -> str:
    return f"{total}: {worth(total, strength(total))}"


def _low_files(files: Sequence[Listed], grade: str, least: str) -> Iterator[str]:
    """Yield a line about releases of this strength, if there are some."""
    stated = [(one.name, one.guarantee) for one in files if one.guarantee is not None]
    low = [one for one in stated if strength(one[1]) == grade]
    if low:
        name, guarantee = low[0]
        such, them = ("", "it") if len(low) == 1 else ("such as ", "them")
        standing = STANDING[grade].get(min(len(low), 2), "")
        told = f"{count_noun(len(low), 'release')}, {such}{escape_text(name)} ({guarantee}){standing}"
        yield f"{grade}: {told}; --at-least {least} refuses {them}"


def _low_totals(people: Sequence[Person], grade: str, everybody: str) -> Iterator[str]:
    """Yield a line about people with a total of this strength, if there are some; `everybody` is who they are
    where nobody is named.
    """
    if people:
        such = "such as " if len(people) > 1 else ""
        whose = f"{headcount(len(people))}, {such}{escape_text(people[0].name)}"
        yield f"{grade} in all: {everybody or whose} ({people[0].total})"


FOLDERS: Final = "folders"
"""The value of --people for folders that are people."""
COLUMN: Final = "person"
SUFFIXES: Final = (".json", ".jsonld")


def card_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Releases, or a synthetic data set.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The card, in FOLDER or above it, such as croissant.json.")
    ],
    people: Annotated[
        Text,
        typer.Option(
            metavar="TABLE", help="Who is in which photo: a CSV file; or folders, one for each person."
        ),
    ] = None,
    subject_column: Annotated[
        Text, typer.Option(metavar="NAME", help="The table's column of people. Default: person.")
    ] = None,
    at_least: AtLeast = None,
    trust: Trust = None,
    name: Annotated[Text, typer.Option(metavar="NAME", help="Default: the name of FOLDER.")] = None,
    license: Annotated[  # noqa: A002  the field's word
        str, typer.Option(metavar="TEXT", help="The license, best as an address.")
    ] = "",
    url: Annotated[str, typer.Option(metavar="URL", help="Where the data set is, or will be.")] = "",
    creator: Annotated[str, typer.Option(metavar="NAME", help="Who made the data set.")] = "",
    published: Annotated[str, typer.Option(metavar="DATE", help="When it is published: 2026-12-31.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing card.")] = False,
    max_pixels: MaxPixels = 100_000_000,
    json: AsJson = False,
) -> int:
    """Write a data-set card (Croissant) that states what releases promise, each by itself and per person.

    \b
    Examples:
      dpveil card private/ --out private/croissant.json
      dpveil card private/ --out private/croissant.json --people who.csv

    Every file is verified first. The table has the columns `file` (or `output`) and `person`, and is for
    your eyes: the card names nobody. A photo without a person may be of anybody, and counts for everybody.
    Exit code 1: a picture in FOLDER is no publishable release. Exit code 3: releases have no total; nothing
    is written then.
    """
    fields = {"license": license, "url": url, "creator": creator, "published": published}
    fields["name"] = name or real(folder).name or "releases"
    about = About(**{key: _text(value, key) for key, value in fields.items()})
    _check(folder, out, people, subject_column)
    before = prefix(folder, out)
    files, found, made = _read(folder, people, subject_column or COLUMN, (at_least, trust, max_pixels))
    document = card(about, files, found, before, made)
    text = written.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_together([(out, text.encode(errors="backslashreplace"))], replace=force)
    _tell(out, files, found, document, json, by_folder=people == FOLDERS)
    return exits.DONE


def _check(folder: Path, out: Path, people: Text, column: Text) -> None:
    """Raise an error for what is wrong with the call, before anything is verified."""
    if not is_folder(folder) or is_link(folder):
        raise UsageError(f"{folder} is not a folder", hint="give a folder of releases, and no link to one")
    if out.suffix.lower() not in SUFFIXES or out.name.endswith(SUFFIX):
        hint = f"end it in .json, and not in {SUFFIX}"
        raise InvalidParameter("out", str(out), "is not the name of a card", hint=hint)
    if is_present(folder / NAME) and real(out.parent).is_relative_to(real(folder)):
        raise UsageError("a synthetic set holds its own files only", hint="write the card to a folder above")
    if is_present(folder / NAME) and people is not None:
        raise UsageError("the people of a synthetic set are in its promise", hint="leave out --people")
    if column is not None and people in (None, FOLDERS):
        raise UsageError("--subject-column needs a table", hint="give one with --people TABLE.csv")
    if people not in (None, FOLDERS) and real(Path(str(people))).is_relative_to(real(folder)):
        problem = f"{people} links photos to people, and would be published with {folder}"
        raise UsageError(problem, hint="keep it in a folder of its own")


def _text(value: str, option: str) -> str:
    if not value.isprintable():
        raise InvalidParameter(option, None, "holds characters that cannot be printed", hint="type it again")
    if option == "url" and value and not value.startswith(("http://", "https://")):
        raise InvalidParameter(option, value, "is no address", hint="begin it with https://")
    if option == "published" and value and not _is_day(value):
        raise InvalidParameter(option, value, "is no day", hint="write it as 2026-12-31")
    return value


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _read(
    folder: Path, people: Text, column: str, asked: tuple[Text, list[Path] | None, int]
) -> tuple[Sequence[Listed], Totals, SetCertificate | None]:
    """Return the verified files of a folder, their totals, and the certificate of a synthetic set."""
    at_least, trust, max_pixels = asked
    trusted: Sequence[PublicKey] | None = trusted_keys(trust or None)
    least = None if at_least is None else check_strength_name(at_least)
    if not is_set(folder):
        _check_no_sets(folder)
        files = releases(folder, [*results([folder], max_pixels, least, trusted)])
        return files, totals(files, _people(people, column, files, folder)), None
    found = verify(folder, at_least=least, trust=trusted)
    if not isinstance(found, SetVerification) or found.certificate is None or not found.sound:
        why = found.refused or found.untrusted or "; ".join(found.problems)
        raise CertificateError(f"{escape_text(show_path(folder))}: {why}", hint=CHECK)
    made = found.certificate
    return pictures(made), of_set(made.composition, made.plan.pictures), made


def _check_no_sets(folder: Path) -> None:
    """Raise `CertificateError` if synthetic sets lie below a folder: a card is about releases, or one set."""
    if sets := sets_below(folder):
        first, more = escape_text(show_path(sets[0])), f" and {len(sets) - 1:,} more" if len(sets) > 1 else ""
        problem = (
            f"{escape_text(show_path(folder))} holds"
            f" {count_noun(len(sets), 'synthetic data set')}, {first}{more}"
        )
        why = (
            "whose pictures have no certificates of their own, and a card is about releases or about one set"
        )
        hint = f"make a card for each set: dpveil card {first} --out {first}.json"
        raise CertificateError(f"{problem}, {why}", hint=hint)


def _people(people: Text, column: str, files: Sequence[Listed], folder: Path) -> People:
    names = [one.name for one in files]
    if people is None:
        return {}
    return by_folder(names) if people == FOLDERS else by_table(Path(people), column, names, folder)


def _tell(
    out: Path,
    files: Sequence[Listed],
    found: Totals,
    document: dict[str, Any],
    as_json: bool,
    *,
    by_folder: bool,
) -> None:
    """Say what the card states, how strong that is, and what it leaves out."""
    empty = [field for field in TO_FILL if field not in document]
    if as_json:
        say.document({"card": str(out), "files": len(files), **to_json(found), "to_fill": empty})
    else:
        for line in in_words(out, files, found):
            say.answer(line)
    for line in warnings(files, found, by_folder=by_folder):
        say.note(f"WARNING: {line}")
    say.note(f"to fill in: {', '.join(empty)}")

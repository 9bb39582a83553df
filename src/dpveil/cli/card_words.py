"""What `dpveil card` says on the screen: totals with their strength, and what hardly protects anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.accounting.meaning import NONE, strength
from dpveil.cards.croissant import NO_PERSON
from dpveil.cards.people import alike, headcount
from dpveil.cli.run_report import several
from dpveil.core.guarantee import Guarantee, counted
from dpveil.io.names import quoted
from dpveil.release.words import few_only, worth

if TYPE_CHECKING:
    from dpveil.cards.contents import Listed
    from dpveil.cards.totals import Person, Totals

LOW: Final = {NONE: "weak", "weak": "moderate"}
"""Strengths that are warned of, and the least --at-least that refuses each."""
STANDING: Final = {NONE: {1: ", is not publishable", 2: ", are not publishable"}, "weak": {}}
FLAT: Final = (
    "no release lies in a person's folder below this one, so that nobody is named: move them into some, or"
    " say who is in which photo in a table (--people TABLE.csv)"
)
UNNAMED: Final = "--people says who is in which photo, and totals are smaller then"
AT_MOST: Final = "--at-most E refuses totals above ε = E"


def in_words(out: Path, files: Sequence[Listed], found: Totals) -> Iterator[str]:
    """Yield what a card states of all files, and of totals with their strength."""
    if is_of_set(files):
        yield f"{out}: {counted(len(files), 'file')} of a synthetic data set"
        yield f"per person    at most {_graded(found.people[0].total)}"
        return
    whom = (
        counted(found.named, "named person").replace("persons", "people") if found.named else "nobody named"
    )
    yield f"{out}: {counted(len(files), 'file')}, {whom}"
    for total, number in found.most:
        yield f"per person    at most {_graded(total)}{f' ({headcount(number)})' if found.named else ''}"
    if found.together is not None:
        yield f"together      {_graded(found.together)}"


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
        bare = counted(len(found.unnamed), "photo")
        have = f"{bare} {'has' if len(found.unnamed) == 1 else 'have'}"
        yield f"{NO_PERSON.format(have)}: {several([quoted(name) for name in found.unnamed])}"
        if not found.named:
            yield FLAT if by_folder else UNNAMED
    yield from alike(one.name for one in found.people)
    for grade, least in LOW.items():
        yield from _low_files(files, grade, least)
    yield from _few(files)
    for grade, least in LOW.items():
        low = [one for one in found.people if strength(one.total) == grade]
        if is_of_set(files):
            yield from _low_set(low, grade, least)
        else:
            yield from _low_totals(low, grade, named=found.named > 0)


def is_of_set(files: Sequence[Listed]) -> bool:
    """Whether files are those of a synthetic set, which have no certificates of their own."""
    return all(one.certificate is None for one in files)


def _graded(total: Guarantee) -> str:
    return f"{total}: {worth(total, strength(total))}"


def _low_files(files: Sequence[Listed], grade: str, least: str) -> Iterator[str]:
    """Yield a line about releases of this strength, if there are some."""
    stated = [(one.name, one.guarantee) for one in files if one.guarantee is not None]
    low = [one for one in stated if strength(one[1]) == grade]
    if low:
        name, guarantee = low[0]
        such, them = ("", "it") if len(low) == 1 else ("such as ", "them")
        standing = STANDING[grade].get(min(len(low), 2), "")
        told = f"{counted(len(low), 'release')}, {such}{quoted(name)} ({guarantee}){standing}"
        yield f"{grade}: {told}; --at-least {least} refuses {them}"


def _few(files: Sequence[Listed]) -> Iterator[str]:
    """Yield a line for each number of pixels about which alone releases promise something."""
    found: dict[str, list[str]] = {}
    for one in files:
        if one.guarantee is not None and (text := few_only(one.guarantee)) in one.notes:
            found.setdefault(text, []).append(quoted(one.name))
    yield from (f"{several(names)}: {text}" for text, names in found.items())


def _low_totals(people: Sequence[Person], grade: str, *, named: bool) -> Iterator[str]:
    """Yield a line about people with a total of this strength, if there are some."""
    if people:
        such = "such as " if len(people) > 1 else ""
        whose = f"{headcount(len(people))}, {such}{quoted(people[0].name)}"
        who = whose if named else "all releases together, which may be of one person"
        yield f"{grade} in all: {who} ({people[0].total}); {AT_MOST}"


def _low_set(people: Sequence[Person], grade: str, least: str) -> Iterator[str]:
    """Yield a line about a synthetic set of this strength, whose promise is about everybody."""
    for one in people:
        told = f"the set ({one.total}){STANDING[grade].get(1, '')}"
        yield f"{grade}: {told}; --at-least {least} refuses it"

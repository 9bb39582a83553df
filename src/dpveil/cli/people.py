"""Who is in which photo: names of people, and tables that state them."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from dpveil.errors import DataError, InvalidParameter
from dpveil.io.names import escape_text, show_path
from dpveil.numbers.expected_error import column

FOLDERS: Final = "folders"
"""The value of --people for folders that are people."""
COLUMN: Final = "person"
"""The usual column of people."""
FILE: Final = ("file", "output")
"""Columns that may name files; the second one is that of a manifest."""
People = Mapping[str, frozenset[str]]
"""The people of each file, by its name below the folder; a file of nobody known is not among the keys."""
CASE: Final = "{} and {} differ in upper and lower case only, and count as two people{}"


def name_of(person: str) -> str:
    r"""Return a person's name in NFC: an accented letter may be written in several ways that look the same.

    >>> name_of("Jose\u0301") == "Jos\xe9"
    True
    """
    return unicodedata.normalize("NFC", person)


def headcount(count: int) -> str:
    """Return a number of people in words.

    >>> headcount(1), headcount(4260)
    ('1 person', '4,260 people')
    """
    return f"{count:,} {'person' if count == 1 else 'people'}"


def similar_names(people: Iterable[str]) -> list[str]:
    """Return a line to tell if names of people differ in upper and lower case only; it names two of them.

    >>> similar_names(["Ann", "Bob", "ann", "ANN", "bob"])
    ['ANN and Ann differ in upper and lower case only, and count as two people (5 names are so)']
    >>> similar_names(["ann", "Bob"])
    []
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for person in sorted(set(map(name_of, people))):
        groups[name_of(person.casefold())].append(person)
    several = [names for names in groups.values() if len(names) > 1]
    if not several:
        return []
    many = sum(map(len, several))
    return [CASE.format(*map(escape_text, several[0][:2]), f" ({many:,} names are so)" if many > 2 else "")]


def by_table(path: Path, person: str, names: Iterable[str], folder: Path) -> People:
    """Return the people that a CSV table states for the files `names` of `folder`.

    A row names a file (columns `FILE`; below the folder, or with the folder in front) and in the column
    `person` who is in it, told apart by `name_of`; a file of several people has a row for each. Rows without
    a file are skipped, and a file whose rows name nobody has no person. No file is opened but the table.
    Raises `DataError` for a table that cannot be read and for a row whose file is not in the folder, and
    `InvalidParameter` for missing columns.
    """
    files, people = _files(path), column(path, person)
    if len(files) != len(people):
        raise DataError(f"{show_path(path)} was changed while it was read", hint="run this again")
    known = _places(names, folder)
    found: dict[str, set[str]] = defaultdict(set)
    for number, (file, who) in enumerate(zip(files, people, strict=True), 1):
        meant = known[file.removeprefix("./")] if file else ()
        if file and len(meant) != 1:
            what = "more than one file" if meant else "no file"
            raise DataError(
                f"row {number} of {show_path(path)}, {escape_text(file)}, is {what} of {show_path(folder)}",
                hint="name each file as it lies below the folder, and leave out what is not there",
            )
        for name in meant if who else ():
            found[name].add(name_of(who))
    return {name: frozenset(who) for name, who in found.items()}


def _places(names: Iterable[str], folder: Path) -> Mapping[str, set[str]]:
    """Return the files that each text may mean: a name below the folder, or one with the folder in front."""
    known: dict[str, set[str]] = defaultdict(set)
    for name in names:
        for place in (name, (folder / name).as_posix()):
            known[place].add(name)
    return known


def _files(path: Path) -> list[str]:
    """Return the cells that name files; raises as `by_table` does."""
    first, second = FILE
    try:
        return column(path, first)
    except InvalidParameter:
        try:
            return column(path, second)
        except InvalidParameter:
            problem = f"{show_path(path)} has no column that names files"
            raise DataError(problem, hint=f"name one of its columns {first}") from None

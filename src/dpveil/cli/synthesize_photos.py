"""Photos of `dpveil synthesize`: whose each is, and the points by which they vote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import Int64

from dpveil.bench.items import Item
from dpveil.bench.layouts import LAYOUTS, SUFFIXES, Layout, alone, everywhere, items_of, layout_of
from dpveil.bench.shards import ShardPhoto
from dpveil.cards.people import alike, by_table, headcount, name_of
from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.core.guarantee import counted
from dpveil.core.photo import Photo
from dpveil.errors import DataError, PhotoError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import canonical, centred
from dpveil.io import is_present
from dpveil.io.folders import real, walk
from dpveil.io.names import quoted, shown
from dpveil.mechanisms.placement import Image
from dpveil.regions.detectors import choose
from dpveil.synthesis.plan import NAME

if TYPE_CHECKING:
    from dpveil.synthesis import Plan, Simulator
    from dpveil.synthesis.votes import Embedded

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
            raise UsageError(f"{shown(folder)} is not a folder", hint=hint)
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
        people = f"{headcount(len(known))} with {counted(len(items), 'photo')}"
        told = (f"{people}{notes[0]}", *alike(item.person for item in found if not _bare(item)), *notes[1:])
        return cls(items, tuple(known[item.person] for item in items), told)


def _by_layout(folder: Path) -> tuple[list[Item], list[str]]:
    """Return photos as their layout says whose they are; how it does, and what else to know of it."""
    layout = _layout(folder)
    found = {item.name: item for item in (*items_of(folder, layout), *_others(folder, layout))}
    items = [*found.values()]
    how = f", read as {layout.name}: people are told apart by {layout.identity}"
    if layout is LAYOUTS[-1]:
        how = f": {FLAT if all(map(_bare, items)) else FOLDED}"
    return items, [how, *_unnamed(items), *_left_out(folder, items, MISPLACED)]


def _by_folder(folder: Path) -> tuple[list[Item], list[str]]:
    """Return the photos in folders, each of which is a person; raises `DataError` for any beside them."""
    beside, items = alone(folder), items_of(folder, LAYOUTS[-1])
    if beside:
        problem = (
            f"{counted(len(beside), 'photo')} of {shown(folder)} {_are(len(beside))} in no person's folder"
        )
        hint = (
            "move them into one, name people in a table, or leave out --people, and each counts as a person"
        )
        raise DataError(f"{problem}: {_some([item.name for item in beside])}", hint=hint)
    return items, [f": {FOLDED}", *_left_out(folder, items, MISSED)]


def _by_table(folder: Path, table: Path, column: str) -> tuple[list[Item], list[str]]:
    """Return all photos, each of the one person that a table names; raises `DataError` for any other."""
    items = everywhere(folder)
    people = by_table(table, column, [item.name for item in items], folder) if items else {}
    nobody = [item.name for item in items if item.name not in people]
    several = [item.name for item in items if len(people.get(item.name, ())) > 1]
    for names, what in ((nobody, "no person"), (several, "several people")):
        if names:
            have = f"{counted(len(names), 'photo')} {'has' if len(names) == 1 else 'have'}"
            problem = f"{have} {what} in the column {quoted(column)} of {shown(table)}: {_some(names)}"
            hint = "name one person for each photo, or take photos out of the folder"
            raise DataError(problem, hint=hint)
    own = [replace(item, person=person) for item in items for person in people[item.name]]
    how = f"; people are told apart by the column {quoted(column)} of {shown(table)}"
    return own, [how, *_left_out(folder, own, MISSED)]


def _some(names: list[str]) -> str:
    """Return the first name, and how many more there are."""
    return quoted(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def check_apart(out: Path, folder: Path) -> None:
    """Raise `UsageError` if `out` would lie among the photos, or a synthetic set is or lies among them.

    Its pictures would count as a person's.
    """
    if real(out).is_relative_to(real(folder)):
        problem = (
            f"{{out}} {shown(out)} lies in {shown(folder)}, where its pictures would count as a person's"
        )
        raise UsageError(problem, hint="choose one beside it", arguments={"out": "out"})
    for place in (folder, *(_folders(folder) if folder.is_dir() else ())):
        if is_present(place / NAME):
            problem = f"{shown(place)} is a synthetic data set, and its pictures would count as a person's"
            hint = "name the folder of the photos, and keep sets apart from them"
            raise UsageError(problem, hint=hint)


def _folders(folder: Path) -> list[Path]:
    return [place for place in folder.iterdir() if place.is_dir() and not place.is_symlink()]


def _layout(folder: Path) -> Layout:
    """Return the layout of a folder of people: never one that gives photos of a folder several of them."""
    found = layout_of(folder)
    return found if found.subject == "faces" and found.name != "UTKFace" else LAYOUTS[-1]


def _others(folder: Path, layout: Layout) -> list[Item]:
    """Return photos that lie in no person's folder, if the layout has such folders."""
    return alone(folder) if layout is LAYOUTS[-1] else []


def _unnamed(items: list[Item]) -> list[str]:
    """Return what to know of photos without a person's name, if there are some."""
    bare = sum(map(_bare, items))
    if bare == 1:
        return ["one photo has no person's name and counts as a person"]
    return [NOBODY.format(f"{bare:,}")] if bare else []


def _bare(item: Item) -> bool:
    return item.person.removeprefix("./") == item.name


def _left_out(folder: Path, items: list[Item], words: str) -> list[str]:
    """Return in `words` how many photos in a folder do not vote, if there are some.

    Hidden files are not counted.
    """
    there = sum(path.suffix.lower() in SUFFIXES for path, _ in walk(folder))
    missed = there - sum(not isinstance(item, ShardPhoto) for item in items)
    return [words.format(counted(missed, "photo"))] if missed > 0 else []


@dataclass(frozen=True, eq=False)
class Points:
    """What votes: a point for every photo that could be read, and the number of its person."""

    rows: Embedded
    people: Int64[np.ndarray, " n"]


def embedded(
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

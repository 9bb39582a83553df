"""Photos of `dpveil synthesize`: whose each is, and the points by which they vote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import Int64

from dpveil.bench.items import Item
from dpveil.bench.layouts import LAYOUTS, SUFFIXES, Layout, alone, items_of, layout_of
from dpveil.bench.shards import ShardPhoto
from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.core.guarantee import counted
from dpveil.core.photo import Photo
from dpveil.errors import PhotoError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import canonical
from dpveil.io.folders import walk
from dpveil.mechanisms.placement import Image
from dpveil.regions.detectors import choose

if TYPE_CHECKING:
    from dpveil.synthesis import Plan, Simulator
    from dpveil.synthesis.votes import Embedded

NOBODY = (
    "{} no person's name and count as a person each: somebody in several of them is protected in one of them"
    " only"
)
MISSED = (
    "{} in the folder left out: links, too deep, or not where this layout has photos; to be read as a folder"
    " for each person, the folder must not look like another layout"
)


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
    def of(cls, folder: Path) -> Self:
        """Return the photos of a folder in one of the layouts of `dpveil evaluate`, and those in no folder.

        Layouts that split a person's photos are read as a folder for each person: one with eyes, where each
        eye is one, and UTKFace with photos in folders.

        Raises `UsageError` for what is no folder, and `PhotoError` if there is no photo.
        """
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder", hint="give a folder with a folder for each person")
        layout = _layout(folder)
        found = {item.name: item for item in (*items_of(folder, layout), *_others(folder, layout))}
        if not found:
            raise PhotoError(
                f"there are no photos in {folder}", hint="give a folder for each person, or shards"
            )
        items = tuple(found[name] for name in sorted(found))
        known = {person: number for number, person in enumerate(sorted({item.person for item in items}))}
        notes = (_who(layout, len(known), len(items)), *_unnamed(items), *_left_out(folder, items))
        return cls(items, tuple(known[item.person] for item in items), notes)


def _layout(folder: Path) -> Layout:
    """Return the layout of a folder of people: never one that gives photos of a folder several of them."""
    found = layout_of(folder)
    return found if found.subject == "faces" and found.name != "UTKFace" else LAYOUTS[-1]


def _others(folder: Path, layout: Layout) -> list[Item]:
    """Return photos that lie in no person's folder, if the layout has such folders."""
    return alone(folder) if layout is LAYOUTS[-1] else []


def _who(layout: Layout, people: int, photos: int) -> str:
    """Return who counts as a person, which the promise depends on."""
    told = f"{people:,} {'person' if people == 1 else 'people'} with {photos:,} photos"
    return f"{told}, in the layout {layout.name}; people are told apart by {layout.identity}"


def _unnamed(items: tuple[Item, ...]) -> list[str]:
    """Return what to know of photos without a person's name, if there are some."""
    bare = sum(item.person.removeprefix("./") == item.name for item in items)
    have = f"{counted(bare, 'photo')} {'has' if bare == 1 else 'have'}"
    return [NOBODY.format(have)] if bare else []


def _left_out(folder: Path, items: tuple[Item, ...]) -> list[str]:
    """Return how many photos in a folder do not vote, as its layout has no place for them, if there are some.

    Hidden files are not counted.
    """
    there = sum(path.suffix.lower() in SUFFIXES for path, _ in walk(folder))
    missed = there - sum(not isinstance(item, ShardPhoto) for item in items)
    return [MISSED.format(counted(missed, "photo"))] if missed > 0 else []


@dataclass(frozen=True, eq=False)
class Points:
    """What votes: a point for every photo that could be read, and the number of its person."""

    rows: Embedded
    people: Int64[np.ndarray, " n"]


def embedded(album: Album, plan: Plan, simulator: Simulator) -> tuple[Points, list[str]]:
    """Return the points of all photos, and one line for each that could not be read.

    That there may be no points refuses nothing, as it depends on the photos. Raises `UsageError` if nothing
    finds faces here.
    """
    crop = _crop(str(plan.crop), simulator.codec.canvas[0])
    rows: list[Embedded] = [np.empty((0, simulator.codec.length), np.int16)]
    people: list[int] = []
    failed: list[str] = []
    with bar(len(album.items), "photos") as step:
        for item, number in zip(album.items, album.numbers, strict=True):
            try:
                rows.append(simulator.embed(crop(item.read())))
                people.append(number)
            except PhotoError as error:
                failed.append(say.one_line(error))
            step()
    return Points(np.concatenate(rows), np.array(people, np.int64)), failed


def _crop(kind: str, side: int) -> Callable[[Photo], Image]:
    """Return what makes the crop of a photo; raises `UsageError` if nothing finds faces here."""
    frame = Frame(side)
    if kind == "face":
        choose("auto", None)
        return lambda photo: canonical(photo, frame)
    from dpveil.training.crops import centred

    return lambda photo: centred(photo, (side, side, 3))

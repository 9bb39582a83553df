"""Photos of `dpveil synthesize`: whose each is, and the points by which they vote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import Int64

from dpveil.bench.items import Item
from dpveil.bench.layouts import alone, items_of, layout_of
from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.core.guarantee import counted
from dpveil.core.photo import Photo
from dpveil.errors import PhotoError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.portrait import canonical
from dpveil.mechanisms.placement import Image
from dpveil.regions.detectors import choose

if TYPE_CHECKING:
    from dpveil.synthesis import Plan, Simulator
    from dpveil.synthesis.votes import Embedded

NOBODY = (
    "{} no person's name and count as a person each: somebody in several of them is protected in one of them"
    " only"
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

        Raises `UsageError` for what is no folder, and `PhotoError` if there is no photo.
        """
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder", hint="give a folder with a folder for each person")
        found = {item.name: item for item in (*items_of(folder), *_others(folder))}
        if not found:
            raise PhotoError(
                f"there are no photos in {folder}", hint="give a folder for each person, or shards"
            )
        items = tuple(found[name] for name in sorted(found))
        known = {person: number for number, person in enumerate(sorted({item.person for item in items}))}
        bare = sum(item.person.removeprefix("./") == item.name for item in items)
        have = f"{counted(bare, 'photo')} {'has' if bare == 1 else 'have'}"
        notes = (NOBODY.format(have),) if bare else ()
        return cls(items, tuple(known[item.person] for item in items), notes)


def _others(folder: Path) -> list[Item]:
    """Return photos that lie in no person's folder, if the layout has such folders."""
    return alone(folder) if layout_of(folder).name == "folders" else []


@dataclass(frozen=True, eq=False)
class Points:
    """What votes: a point for every photo that could be read, and the number of its person."""

    rows: Embedded
    people: Int64[np.ndarray, " n"]


def embedded(album: Album, plan: Plan, simulator: Simulator) -> tuple[Points, list[str]]:
    """Return the points of all photos, and one line for each that could not be read.

    Raises `PhotoError` if none could be, and `UsageError` if nothing finds faces here.
    """
    crop = _crop(str(plan.crop), simulator.codec.canvas[0])
    rows: list[Embedded] = []
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
    if not rows:
        raise PhotoError("none of the photos could be read", hint=failed[0])
    return Points(np.concatenate(rows), np.array(people, np.int64)), failed


def _crop(kind: str, side: int) -> Callable[[Photo], Image]:
    """Return what makes the crop of a photo; raises `UsageError` if nothing finds faces here."""
    frame = Frame(side)
    if kind == "face":
        choose("auto", None)
        return lambda photo: canonical(photo, frame)
    from dpveil.training.crops import centred

    return lambda photo: centred(photo, (side, side, 3))

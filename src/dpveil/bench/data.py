"""Data sets of a benchmark: photos of people, in folders or drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from dpveil.bench.dataset_layouts import items_of, layout_of, loose
from dpveil.bench.items import Item, digest_of
from dpveil.bench.synthetic_photos import DRAWN, draw_items
from dpveil.core.guarantee import count_noun
from dpveil.errors import UsageError

LONGEST: Final = 200  # most characters of a data set's name
MOST_PEOPLE: Final = 20_000  # most people: intervals resample them
LEAST: Final = 2  # least photos of a person, and least people: one photo for the attacker, and one to attack
HINT: Final = (
    f"give a folder with a folder for each person, as PERSON/1.png and PERSON/2.png, or {', '.join(DRAWN)}"
)


@dataclass(frozen=True)
class Dataset:
    """Photos of several people; `name` is that of its folder.

    `most_people` and `most_photos` are the limits by which they were chosen, None for all.
    """

    name: str
    items: tuple[Item, ...]
    most_people: int | None = None
    most_photos: int | None = None

    @property
    def people(self) -> tuple[str, ...]:
        return tuple(sorted({item.person for item in self.items}))

    @property
    def has_single_photos(self) -> bool:
        """Whether nobody has a second photo: the attacker has the photos under attack themselves."""
        return len(self.people) == len(self.items)

    @cached_property
    def digest(self) -> str:
        whole = hashlib.sha256()
        for item in self.items:
            whole.update(f"{item.name}\0{item.digest}\n".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()


def load(folder: Path, *, people: int | None = None, photos: int | None = None) -> Dataset:
    """Return a data set: photos in a folder of one of the `LAYOUTS`, or else the one of `DRAWN` of that name.

    With `people` or `photos`, no more people, and no more photos of each, the first by their hash: so the
    choice does not depend on the order of names. People with a single photo are left out, unless the layout
    says nobody's name. Raises `UsageError` if fewer than two people are left.
    """
    if str(folder) in DRAWN and not folder.exists():
        drawn = draw_items(DRAWN[str(folder)], people, photos)
        return Dataset(str(folder), tuple(drawn), people, photos)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint=HINT)
    name = folder.resolve().name
    if not name.isprintable() or len(name) > LONGEST or not (name[:1].isalnum() or name[:1] == "_"):
        hint = "rename the folder, to begin with a letter or digit"  # a spreadsheet takes "=x" for a formula
        raise UsageError(f"{name[:LONGEST]!r} cannot stand in tables", hint=hint)
    layout, groups = layout_of(folder), dict[str, list[Item]]()
    for item in sorted(items_of(folder), key=lambda one: one.rank):
        groups.setdefault(item.person, []).append(item)
    alone = layout.unnamed and all(len(own) == 1 for own in groups.values())
    enough = [name for name, own in groups.items() if alone or len(own) >= LEAST]
    kept = sorted(enough, key=digest_of)[:people]
    if len(kept) < LEAST:
        raise UsageError(f"{folder} {_lacking(folder, groups)}", hint=HINT)
    of = {name: sorted(groups[name][:photos], key=lambda one: one.name) for name in kept}
    if len(kept) > MOST_PEOPLE:
        raise UsageError(f"{folder} shows {len(kept)} people", hint=f"take at most {MOST_PEOPLE} of them")
    items = tuple(item for name in sorted(of) for item in of[name])
    return Dataset(folder.resolve().name, items, people, photos)


def _lacking(folder: Path, groups: Mapping[str, Sequence[Item]]) -> str:
    """Return what is wrong with a folder that has not two people with two photos each."""
    enough = sum(len(own) >= LEAST for own in groups.values())
    if len(groups) == 1:
        return f"shows one person, {next(iter(groups))!r}, and attacks tell people apart"
    if groups:
        told = "nobody has" if not enough else "one alone has"
        return f"shows {len(groups)} people, of whom {told} two photos: one to know and one to attack"
    flat = loose(folder)
    if flat:
        return f"holds {count_noun(flat, 'photo')} outside of any folder, and nothing says whom they show"
    return "holds no photos"


def check_readable(datasets: Sequence[Dataset]) -> None:
    """Read every photo once, and raise `PhotoError` for the first that cannot be: not after hours."""
    for dataset in datasets:
        for item in dataset.items:
            item.read()


PROBES: Final = 5  # of so many photos of a person, one is released and attacked, rounded up


@dataclass(frozen=True)
class Split:
    """The attacker's photos, and the others, `probes`, whose releases it gets: both show the same people."""

    known: tuple[Item, ...]
    probes: tuple[Item, ...]


def split(dataset: Dataset) -> Split:
    """Return which photos are the attacker's; of each person a fifth is attacked, and at least one photo.

    The first by a hash of their names are attacked, so no order of files or people decides. Of somebody with
    one photo the attacker has that one, and another release of it.
    """
    known: list[Item] = []
    probes: list[Item] = []
    people: dict[str, list[Item]] = {person: [] for person in dataset.people}
    for item in dataset.items:
        people[item.person].append(item)
    for photos in people.values():
        if len(photos) == 1:  # another name, as bits of releases follow from names
            probes += photos
            known.append(replace(photos[0], name=f"{photos[0].name} of the attacker"))
            continue
        own = sorted(photos, key=lambda item: item.rank)
        count = -(-len(own) // PROBES)
        probes += sorted(own[:count], key=lambda item: item.name)
        known += sorted(own[count:], key=lambda item: item.name)
    return Split(tuple(known), tuple(probes))

"""Which photos the attacker has, and which are released: decided by hashes, the same in every run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dpveil.bench.data import PHOTOS, Dataset
from dpveil.bench.items import Item, digest_of
from dpveil.errors import UsageError

PROBES: Final = 5
"""Of so many photos of a person, one is released and attacked, rounded up."""

STRANGERS: Final = 5
"""Of so many people who are not learnt from, one is a stranger."""
LEAST_PEOPLE: Final = 5
"""Least people of a split by people: two to learn from, two to name and a stranger."""


@dataclass(frozen=True)
class Split:
    """The attacker's photos, and the others, `probes`, whose releases it gets: both show the same people.

    With `learnt`, the attacker learns from the photos of these people alone, who are not among the probes,
    and enrols the others; it gets releases of `strangers`, too, of whom it has no photo.
    """

    known: tuple[Item, ...]
    probes: tuple[Item, ...]
    strangers: tuple[Item, ...] = ()
    learnt: frozenset[str] = frozenset()


def split(dataset: Dataset) -> Split:
    """Return which photos are the attacker's; of each person a fifth is attacked, and at least one photo.

    The first by a hash of their names are attacked, so no order of files or people decides. Of somebody with
    one photo the attacker has that one, and another release of it. By people, half of them are learnt from,
    and a fifth of the others are strangers, at least one, all of whose photos are released. Raises
    `UsageError` for fewer than five people then.
    """
    parts = _by_photos(dataset)
    if dataset.split == PHOTOS:
        return parts
    learnt, strangers = _apart(dataset)
    return Split(
        tuple(item for item in dataset.items if item.person in learnt)
        + tuple(item for item in parts.known if item.person not in learnt | strangers),
        tuple(item for item in parts.probes if item.person not in learnt | strangers),
        tuple(item for item in dataset.items if item.person in strangers),
        learnt,
    )


def _apart(dataset: Dataset) -> tuple[frozenset[str], frozenset[str]]:
    """Return who is learnt from and who is a stranger, by a hash of names; both eyes of one go together."""
    units: dict[str, list[str]] = {}
    for person in dataset.people:
        both = person.removesuffix("-L").removesuffix("-R") if dataset.subject == "eyes" else person
        units.setdefault(both, []).append(person)
    order = sorted(units, key=digest_of)
    if len(order) < LEAST_PEOPLE:
        problem = f"{dataset.name} shows {len(order)} people, too few to learn from some and attack others"
        raise UsageError(problem, hint=f"{LEAST_PEOPLE} at least, or split by photos")
    half, rest = order[: len(order) // 2], order[len(order) // 2 :]
    outside = rest[: max(1, len(rest) // STRANGERS)]
    of = [frozenset(name for unit in part for name in units[unit]) for part in (half, outside)]
    return of[0], of[1]


def _by_photos(dataset: Dataset) -> Split:
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

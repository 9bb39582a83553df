"""Which photos the attacker has, and which are released: decided by hashes, the same in every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpveil.bench.data import Dataset
from dpveil.bench.items import Item

PROBES: Final = 5
"""Of so many photos of a person, one is released and attacked, rounded up."""


@dataclass(frozen=True)
class Split:
    """The attacker's photos, and the others, `probes`, whose releases it gets: both show the same people."""

    known: tuple[Item, ...]
    probes: tuple[Item, ...]


def split(dataset: Dataset) -> Split:
    """Return which photos are the attacker's; of each person a fifth is attacked, and at least one photo.

    The first by a hash of their names are attacked, so no order of files or people decides.
    """
    known: list[Item] = []
    probes: list[Item] = []
    for person in dataset.people:
        own = sorted((item for item in dataset.items if item.person == person), key=lambda one: one.rank)
        count = -(-len(own) // PROBES)
        probes += sorted(own[:count], key=lambda item: item.name)
        known += sorted(own[count:], key=lambda item: item.name)
    return Split(tuple(known), tuple(probes))

"""Running the audits of growth and recombination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from dpveil.audit.faces import growth_table, recombination_table
from dpveil.audit.faces.growth import MadeLossy
from dpveil.audit.faces.growth_gates import escape_gate, release_gate, stated_gate
from dpveil.audit.faces.photos import Bits
from dpveil.audit.faces.recombination import Made
from dpveil.audit.faces.recombination_gates import copy_gate, hidden_gate, outside_gate, same_gate
from dpveil.audit.findings import Audited, Finding
from dpveil.audit.mutation import audited


@dataclass(frozen=True)
class PhotoAudit:
    """How growth or recombination is audited: gates by name, the settings of levels, versions.

    `ties` compare what gates see with what is released, and are not for mutants.
    """

    name: str
    made: Callable[[Any, Bits], Any]
    gates: dict[str, Callable[..., Iterator[Finding]]]
    levels: dict[str, Callable[[], tuple[Any, ...]]]
    intact: Any
    mutants: tuple[Any, ...]
    ties: tuple[Callable[..., Iterator[Finding]], ...] = ()


GROWTH: Final = PhotoAudit(
    "growth",
    MadeLossy,
    {"escape": escape_gate, "release": release_gate, "stated": stated_gate},
    growth_table.LEVELS,
    growth_table.INTACT,
    growth_table.MUTANTS,
)
RECOMBINATION: Final = PhotoAudit(
    "recombination",
    Made,
    {"hidden": hidden_gate, "outside": outside_gate, "copy": copy_gate},
    recombination_table.LEVELS,
    recombination_table.INTACT,
    recombination_table.MUTANTS,
    (same_gate,),
)


def photo_audits() -> dict[str, PhotoAudit]:
    """Return the audits of what is done to photos around a draw, by name."""
    return {audit.name: audit for audit in (GROWTH, RECOMBINATION)}


def run_photos(entry: PhotoAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit one of them at a level, and its mutants at the quick one."""
    kept: dict[Any, Any] = {}

    def cases(name: str) -> list[Any]:
        return [kept.setdefault(case, entry.made(case, bits)) for case in entry.levels[name]()]

    def gates(name: str) -> Iterator[tuple[str, Callable[[Any], Iterator[Finding]]]]:
        for gate, look in entry.gates.items():
            for made in cases(name):
                yield gate, partial(look, made=made)

    ties = tuple(finding for look in entry.ties for made in cases(level) for finding in look(made))
    found = audited(entry.name, entry.intact, entry.mutants, gates, level, step)
    return replace(found, findings=ties + found.findings)

"""The audits of the steps around a draw: growth and recombination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dpveil_audit.entry import Bits, Check, Entry, Level, computed
from dpveil_audit.faces import growth_table, recombination_table
from dpveil_audit.faces.growth import MadeLossy
from dpveil_audit.faces.growth_gates import escape_gate, release_gate, stated_gate
from dpveil_audit.faces.recombination import Made
from dpveil_audit.faces.recombination_gates import copy_gate, hidden_gate, outside_gate, same_gate
from dpveil_audit.findings import Finding

Gates = dict[str, Callable[[Any, Any], Iterator[Finding]]]


@dataclass(frozen=True, kw_only=True)
class PhotoAudit(Entry[Any, Level[Any, Any]]):
    """The audit of growth or recombination: gates by name, and the function that makes the photos of a case.

    `ties` compare what gates see with what is released, and do not apply to mutants.
    """

    made: Callable[[Any, Bits], Any]
    gates: Gates
    ties: Gates

    def checks(self, level: Level[Any, Any], bits: Bits) -> Iterator[Check[Any]]:
        """Yield every gate with every setting; photos are made once for all gates and versions."""
        made = [self.made(case, bits) for case in level.exact]
        for gate, look in self.ties.items():
            yield from computed(gate, look, made, self.intact)
        for gate, look in self.gates.items():
            yield from computed(gate, look, made)


PHOTOS: Final = {
    "growth": PhotoAudit(
        made=MadeLossy,
        gates={"escape": escape_gate, "release": release_gate, "stated": stated_gate},
        ties={},
        levels=growth_table.LEVELS,
        intact=growth_table.INTACT,
        mutants=growth_table.MUTANTS,
    ),
    "recombination": PhotoAudit(
        made=Made,
        gates={"hidden": hidden_gate, "outside": outside_gate, "copy": copy_gate},
        ties={"same": same_gate},
        levels=recombination_table.LEVELS,
        intact=recombination_table.INTACT,
        mutants=recombination_table.MUTANTS,
    ),
}


def photo_audits() -> dict[str, PhotoAudit]:
    """Return the audits of photo processing around a draw, by name."""
    return PHOTOS

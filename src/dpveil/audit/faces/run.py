"""Running the audit of one method that shows a face of a gallery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dpveil.audit.faces.case import DistributionOf, FacesAudit, FacesDrawn, FacesLevel, FacesVersion
from dpveil.audit.faces.gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil.audit.findings import Audited, Finding
from dpveil.audit.mutation import audited
from dpveil.noise.bits import BitSource

Bits = Callable[[str], BitSource]
Check = Callable[[FacesVersion], Iterator[Finding]]


def run_faces(entry: FacesAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a method at a level, and its mutants at the quick one."""
    same = tuple(finding for case in entry.levels[level].exact for finding in same_gate(entry, case))

    def gates(name: str) -> Iterator[tuple[str, Check]]:
        return checks_of(entry, entry.levels[name], bits)

    found = audited(entry.method.name, entry.intact, entry.mutants, gates, level, step)
    return replace(found, findings=same + found.findings)


def checks_of(entry: FacesAudit, level: FacesLevel, bits: Bits) -> Iterator[tuple[str, Check]]:
    """Yield every gate with every setting; those that find most for their time come first."""
    for case in level.exact:
        yield "exact", partial(exact_gate, case=case)
    for setting in level.drawn:
        yield "fit", partial(_fit, setting, entry.definition, bits)
    for setting in level.drawn:
        yield "bound", partial(_bound, setting, bits)


def _fit(
    setting: FacesDrawn, definition: DistributionOf, bits: Bits, version: FacesVersion
) -> Iterator[Finding]:
    return fit_gate(version, definition, setting, bits=bits(f"{setting.case} fit"))


def _bound(setting: FacesDrawn, bits: Bits, version: FacesVersion) -> Iterator[Finding]:
    return bound_gate(version, setting, bits=bits(f"{setting.case} bound"))

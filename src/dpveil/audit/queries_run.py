"""Running the audit of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dpveil.audit.findings import Audited, Finding
from dpveil.audit.killing import audited
from dpveil.audit.queries import INTACT, QueryAudit, QueryDrawn, QueryLevel, QueryVersion
from dpveil.audit.queries_gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil.noise.bits import BitSource

Bits = Callable[[str], BitSource]
Check = Callable[[QueryVersion], Iterator[Finding]]


def run_query(entry: QueryAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a query at a level, and its mutants at the quick one."""
    same = tuple(finding for case in entry.levels[level].exact for finding in same_gate(case))

    def gates(name: str) -> Iterator[tuple[str, Check]]:
        return checks_of(entry.levels[name], bits)

    found = audited(entry.name, INTACT, entry.mutants, gates, level, step)
    return replace(found, findings=same + found.findings)


def checks_of(level: QueryLevel, bits: Bits) -> Iterator[tuple[str, Check]]:
    """Yield every gate with every setting."""
    for case in level.exact:
        yield "exact", partial(exact_gate, case=case)
    for setting in level.drawn:
        yield "fit", partial(_fit, setting, bits)
    for setting in level.drawn:
        yield "bound", partial(_bound, setting, bits)


def _fit(setting: QueryDrawn, bits: Bits, version: QueryVersion) -> Iterator[Finding]:
    return fit_gate(version, setting, bits=bits(f"{setting.case} fit"))


def _bound(setting: QueryDrawn, bits: Bits, version: QueryVersion) -> Iterator[Finding]:
    return bound_gate(version, setting, bits=bits(f"{setting.case} bound"))

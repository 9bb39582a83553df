"""Running the audit of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dpveil.audit.findings import Audited, Finding
from dpveil.audit.mutation import audited, told
from dpveil.audit.numbers.queries import INTACT, QueryAudit, QueryCase, QueryDrawn, QueryLevel, QueryVersion
from dpveil.audit.numbers.queries_gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil.noise.bits import BitSource

Bits = Callable[[str], BitSource]
Check = Callable[[QueryVersion], Iterator[Finding]]


def run_query(entry: QueryAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a query at a level, and its mutants at the quick one."""
    cases = entry.levels[level].exact
    same = tuple(finding for case in cases for finding in told("same", case, same_gate(case)))

    def gates(name: str) -> Iterator[tuple[str, Check]]:
        return checks_of(entry.levels[name], bits)

    found = audited(entry.name, INTACT, entry.mutants, gates, level, step)
    return replace(found, findings=same + found.findings)


def checks_of(level: QueryLevel, bits: Bits) -> Iterator[tuple[str, Check]]:
    """Yield every gate with every setting."""
    for case in level.exact:
        yield "exact", partial(_computed, case)
    for setting in level.drawn:
        yield "fit", partial(_drawn, "fit", fit_gate, setting, bits)
    for setting in level.drawn:
        yield "bound", partial(_drawn, "bound", bound_gate, setting, bits)


def _computed(case: QueryCase, version: QueryVersion) -> Iterator[Finding]:
    return told("exact", case, exact_gate(version, case))


def _drawn(
    name: str, gate: Callable[..., Iterator[Finding]], setting: QueryDrawn, bits: Bits, version: QueryVersion
) -> Iterator[Finding]:
    return told(name, setting.case, gate(version, setting, bits=bits(f"{setting.case} {name}")))

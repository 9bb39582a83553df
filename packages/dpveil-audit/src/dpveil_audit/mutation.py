"""The mutation run: every gate on the intact version, then on each mutant until one rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dpveil_audit.entry import Bits, Check, Entry, Variant
from dpveil_audit.findings import Audited, Finding, Mutant
from dpveil_audit.gates import refused

V = TypeVar("V", bound=Variant)


def run(name: str, entry: Entry[Any, Any], level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Return the findings for the intact version at this level, and for mutants at the quick one.

    Rejecting a mutant with few settings and draws is the stronger evidence, and more would reject it too.
    `step` is called after the intact version and after every mutant.
    """
    checks = list(entry.checks(entry.levels[level], bits))
    intact = [check for check in checks if check.suits(entry.intact)]
    found = [finding for check in intact for finding in findings(entry, entry.intact, check)]
    step()
    if entry.mutants and level != "quick":
        checks = list(entry.checks(entry.levels["quick"], bits))
    mutants = []
    for mutant in entry.mutants:
        shown = [check for check in checks if check.suits(mutant)]
        differing = [check for check in shown if entry.differs(mutant, check)]
        if differing or not entry.common:
            tried = tuple(dict.fromkeys(check.gate for check in shown))
            mutants.append(Mutant(mutant.name, tried, tuple(killers(entry, mutant, differing))))
        step()
    return Audited(name, tuple(found), tuple(mutants), entry.note)


def findings(entry: Entry[V, Any], version: V, check: Check[V]) -> Iterator[Finding]:
    """Yield a gate's findings; a release that is refused without reason is a finding as well."""
    try:
        yield from check.look(version)
    except entry.refusals as error:
        yield refused(check.gate, check.case, error)


def killers(entry: Entry[V, Any], mutant: V, checks: Iterable[Check[V]]) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at its first such finding."""
    done: set[str] = set()
    for check in checks:
        if check.gate not in done and not all(found.passed for found in findings(entry, mutant, check)):
            done.add(check.gate)
            yield check.gate

"""Running the audit of one latent mechanism: every gate as it is, then on every mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from dpveil.audit.findings import Audited, Finding, Mutant
from dpveil.audit.latent import LatentAudit, LatentDrawn, LatentLevel, LatentVersion
from dpveil.audit.latent_gates import bound_gate, exact_gate, fit_gate
from dpveil.noise.bits import BitSource

Bits = Callable[[str], BitSource]
Check = Callable[[LatentVersion], Iterator[Finding]]


def run_latent(entry: LatentAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a mechanism at a level, and its mutants at the quick one."""
    found = [
        finding for _, check in _checks(entry, entry.levels[level], bits) for finding in check(entry.intact)
    ]
    step()
    mutants = []
    for mutant in entry.mutants:
        checks = list(_checks(entry, entry.levels["quick"], bits))
        tried = tuple(dict.fromkeys(gate for gate, _ in checks))
        mutants.append(Mutant(mutant.name, tried, tuple(_killers(mutant, checks))))
        step()
    return Audited(entry.method.name, tuple(found), tuple(mutants))


def _checks(entry: LatentAudit, level: LatentLevel, bits: Bits) -> Iterator[tuple[str, Check]]:
    """Yield every gate with every setting; those that find most for their time come first."""
    for case in level.exact:
        yield "exact", partial(exact_gate, case=case)
    for number, setting in enumerate(level.drawn):
        yield "fit", partial(_fit, setting, entry.intact, bits, f"{setting.case} fit {number}")
    for number, setting in enumerate(level.drawn):
        yield "bound", partial(_bound, setting, bits, f"{setting.case} bound {number}")


def _fit(
    setting: LatentDrawn, intact: LatentVersion, bits: Bits, stream: str, version: LatentVersion
) -> Iterator[Finding]:
    return fit_gate(version, intact, setting, bits=bits(stream))


def _bound(setting: LatentDrawn, bits: Bits, stream: str, version: LatentVersion) -> Iterator[Finding]:
    return bound_gate(version, setting, bits=bits(stream))


def _killers(mutant: LatentVersion, checks: list[tuple[str, Check]]) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at the first finding that does."""
    done: set[str] = set()
    for gate, check in checks:
        if gate not in done and not all(finding.passed for finding in check(mutant)):
            done.add(gate)
            yield gate

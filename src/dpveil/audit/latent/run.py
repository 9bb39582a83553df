"""Running the audit of one latent mechanism: every gate as it is, then on every mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from dpveil.audit.findings import Audited, Finding
from dpveil.audit.latent.case import LatentAudit, LatentDrawn, LatentLevel, LatentVersion
from dpveil.audit.latent.gates import bound_gate, exact_gate, fit_gate
from dpveil.audit.mutation import audited
from dpveil.noise.bits import BitSource

Bits = Callable[[str], BitSource]
Check = Callable[[LatentVersion], Iterator[Finding]]


def run_latent(entry: LatentAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a mechanism at a level, and its mutants at the quick one."""

    def gates(name: str) -> Iterator[tuple[str, Check]]:
        return _checks(entry, entry.levels[name], bits)

    return audited(entry.method.name, entry.intact, entry.mutants, gates, level, step)


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

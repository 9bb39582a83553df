"""Running the audit of one scalar mechanism: every gate as it is, then on every mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from dpveil.audit.findings import Audited, Finding, Mutant
from dpveil.audit.scalar.arrive import arrive_gate, tables_gate
from dpveil.audit.scalar.case import ScalarAudit, ScalarCase, ScalarDrawn, ScalarLevel, ScalarVersion
from dpveil.audit.scalar.distributions import distribution_of
from dpveil.audit.scalar.drawn import bound_gate, fit_gate
from dpveil.audit.scalar.gates import exact_gate, refused, same_gate
from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource

OWN_DRAWS: Final = 20_000
Bits = Callable[[str], BitSource]
Step = Callable[[], None]
Check = Callable[[ScalarVersion], Iterator[Finding]]


def run_scalar(entry: ScalarAudit, level: str, bits: Bits, step: Step) -> Audited:
    """Audit a mechanism at a level, and at the quick one its mutants that are wrong anywhere there."""
    found = _intact(entry.method, entry.intact, entry.levels[level], bits)
    step()
    mutants = []
    for mutant in entry.mutants:
        every = _checks(entry.levels["quick"], bits, mutant.bound)
        checks = [check for check in every if not mutant.gates or check[0] in mutant.gates]
        tried = tuple(dict.fromkeys(gate for gate, _, _ in checks))
        if any(_fits(mutant, case) for case in dict.fromkeys(case for _, case, _ in checks)):
            mutants.append(Mutant(mutant.name, tried, tuple(_killers(mutant, checks))))
        step()
    return Audited(entry.method.name, found, tuple(mutants))


def own_scalar(method: ScalarMechanism, bits: Bits, step: Step) -> Audited:
    """Audit one mechanism with the user's own parameters, as it is."""
    method.prepare()
    case = ScalarCase(method)
    level = ScalarLevel((case,), (ScalarDrawn(case, OWN_DRAWS),))
    found = _intact(type(method), ScalarVersion(name="intact"), level, bits)
    step()
    return Audited(method.name, found, ())


def _intact(
    kind: type[ScalarMechanism], version: ScalarVersion, level: ScalarLevel, bits: Bits
) -> tuple[Finding, ...]:
    cases = dict.fromkeys([*level.exact, *(setting.case for setting in level.drawn)])
    same: list[tuple[str, ScalarCase, Check]] = [("same", case, partial(_same, case)) for case in cases]
    found: list[Finding] = []
    for gate, case, check in [*same, *_checks(level, bits, ())]:
        try:
            found += check(version)
        except NoiseError as error:
            found.append(refused(gate, case, error))
    found += tables_gate(kind, version, level.tables, bits=bits(f"{kind.name} tables"))
    return tuple(found)


def _checks(
    level: ScalarLevel, bits: Bits, more: tuple[ScalarDrawn, ...]
) -> Iterator[tuple[str, ScalarCase, Check]]:
    """Yield every gate with every setting; those that find most for their time come first."""
    cases = dict.fromkeys([*level.exact, *(setting.case for setting in level.drawn)])
    for gate, look in (("exact", exact_gate), ("arrive", arrive_gate)):
        for case in cases:
            yield gate, case, partial(look, case=case)
    for k, setting in enumerate(level.drawn):
        yield "fit", setting.case, partial(_fit, setting, bits, f"fit {k}")
    for k, setting in enumerate(level.drawn + more):
        yield "bound", setting.case, partial(_bound, setting, bits, f"bound {k}")


def _same(case: ScalarCase, version: ScalarVersion) -> Iterator[Finding]:
    return same_gate(case)


def _fit(setting: ScalarDrawn, bits: Bits, stream: str, version: ScalarVersion) -> Iterator[Finding]:
    own = bits(f"{setting.case} {stream}")
    return fit_gate(version, setting, distribution_of(setting.case.method), bits=own)


def _bound(setting: ScalarDrawn, bits: Bits, stream: str, version: ScalarVersion) -> Iterator[Finding]:
    return bound_gate(version, setting, bits=bits(f"{setting.case} {stream}"))


def _killers(mutant: ScalarVersion, checks: list[tuple[str, ScalarCase, Check]]) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at the first finding that does."""
    done: set[str] = set()
    for gate, case, check in checks:
        if gate in done or not _fits(mutant, case):
            continue
        if not all(finding.passed for finding in check(mutant)):
            done.add(gate)
            yield gate


def _fits(mutant: ScalarVersion, case: ScalarCase) -> bool:
    """Whether a mutant is wrong there; where the mechanism itself refuses, its own findings say so."""
    try:
        case.method.prepare()
        return mutant.fits(case)
    except NoiseError:
        return False

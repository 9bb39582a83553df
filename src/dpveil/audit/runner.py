"""Running audits: every gate on the method as it is, then every gate on every mutant until one rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from dpveil.audit.faces.photos_run import photo_audits, run_photos
from dpveil.audit.faces.run import run_faces
from dpveil.audit.faces.table import face_methods
from dpveil.audit.findings import Audited, Finding, Mutant, Report
from dpveil.audit.fit import ALPHA
from dpveil.audit.latent.run import run_latent
from dpveil.audit.latent.table import latents
from dpveil.audit.numbers.learning_run import learners, run_learner
from dpveil.audit.numbers.queries_run import run_query
from dpveil.audit.numbers.queries_table import query_audits
from dpveil.audit.pixel.case import Case, Drawn, Level, MethodAudit
from dpveil.audit.pixel.gates_drawn import apart_gate, bound_gate, fit_gate
from dpveil.audit.pixel.gates_exact import exact_gate, same_gate
from dpveil.audit.pixel.gates_noise import pld_gate
from dpveil.audit.pixel.table import SAMPLER_DRAWS, TABLE, samplers
from dpveil.audit.pixel.version import Version
from dpveil.audit.samplers import Sample, SamplerAudit, SamplerCase, fit_findings
from dpveil.audit.scalar.run import own_scalar, run_scalar
from dpveil.audit.scalar.table import scalars
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource, SecureBits, SeededBits

LEVELS: Final = ("quick", "deep")
MOST: Final = {"epsilon": 200, "rho": 50}
"""Beyond, chances are too small for 64-bit floats, and there is next to no promise to break."""
COMPUTED: Final = ("exact", "pld")
"""Gates that look at distributions alone: blind to a mutant whose distribution is the intact one."""
Step = Callable[[], None]
Check = Callable[[Version], Iterator[Finding]]


def run(
    target: str | PixelMethod | ScalarMechanism | None = None,
    level: str = "quick",
    *,
    seed: int | None = None,
    step: Step = lambda: None,
) -> Report:
    """Audit a method, scalar mechanism or sampler by name, one object, or (None) all; return what was found.

    A method object is audited as it is, at the sizes of its table entry, without mutants; a name is audited
    at the settings of the table, with its mutants. Bits are secure unless a `seed` is given. `step` is
    called after each of `steps_of(target)` parts. Raises `UnknownName`, and `InvalidParameter` for
    another level.

    >>> run("integer-matrix", seed=1).passed
    True
    """
    if level not in LEVELS:
        raise InvalidParameter("level", level, "is unknown", hint="quick or deep")
    source = _Bits(seed)
    audited = tuple(job(source, step) for job in _jobs(target, level))
    drawn = sum(finding.gate in ("fit", "bound", "apart") for one in audited for finding in one.findings)
    return Report(level, source.kind, drawn * ALPHA, audited)


def names() -> tuple[str, ...]:
    """Return what can be audited by name: methods, mechanisms, what surrounds them, models, samplers."""
    return tuple(_entries())


def steps_of(target: str | None) -> int:
    """Return how often `run` will call `step` for a name, or for None."""
    return sum(1 + len(entry.mutants) for name, (entry, _) in _entries().items() if target in (None, name))


def _entries() -> dict[str, tuple[Any, Callable[..., Audited]]]:
    """Return every audit by name, with what runs it: a family a row, the only list to edit."""
    families: tuple[tuple[Mapping[str, Any], Callable[..., Audited]], ...] = (
        (TABLE, _method),
        (scalars(), run_scalar),
        (latents(), run_latent),
        (face_methods(), run_faces),
        (photo_audits(), run_photos),
        (query_audits(), run_query),
        (learners(), run_learner),
        (samplers(), _sampler),
    )
    return {name: (entry, carry_out) for family, carry_out in families for name, entry in family.items()}


class _Bits:
    """Independent streams of bits by name: secure, or reproducible from a seed."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.kind = "secure" if seed is None else f"seed {seed}"

    def __call__(self, name: str) -> BitSource:
        return SecureBits() if self.seed is None else SeededBits(self.seed, f"audit {name}")


Job = Callable[[_Bits, Step], Audited]


def _jobs(target: str | PixelMethod | ScalarMechanism | None, level: str) -> Iterator[Job]:
    if isinstance(target, PixelMethod):
        yield partial(_own, target, TABLE[target.name].levels[level].of(target))
        return
    if isinstance(target, ScalarMechanism):
        yield partial(own_scalar, target)
        return
    found = _entries()
    if target is not None and target not in found:
        raise UnknownName("method, mechanism or sampler", str(target), tuple(found))
    for name in found if target is None else (target,):
        entry, carry_out = found[name]
        yield partial(carry_out, entry, level)


def _checks(entry: MethodAudit, level: Level, bits: _Bits) -> Iterator[tuple[str, Case, Check]]:
    """Yield every gate with every setting; those that find most for their time come first."""
    for case in level.exact:
        yield "exact", case, partial(exact_gate, case=case, entry=entry)
    if entry.intact.noise is not None:
        for case in level.exact:
            yield "pld", case, partial(pld_gate, case=case, entry=entry)
    gates = (("fit", level.fit, _fit), ("bound", level.bound, bound_gate), ("apart", level.apart, apart_gate))
    for gate, settings, look in gates:
        for k, setting in enumerate(settings):
            yield gate, setting.case, partial(_drawn, look, setting, entry, bits, f"{gate} {k}")


def _fit(version: Version, setting: Drawn, entry: MethodAudit, *, bits: BitSource) -> Iterator[Finding]:
    return (
        fit_gate(version, setting, entry.distribution, bits=bits)
        if entry.distribution is not None
        else iter(())
    )


def _drawn(
    gate: Callable[..., Iterator[Finding]],
    setting: Drawn,
    entry: MethodAudit,
    bits: _Bits,
    stream: str,
    version: Version,
) -> Iterator[Finding]:
    return gate(version, setting, entry, bits=bits(stream))


def _own(target: PixelMethod, level: Level, bits: _Bits, step: Step) -> Audited:
    entry = TABLE[target.name]
    for promise in (case.guarantee for case in level.cases):
        for name, most in MOST.items():
            if (getattr(promise, name) or 0) > most:
                raise InvalidParameter(
                    name, getattr(promise, name), "is too large to audit", hint=f"audits reach {most}"
                )
    entry.refuse(target, level)
    found = _intact(entry, level, bits)
    step()
    return Audited(target.name, found, (), entry.note if not found else "")


def _method(entry: MethodAudit, level: str, bits: _Bits, step: Step) -> Audited:
    """Audit the intact version at this level, and mutants at the quick one.

    Few settings and draws that kill a mutant say more for the audit than many, and more would kill it too.
    """
    found = _intact(entry, entry.levels[level], bits)
    step()
    mutants = []
    for mutant in entry.mutants:
        checks = list(_checks(entry, entry.levels["quick"], bits))
        tried = tuple(dict.fromkeys(gate for gate, _, _ in checks))
        mutants.append(Mutant(mutant.name, tried, tuple(_killers(mutant, entry.intact, checks))))
        step()
    return Audited(entry.method.name, found, tuple(mutants), entry.note)


def _intact(entry: MethodAudit, level: Level, bits: _Bits) -> tuple[Finding, ...]:
    found = [finding for case in level.cases for finding in same_gate(entry.intact, case)]
    for _, _, check in _checks(entry, level, bits):
        found += check(entry.intact)
    return tuple(found)


def _killers(mutant: Version, intact: Version, checks: list[tuple[str, Case, Check]]) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at the first finding that does."""
    done: set[str] = set()
    for gate, case, check in checks:
        if gate in done or not mutant.unlike(intact, case.method, case.size):
            continue
        if gate in COMPUTED and mutant.distribution is intact.distribution and mutant.noise is intact.noise:
            continue
        if not all(finding.passed for finding in check(mutant)):
            done.add(gate)
            yield gate


def _sampler(audit: SamplerAudit, level: str, bits: _Bits, step: Step) -> Audited:
    """Audit a sampler with the draws of this level, and faults in those of the quick one."""
    found = audit.exact()
    for case, sample in _samples(audit, SAMPLER_DRAWS[level], bits):
        found += fit_findings(case, sample)
    step()
    mutants, draws = [], SAMPLER_DRAWS["quick"]
    samples = _samples(audit, draws, bits)
    for name, fault in audit.mutants.items():
        uniform = (bits(f"{audit.name} {name}").words(draws) >> 11).astype(float) / 2**53
        killed = any(
            not finding.passed
            for case, sample in samples
            for finding in fit_findings(case, fault(sample, uniform))
        )
        mutants.append(Mutant(name, ("fit",), ("fit",) if killed else ()))
        step()
    return Audited(audit.name, tuple(found), tuple(mutants))


def _samples(audit: SamplerAudit, draws: int, bits: _Bits) -> list[tuple[SamplerCase, Sample]]:
    return [(case, case.draw(draws, bits(f"{audit.name} {case.label}"))) for case in audit.cases]

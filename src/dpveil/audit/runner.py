"""Running audits: every gate on the method as it is, then every gate on every mutant until one rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from dpveil.audit.case import Pixelisation, Right
from dpveil.audit.findings import Audited, Finding, Mutant, Report
from dpveil.audit.fit import ALPHA
from dpveil.audit.gates_drawn import bound_gate, fit_gate
from dpveil.audit.gates_exact import exact_gate, pld_gate, same_gate
from dpveil.audit.samplers import SamplerAudit, fit_findings
from dpveil.audit.steps import Steps
from dpveil.audit.table import SAMPLER_DRAWS, TABLE, Drawn, Level, MethodAudit, samplers
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource, SecureBits, SeededBits

LEVELS: Final = ("quick", "deep")
TRIED: Final = ("exact", "pld", "fit", "bound")
MOST: Final = {"epsilon": 200, "rho": 50}
"""Beyond, chances are too small for 64-bit floats, and there is next to no promise to break."""
WIDEST: Final = 20_000
"""The widest noise, in levels, whose exact law is still a matter of seconds."""
Step = Callable[[], None]
Check = Callable[[Steps], list[Finding]]


def run(
    target: str | Pixelisation | None = None,
    level: str = "quick",
    *,
    seed: int | None = None,
    step: Step = lambda: None,
) -> Report:
    """Audit a method or sampler by name, one method object, or (None) everything; return what was found.

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
    drawn = sum(finding.gate in ("fit", "bound") for one in audited for finding in one.findings)
    return Report(level, source.kind, drawn * ALPHA, audited)


def names() -> tuple[str, ...]:
    """Return what can be audited by name: methods, then samplers."""
    return (*TABLE, *samplers())


def steps_of(target: str | None) -> int:
    """Return how often `run` will call `step` for a name, or for None."""
    wrong = {name: len(entry.mutants) for name, entry in TABLE.items()}
    wrong |= {name: len(audit.faults) for name, audit in samplers().items()}
    return sum(1 + wrong.get(name, 0) for name in (names() if target is None else (target,)))


class _Bits:
    """Independent streams of bits by name: secure, or reproducible from a seed."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.kind = "secure" if seed is None else f"seed {seed}"

    def __call__(self, name: str) -> BitSource:
        return SecureBits() if self.seed is None else SeededBits(self.seed, f"audit {name}")


Job = Callable[[_Bits, Step], Audited]


def _jobs(target: str | Pixelisation | None, level: str) -> Iterator[Job]:
    if isinstance(target, PixelMethod):
        yield partial(_own, target, TABLE[target.name].levels[level].of(target))
        return
    if target is not None and target not in names():
        raise UnknownName("method or sampler", str(target), names())
    for name in names() if target is None else (target,):
        if name in TABLE:
            yield partial(_method, name, TABLE[name].levels[level])
        else:
            yield partial(_sampler, samplers()[name], SAMPLER_DRAWS[level])


def _checks(entry: MethodAudit, level: Level, bits: _Bits) -> Iterator[tuple[str, Check]]:
    """Yield every gate with every setting; those that find most for their time come first."""
    for case in level.exact:
        yield "exact", partial(exact_gate, case=case, right=entry.right)
    for case in level.exact:
        yield "pld", partial(pld_gate, case=case)
    for k, setting in enumerate(level.fit):
        yield "fit", partial(_fit, entry.right, setting, bits, f"fit {k}")
    for k, setting in enumerate(level.bound):
        yield "bound", partial(_bound, setting, bits, f"bound {k}")


def _fit(right: Right, setting: Drawn, bits: _Bits, stream: str, steps: Steps) -> list[Finding]:
    drawer = steps.drawer(setting.case.method)
    return fit_gate(drawer, setting.case, right, draws=setting.draws, bits=bits(stream))


def _bound(setting: Drawn, bits: _Bits, stream: str, steps: Steps) -> list[Finding]:
    drawer, chance = steps.drawer(setting.case.method), setting.chance
    return bound_gate(drawer, setting.case, draws=setting.draws, bits=bits(stream), chance=chance)


def _own(target: Pixelisation, level: Level, bits: _Bits, step: Step) -> Audited:
    promise = level.exact[0].guarantee
    for name, most in MOST.items():
        if (getattr(promise, name) or 0) > most:
            raise InvalidParameter(
                name, getattr(promise, name), "is too large to audit", hint=f"audits reach {most}"
            )
    steps = TABLE[target.name].steps
    width = max(float(p) for case in level.exact for p in steps.parameters(target, case.size))
    if width ** (1 / steps.kind.power) > WIDEST:
        raise InvalidParameter("budget", None, "asks for noise too wide to audit", hint="audit a larger one")
    found = _intact(TABLE[target.name], level, bits)
    step()
    return Audited(target.name, found, ())


def _method(name: str, level: Level, bits: _Bits, step: Step) -> Audited:
    entry = TABLE[name]
    found = _intact(entry, level, bits)
    step()
    mutants = []
    for mutant in entry.mutants.values():
        mutants.append(Mutant(mutant.name, TRIED, tuple(_killers(mutant, entry, level, bits))))
        step()
    return Audited(name, found, tuple(mutants))


def _intact(entry: MethodAudit, level: Level, bits: _Bits) -> tuple[Finding, ...]:
    cases = dict.fromkeys([*level.exact, *(drawn.case for drawn in level.fit + level.bound)])
    found = [finding for case in cases for finding in same_gate(entry.steps, case)]
    for _, check in _checks(entry, level, bits):
        found += check(entry.steps)
    return tuple(found)


def _killers(mutant: Steps, entry: MethodAudit, level: Level, bits: _Bits) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at the first setting that does."""
    done: set[str] = set()
    for gate, check in _checks(entry, level, bits):
        if gate not in done and not all(finding.passed for finding in check(mutant)):
            done.add(gate)
            yield gate


def _sampler(audit: SamplerAudit, draws: int, bits: _Bits, step: Step) -> Audited:
    found = audit.exact()
    samples = [case.draw(draws, bits(f"{audit.name} {case.label}")) for case in audit.cases]
    for case, sample in zip(audit.cases, samples, strict=True):
        found += fit_findings(case, sample)
    step()
    mutants = []
    for name, fault in audit.faults.items():
        uniform = (bits(f"{audit.name} {name}").words(draws) >> 11).astype(float) / 2**53
        killed = any(
            not finding.passed
            for case, sample in zip(audit.cases, samples, strict=True)
            for finding in fit_findings(case, fault(sample, uniform))
        )
        mutants.append(Mutant(name, ("fit",), ("fit",) if killed else ()))
        step()
    return Audited(audit.name, tuple(found), tuple(mutants))

"""The engine of all audits: what is audited, the gates that look at it, and the run of both.

An audit has *versions*: the intact one, and mutants that have to be rejected. A version has an exact law, or
a way to draw, or both; without one of its own, it is drawn from its law. A *case* has settings, inputs and
what its promise allows for two of them. A *gate* holds what a version does in a case against that, and yields
findings. There is one way to compute a divergence (`exact_gate`), one to test draws against a law
(`fit_gate`). Families of audits bring their laws, draws and cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import Float64

from dpveil.errors import DPVeilError
from dpveil.noise.bits import BitSource, uniforms
from dpveil_audit.distributions import Distribution, finite_distribution
from dpveil_audit.divergence import CLOSE, Outcomes, Pairs, ProductLaw, Worst, worst
from dpveil_audit.fit import ALPHA, fit, fit_pairs, pair_fits


@dataclass(frozen=True)
class Finding:
    """The result of one gate: `value` against `limit` in `unit`, and whether the promise held."""

    gate: str
    what: str
    case: str
    value: float
    limit: float
    passed: bool
    unit: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON; infinite values and nan are null."""
        return {k: _finite(v.item() if isinstance(v, np.generic) else v) for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Mutant:
    """A deliberately wrong version, the gates that it was shown to, and those that rejected it."""

    name: str
    tried_by: tuple[str, ...]
    killed_by: tuple[str, ...]

    @property
    def has_survived(self) -> bool:
        return not self.killed_by


@dataclass(frozen=True)
class Audited:
    """The results for one method or sampler; `note` gives the reason if there was nothing to check."""

    name: str
    findings: tuple[Finding, ...]
    mutants: tuple[Mutant, ...]
    note: str = ""

    @property
    def passed(self) -> bool:
        return all(f.passed for f in self.findings) and not any(m.has_survived for m in self.mutants)

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(finding.gate for finding in self.findings))

    def worst(self, gate: str) -> Finding:
        """Return the finding of a gate that is closest to its limit, or furthest beyond."""
        of_gate = [finding for finding in self.findings if finding.gate == gate]
        return max(of_gate, key=lambda f: (not f.passed, f.value / f.limit if f.limit else f.value))

    def to_json(self) -> dict[str, Any]:
        findings = [finding.to_json() for finding in self.findings]
        return {**asdict(self), "passed": self.passed, "findings": findings}


@dataclass(frozen=True)
class Report:
    """One audit: the source of its bits, and all results.

    `false_alarm` bounds the probability that any gate rejects a method that keeps its promise.
    """

    bits: str
    false_alarm: float
    audited: tuple[Audited, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.audited)

    def to_json(self) -> dict[str, Any]:
        findings = [finding for one in self.audited for finding in one.findings]
        mutants = [mutant for one in self.audited for mutant in one.mutants]
        return {
            "bits": self.bits,
            "false_alarm_probability": self.false_alarm,
            "passed": self.passed,
            "checks": len(findings),
            "failed": sum(not finding.passed for finding in findings),
            "mutants": len(mutants),
            "survived": sum(mutant.has_survived for mutant in mutants),
            "audited": [one.to_json() for one in self.audited],
        }


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Bits = Callable[[str], BitSource]
"""A function from names to independent bit sources."""
BY_DRAWS: Final = ("fit",)  # gates for a mutant with the intact law, which only draws can reject
SAME_LAW: Final = 1e-7  # largest difference of a probability from the law that is written independently
Chances = Sequence[Float64[np.ndarray, " outcomes"]]
"""The law of every draw of one input."""
LawOf = Callable[[Any, Any], ProductLaw]
"""The law of releases, as a function of a case and inputs."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of what is audited: intact, or mutated.

    `law` is that whose divergences are computed, `shown` that of what is seen, if it differs.
    `draw(case, input, n, bits)` returns n independent releases; without it, they are drawn from the law, if
    `shared` all parts of one from one random number, if `repeated` each as often in a row. `gates` are those
    that a mutant is shown to, all if empty: the others cannot detect it. Mutants that are `common` to several
    names are skipped where they differ from the intact version in no case (`fits`); others have to be
    rejected. Those with a `plant` are the intact one, with a fault in dpveil: its owner, name and change.
    """

    name: str
    law: LawOf | None = None
    shown: LawOf | None = None
    draw: Callable[[Any, Any, int, BitSource], Any] | None = None
    shared: bool = False
    repeated: int = 1
    gates: tuple[str, ...] = ()
    fits: Callable[[Any], bool] = lambda case: True
    common: bool = False
    plant: tuple[Any, str, Callable[[Any], Any]] | None = None

    @property
    def seen(self) -> LawOf:
        return self.shown or self.law  # type: ignore[return-value]

    def planted(self) -> AbstractContextManager[Any]:
        """Return the context in which the fault of this version, if there is one, is in dpveil."""
        if self.plant is None:
            return nullcontext()
        owner, name, change = self.plant
        return mock.patch.object(owner, name, change(vars(owner)[name]))

    def draws(self, case: Any, inputs: Any, count: int, bits: BitSource) -> Any:
        if self.draw is not None:
            return self.draw(case, inputs[0], count, bits)
        law = self.seen(case, inputs)
        drawn = sampled(law.chances(0), count, bits, shared=self.shared, repeated=self.repeated)
        return law.show(drawn, np.shape(inputs[0]))


def planted(name: str, owner: Any, attribute: str, change: Callable[[Any], Any], gates: str) -> Version:
    """Return dpveil with a fault: `change` makes it of an `attribute` of `owner`; `gates` are "a, b"."""
    return Version(name=name, gates=tuple(gates.split(", ")), plant=(owner, attribute, change))


class Case:
    """A setting. Gates that compute look at all `pairs` of its `inputs` under its `guarantee`."""

    guarantee: Any
    inputs: Any
    apart: Any = None
    """How often the promised ε each pair is allowed; None: once."""
    fits: Any
    """Some inputs to draw for."""

    @property
    def metric(self) -> bool:
        """Whether `apart` are distances, of which the guarantee's diameter is the largest."""
        return False

    @cached_property
    def pairs(self) -> Pairs:
        return np.argwhere(~np.eye(len(self.inputs), dtype=np.bool_))

    def label(self, number: int) -> str:
        return str(self.inputs[number])


@dataclass(frozen=True)
class Drawn:
    """A setting for gates that draw: the inputs that are fitted (None: the case's own)."""

    case: Any
    draws: int
    fits: Any = None


@dataclass(frozen=True)
class Level:
    """The settings of an audit: for gates that compute, and for those that draw."""

    exact: tuple[Any, ...]
    drawn: tuple[Drawn, ...] = ()

    @property
    def cases(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys([*self.exact, *(setting.case for setting in self.drawn)]))

    def deep(self) -> Level:
        """Return the same with five times the draws."""
        return replace(self, drawn=tuple(replace(one, draws=5 * one.draws) for one in self.drawn))


@dataclass(frozen=True)
class Check:
    """A gate with one setting; what `ties` the audit to the code is for the intact version alone."""

    gate: str
    case: Any
    look: Callable[[Any], Iterable[Finding]]
    ties: bool = False


@dataclass(frozen=True)
class Gate:
    """A gate by name: `look(version, setting)` yields findings for every setting `of` a level.

    A gate that `draws` gets `bits`, too, the same for all versions.
    """

    name: str
    look: Callable[..., Iterable[Finding]]
    of: Callable[[Any], Iterable[Any]] = lambda level: level.exact
    draws: bool = False
    ties: bool = False

    def checks(self, level: Any, bits: Bits) -> Iterator[Check]:
        for number, setting in enumerate(self.of(level)):
            case = setting.case if self.draws else setting
            name = f"{case} {self.name} {number}"
            yield Check(self.name, case, partial(self._look, setting, bits, name), self.ties)

    def _look(self, setting: Any, bits: Bits, name: str, version: Any) -> Iterable[Finding]:
        return self.look(version, setting, **({"bits": bits(name)} if self.draws else {}))


def drawing(name: str, look: Callable[..., Iterable[Finding]]) -> Gate:
    return Gate(name, look, lambda level: level.drawn, draws=True)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of one name: its versions, their settings, and the gates.

    Gates that detect most mutants for their time come first. `note` gives the reason if there is nothing to
    check. A release that is refused with one of `refusals` is a finding.
    """

    intact: Any
    mutants: tuple[Any, ...] = ()
    level: Level = Level(())
    gates: tuple[Gate, ...] = ()
    note: str = ""
    method: Any = None
    refusals: tuple[type[DPVeilError], ...] = ()

    def checks(self, bits: Bits) -> list[Check]:
        return [check for gate in self.gates for check in gate.checks(self.level, bits)]

    def run(self, name: str, bits: Bits, step: Callable[[], None] = lambda: None) -> Audited:
        """Return the findings for the intact version and for mutants; `step` is called after each of them."""
        checks = self.checks(bits)
        found = [finding for check in checks for finding in self.findings(self.intact, check)]
        step()
        mutants = []
        for given in self.mutants:
            mutant, plant = given, given.plant
            if plant is not None:
                mutant = replace(self.intact, name=given.name, gates=given.gates, plant=plant)
            shown = [one for one in checks if not one.ties and one.gate in (mutant.gates or [one.gate])]
            differing = [check for check in shown if mutant.fits(check.case)]
            if differing or not mutant.common:
                tried = tuple(dict.fromkeys(check.gate for check in shown))
                with mutant.planted():
                    mutants.append(Mutant(mutant.name, tried, tuple(self.killers(mutant, differing))))
            step()
        return Audited(name, tuple(found), tuple(mutants), self.note)

    def findings(self, version: Any, check: Check) -> Iterator[Finding]:
        """Yield a gate's findings; a release that is refused without reason is a finding as well."""
        try:
            yield from check.look(version)
        except self.refusals as error:
            yield Finding(check.gate, f"refused: {error.message}", str(check.case), 1, 0, False, "releases")

    def killers(self, mutant: Any, checks: Iterable[Check]) -> Iterator[str]:
        """Yield the gates that reject a mutant; each stops at its first such finding."""
        done: set[str] = set()
        for check in checks:
            if check.gate not in done and not all(found.passed for found in self.findings(mutant, check)):
                done.add(check.gate)
                yield check.gate


# The gates for whatever has a law


def exact_gate(
    version: Version, case: Case, right: LawOf | None = None, *, near: float = SAME_LAW
) -> Iterator[Finding]:
    """Yield the divergence of the worst pair of inputs, and how far the law is from what a law should be.

    `right` is the law of what is seen, written independently; no probability may be further from it than
    `near`.
    """
    law = version.law(case, case.inputs)  # type: ignore[misc]
    found = worst(case.guarantee, law, case.pairs, case.apart)
    yield exact_finding(case, f"loss, {len(case.pairs):,} pairs", found, case.label)
    if case.metric:
        most, farthest = float(case.guarantee.diameter), float(case.apart.max())
        kept = farthest <= most * (1 + CLOSE)
        yield Finding("exact", "largest distance", str(case), farthest, most, kept, "d")
    yield Finding("exact", "sum of chances unlike 1", str(case), law.lost, CLOSE, law.lost <= CLOSE)
    if right is not None:
        gap = version.seen(case, case.inputs).distance(right(case, case.inputs))
        what = "distance to the right distribution"
        yield Finding("exact", what, str(case), gap, near, gap <= near)


def fit_gate(version: Version, setting: Drawn, right: LawOf, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well releases of some inputs follow the right law: draws, successive ones, and all pairs."""
    case, inputs = setting.case, setting.case.fits if setting.fits is None else setting.fits

    def seen() -> Iterator[tuple[str, Outcomes, Chances]]:
        for number in range(len(inputs)):
            own = inputs[number : number + 1]
            law = right(case, own)
            released = version.draws(case, own, setting.draws, bits)
            yield f"input {number}", law.read(released), law.seen(0)

    yield fit_finding(case, f"{setting.draws:,} draws", seen())


def law_gates(
    intact: Version,
    right: LawOf | None = None,
    *,
    of: Callable[[Level], Any] = lambda level: level.cases,
) -> tuple[Gate, ...]:
    """Return the gates for what has a law: that of pairs in the cases of a level, and that of draws."""
    return (
        Gate("exact", partial(exact_gate, right=right), of),
        drawing("fit", partial(fit_gate, right=right or intact.seen)),
    )


# What gates of several families share


def count_finding(gate: str, what: str, case: object, count: Any, unit: str = "") -> Finding:
    """Return the finding of what must not occur even once: a number, or an array that says where it does."""
    times = int(np.count_nonzero(count)) if isinstance(count, np.ndarray) else int(count)
    return Finding(gate, what, str(case), times, 0, not times, unit)


def exact_finding(
    case: object, what: str, found: Worst, label: Callable[[int], str] | None = None
) -> Finding:
    """Return the finding of the worst pair of inputs; `label` names one by its number."""
    where = str(case) if label is None else f"{case}, {' and '.join(map(label, found.pair))}"
    return Finding("exact", what, where, float(found.value), float(found.limit), found.kept, found.unit)


def fit_finding(case: object, what: str, seen: Iterable[tuple[str, Outcomes, Chances]]) -> Finding:
    """Return how well outcomes follow their law: each draw, successive ones, and every pair of draws.

    `seen` has for every input its name, its outcomes (-1 for impossible ones), and their law.
    """
    p_values = dict[str, float]()
    for name, outcomes, chances in seen:
        if outcomes.shape[1] != len(chances):
            p_values[f"count of numbers of {name}"] = 0.0
            continue
        drawn = [draw for draw, mass in enumerate(chances) if mass.max() < 1]
        for draw, mass in enumerate(chances):
            own, where = np.ascontiguousarray(outcomes[:, draw]), f"draw {draw} of {name}"
            certain = {where: float((own == mass.argmax()).all())}  # where nothing is drawn
            p_values |= fits(where, own, _distribution(mass.tobytes())) if draw in drawn else certain
        both = pair_fits(np.maximum(outcomes[:, drawn], 0), [chances[draw] for draw in drawn])
        p_values |= {f"{pair} of {name}": p_value for pair, p_value in both.items()}
    return p_value_finding(case, what, p_values)


def sampled(
    chances: Chances, count: int, bits: BitSource, *, shared: bool = False, repeated: int = 1
) -> Outcomes:
    """Return draws from a law that no method has.

    `shared` uses one random number for all parts of a release, `repeated` each as often in a row.
    """
    rows = 1 if shared else len(chances)
    numbers = uniforms(rows * -(-count // repeated), bits).reshape(rows, -1)
    numbers = np.broadcast_to(numbers.repeat(repeated, axis=1)[:, :count], (len(chances), count))
    ends = [np.cumsum(mass[:-1]) for mass in chances]
    return np.stack([np.searchsorted(e, u, side="right") for e, u in zip(ends, numbers, strict=True)], axis=1)


def fits(name: str, seen: Any, law: Distribution) -> dict[str, float]:
    """Return the p-values of draws of a law, and of successive ones."""
    return {name: fit(seen, law).p_value, f"neighbouring draws of {name}": fit_pairs(seen, law).p_value}


def p_value_finding(case: object, what: str, p_values: dict[str, float]) -> Finding:
    """Return the finding of several fits, by the name of what was fitted; alpha covers all of them together.

    `value` is -log10 of the smallest p-value, corrected for their number.
    """
    least = min(p_values, key=lambda name: p_values[name])
    value = max(0.0, -math.log10(max(1e-300, p_values[least]) * len(p_values)))
    limit = -math.log10(ALPHA)
    what = f"{what}, worst at {least}"
    return Finding("fit", what, str(case), value, limit, value <= limit, "-log10 p")


@lru_cache(maxsize=256)
def _distribution(mass: bytes) -> Distribution:
    """Return a law as a distribution, which keeps what fits compute of it."""
    return finite_distribution(np.frombuffer(mass))

"""The engine of all audits: what is audited, the gates that look at it, and the run of both.

An audit has *versions*: the intact one, and mutants that have to be rejected. A version has laws, which are
computed without drawing, or a way to draw, or both. A *case* has settings and says what they allow: ε, ρ or δ
for two inputs. A *gate* holds what a version does in a case against that, and yields findings. Families of
audits bring their own laws, draws and cases; what many gates share is here: fits of draws to a law, and lower
bounds for pairs of inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, Final, Generic, TypeVar

import numpy as np
from jaxtyping import Float64

from dpveil.errors import DPVeilError
from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import Distribution
from dpveil_audit.fit import ALPHA, fit, fit_pairs
from dpveil_audit.lower_bound import (
    MISSED,
    Bound,
    Draws,
    Measure,
    epsilon_at,
    epsilon_event,
    lower_bound,
    smallest_detectable,
)


@dataclass(frozen=True)
class Finding:
    """The result of one gate: `value` against `limit` in `unit`, and whether the promise held.

    `detectable` is the smallest true value above `limit` that the draws detect (see
    `pixel.gates.detectable`): infinite if they are too few for any, None if a gate does not estimate the
    value. `sees` says in words what such a finding would have detected.
    """

    gate: str
    what: str
    case: str
    value: float
    limit: float
    passed: bool
    unit: str = ""
    detectable: float | None = None
    sees: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON; infinite values and nan are null."""
        return {k: _finite(v) for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Mutant:
    """A deliberately wrong version, the gates that it was shown to, and those that rejected it."""

    name: str
    tried_by: tuple[str, ...]
    killed_by: tuple[str, ...]

    @property
    def has_survived(self) -> bool:
        """Whether no gate rejected it."""
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
        """Whether every promise held and every mutant was rejected."""
        return all(f.passed for f in self.findings) and not any(m.has_survived for m in self.mutants)

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates with findings, in their order."""
        return tuple(dict.fromkeys(finding.gate for finding in self.findings))

    def worst(self, gate: str) -> Finding:
        """Return the finding of a gate that is closest to its limit, or furthest beyond."""
        of_gate = [finding for finding in self.findings if finding.gate == gate]
        return max(of_gate, key=lambda f: (not f.passed, f.value / f.limit if f.limit else f.value))

    def sees(self, gate: str) -> str:
        """Return in words the smallest violation that this gate detects in its best setting, by unit."""
        best: dict[str, Finding] = {}
        for finding in self.findings:
            if finding.gate == gate and finding.sees:
                kept = best.setdefault(finding.unit, finding)
                best[finding.unit] = min(kept, finding, key=_reach)
        return "; ".join(dict.fromkeys(finding.sees for finding in best.values()))

    def to_json(self) -> dict[str, Any]:
        """Return all results as JSON."""
        return {
            "name": self.name,
            "passed": self.passed,
            "note": self.note,
            "findings": [finding.to_json() for finding in self.findings],
            "mutants": [
                {"name": m.name, "tried_by": list(m.tried_by), "killed_by": list(m.killed_by)}
                for m in self.mutants
            ],
        }


@dataclass(frozen=True)
class Report:
    """One audit: its level, the source of its bits, and all results.

    `false_alarm` bounds the probability that any gate rejects a method that keeps its promise.
    """

    level: str
    bits: str
    false_alarm: float
    audited: tuple[Audited, ...]

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return all(one.passed for one in self.audited)

    def to_json(self) -> dict[str, Any]:
        """Return one JSON document."""
        findings = [finding for one in self.audited for finding in one.findings]
        mutants = [mutant for one in self.audited for mutant in one.mutants]
        return {
            "level": self.level,
            "bits": self.bits,
            "false_alarm_probability": self.false_alarm,
            "passed": self.passed,
            "checks": len(findings),
            "failed": sum(not finding.passed for finding in findings),
            "mutants": len(mutants),
            "survived": sum(mutant.has_survived for mutant in mutants),
            "audited": [one.to_json() for one in self.audited],
        }


def _reach(finding: Finding) -> float:
    if finding.detectable is None or not finding.limit:
        return 0.0
    return finding.detectable / finding.limit


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Bits = Callable[[str], BitSource]
"""A function from names to independent bit sources."""
NUMBERED: Final = "{case} {gate} {number}"
"""The name of a bit source if one case has several settings."""
BY_DRAWS: Final = ("fit", "bound")
"""Gates for a mutant with the intact distributions, which only draws can reject."""
BY_LAW: Final = ("exact", "fit")
"""Gates for a mutant that no lower bound rejects at the quick level."""
DEEPER: Final = 5
"""Draws of a deep level for each of the quick one."""
UNBOUNDED: Final = 1e6
"""Stands for an infinite budget, of inputs that are distinguished with certainty."""
CHANCE: Final = 0.3
"""Probability of the event with which the smallest detectable ε is computed."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One version of what is audited: intact, or mutated.

    `gates` are those that a mutant is shown to, all if empty: the others cannot detect it, or would need more
    draws than the quick level has.
    """

    name: str
    gates: tuple[str, ...] = ()


C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True)
class Drawn(Generic[C, T]):
    """A setting for gates that draw: the inputs that are fitted, and the pairs that are distinguished."""

    case: C
    draws: int
    fits: tuple[T, ...] = ()
    pairs: tuple[tuple[T, T], ...] = ()


@dataclass(frozen=True)
class Level(Generic[C, T]):
    """The settings of one level; `tables` is the number of random tables, in families that use them."""

    exact: tuple[C, ...]
    drawn: tuple[Drawn[C, T], ...] = ()
    tables: int = 0

    @property
    def cases(self) -> tuple[C, ...]:
        """Every case, once."""
        return tuple(dict.fromkeys([*self.exact, *(setting.case for setting in self.drawn)]))

    def more(self, exact: tuple[C, ...], tables: int = 0) -> Level[C, T]:
        """Return this level with more settings and tables, and `DEEPER` times the draws."""
        drawn = tuple(replace(setting, draws=DEEPER * setting.draws) for setting in self.drawn)
        return Level(self.exact + exact, drawn, tables)


@dataclass(frozen=True)
class Check:
    """A gate with one setting. `only` is the version it is for: None for all."""

    gate: str
    case: Any
    look: Callable[[Any], Iterable[Finding]]
    only: Variant | None = None

    def suits(self, version: Variant) -> bool:
        """Return whether it applies to this version, by the version's `gates`."""
        return (self.only is None or self.only is version) and (
            not version.gates or self.gate in version.gates
        )


@dataclass(frozen=True)
class Gate:
    """A gate by name: `look(version, setting)` yields findings for every setting that `of` finds in a level.

    A gate that `draws` gets `bits`, too, the same for all versions, named by `stream`. One that
    `ties` the audit to the code that runs looks at the intact version alone.
    """

    name: str
    look: Callable[..., Iterable[Finding]]
    of: Callable[[Any], Iterable[Any]] = lambda level: level.exact
    draws: bool = False
    ties: bool = False
    stream: str = "{case} {gate}"

    def checks(self, level: Any, bits: Bits, intact: Variant, only: Variant | None = None) -> Iterator[Check]:
        """Yield this gate with every setting of a level."""
        only = intact if self.ties else only
        for number, setting in enumerate(self.of(level)):
            if not self.draws:
                yield Check(self.name, setting, partial(_at, self.look, setting), only)
                continue
            name = self.stream.format(case=setting.case, gate=self.name, number=number)
            yield Check(self.name, setting.case, partial(_drawing, self.look, setting, bits, name), only)


def drawing(name: str, look: Callable[..., Iterable[Finding]], **more: Any) -> Gate:
    """Return a gate that draws, for the drawn settings of a level."""
    given: dict[str, Any] = {"of": lambda level: level.drawn, "draws": True} | more
    return Gate(name, look, **given)


def _at(look: Callable[..., Iterable[Finding]], setting: Any, version: Any) -> Iterable[Finding]:
    return look(version, setting)


def _drawing(
    look: Callable[..., Iterable[Finding]], setting: Any, bits: Bits, name: str, version: Any
) -> Any:
    return look(version, setting, bits=bits(name))


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of one name: its versions, the settings of both levels, and the gates.

    Gates that detect most mutants for their time come first. `note` gives the reason if there is nothing to
    check. A release that is refused with one of `refusals` is a finding. Mutants that are `common` to several
    names are skipped if they differ nowhere; all others have to be rejected.
    """

    intact: Any
    mutants: tuple[Any, ...] = ()
    levels: dict[str, Any]
    gates: tuple[Gate, ...] = ()
    note: str = ""
    method: Any = None
    refusals: tuple[type[DPVeilError], ...] = ()
    common: bool = False

    def checks(self, level: Any, bits: Bits) -> Iterable[Check]:
        """Yield every gate with every setting."""
        return [check for gate in self.gates for check in gate.checks(level, bits, self.intact)]

    def differs(self, mutant: Any, check: Check) -> bool:
        """Return whether a mutant can behave differently from the intact version in this check's setting."""
        return True

    def run(self, name: str, level: str, bits: Bits, step: Callable[[], None] = lambda: None) -> Audited:
        """Return the findings for the intact version at this level, and for mutants at the quick one.

        Rejecting a mutant with few settings and draws is the stronger evidence, and more would reject it too.
        `step` is called after the intact version and after every mutant.
        """
        checks = list(self.checks(self.levels[level], bits))
        intact = [check for check in checks if check.suits(self.intact)]
        found = [finding for check in intact for finding in self.findings(self.intact, check)]
        step()
        if self.mutants and level != "quick":
            checks = list(self.checks(self.levels["quick"], bits))
        mutants = []
        for mutant in self.mutants:
            shown = [check for check in checks if check.suits(mutant)]
            differing = [check for check in shown if self.differs(mutant, check)]
            if differing or not self.common:
                tried = tuple(dict.fromkeys(check.gate for check in shown))
                mutants.append(Mutant(mutant.name, tried, tuple(self.killers(mutant, differing))))
            step()
        return Audited(name, tuple(found), tuple(mutants), self.note)

    def findings(self, version: Any, check: Check) -> Iterator[Finding]:
        """Yield a gate's findings; a release that is refused without reason is a finding as well."""
        try:
            yield from check.look(version)
        except self.refusals as error:
            yield refusal_finding(check.gate, check.case, error)

    def killers(self, mutant: Any, checks: Iterable[Check]) -> Iterator[str]:
        """Yield the gates that reject a mutant; each stops at its first such finding."""
        done: set[str] = set()
        for check in checks:
            if check.gate not in done and not all(found.passed for found in self.findings(mutant, check)):
                done.add(check.gate)
                yield check.gate


# What gates of several families share


def refusal_finding(gate: str, case: object, error: DPVeilError) -> Finding:
    """Return the finding of a release that is refused without reason."""
    return Finding(gate, f"refused: {error.message}", str(case), 1, 0, False, "releases")


def count_finding(gate: str, what: str, case: object, count: Any, unit: str = "", sees: str = "") -> Finding:
    """Return the finding of what must not occur even once: a number, or an array that says where it does."""
    times = int(np.count_nonzero(count)) if isinstance(count, np.ndarray) else int(count)
    return Finding(gate, what, str(case), times, 0, not times, unit, sees=sees)


def uniforms(bits: BitSource, count: int) -> Float64[np.ndarray, " n"]:
    """Return independent numbers in [0, 1), multiples of 2^-53."""
    return (bits.words(count) >> np.uint64(11)).astype(np.float64) / 2**53


def p_values(name: str, seen: Any, law: Distribution) -> dict[str, float]:
    """Return how well draws follow a law, and adjacent ones its square."""
    seen = np.ascontiguousarray(seen)
    alone, pairs = fit(seen, law).p_value, fit_pairs(seen, law).p_value
    return {name: alone, f"neighbouring draws of {name}": pairs}


def fit_finding(
    case: object, what: str, p_values: dict[str, float], *, alpha: float = ALPHA, sees: str = ""
) -> Finding:
    """Return the finding of several fits, by the name of what was fitted; alpha covers all of them together.

    `value` is -log10 of the smallest p-value, corrected for their number.
    """
    worst = min(p_values, key=lambda name: p_values[name])
    value = max(0.0, float(-np.log10(max(1e-300, p_values[worst]) * len(p_values))))
    limit = float(-np.log10(alpha))
    what = f"{what}, worst at {worst}"
    return Finding("fit", what, str(case), value, limit, value <= limit, "-log10 p", sees=sees)


@dataclass(frozen=True)
class ComparedPair:
    """Two inputs to distinguish: a description, the budget allowed, and the bound as a function of alpha."""

    where: str
    limit: float
    bound: Callable[[float], Bound]


def of_releases(
    sides: tuple[Draws, Draws], draws: int, alpha: float, measure: Measure | None = None
) -> Bound:
    """Return the lower bound from releases of two inputs, as bytes; the first `draws` of each are for
    training.

    Releases of different shapes are distinguished with certainty.
    """
    if sides[0].shape != sides[1].shape:
        return Bound(UNBOUNDED, "counts of numbers that differ", (draws, 0), draws, alpha)
    first, second = (side.reshape(2 * draws, -1) for side in sides)
    train, test = (first[:draws], second[:draws]), (first[draws:], second[draws:])
    return lower_bound(train, test, measure=measure, alpha=alpha)


@lru_cache(maxsize=512)
def least_epsilon(draws: int, limit: float, alpha: float) -> float:
    """Return the smallest ε above `limit` that so many test draws a side show to be above it."""
    event = epsilon_event(CHANCE, 0.0)
    return smallest_detectable(draws, limit, event, epsilon_at(0.0), alpha=alpha, missed=MISSED)


def bound_findings(
    pairs: Sequence[ComparedPair],
    what: str,
    *,
    unit: str = "ε",
    alpha: float = ALPHA,
    least: Callable[[float, float], float | None] = lambda limit, alpha: None,
) -> Iterator[Finding]:
    """Yield a lower bound on the budget for every pair; alpha covers all pairs together.

    `what` names the draws. `least(limit, alpha)` is the smallest violation that they detect, if known.
    """
    share = alpha / max(1, len(pairs))
    for pair in pairs:
        found, seen = pair.bound(share), least(pair.limit, share)
        sees = ""
        if seen is not None and math.isfinite(seen) and pair.limit:
            sees = f"{unit} ≥ {seen:.3g} for {pair.limit:.3g}"
        label, kept = f"{what}, {found.event}", found.lower <= pair.limit
        yield Finding("bound", label, pair.where, found.lower, pair.limit, kept, unit, seen, sees)


def bounds(
    setting: Drawn[Any, Any],
    released: Callable[[Any, int], Any],
    allowance: Callable[[Any, Any], Any],
    *,
    label: Callable[[Any], str] = str,
    sides: Callable[[Any, Any], tuple[Draws, Draws]] = lambda first, second: (first, second),
    measure: Measure | None = None,
    **more: Any,
) -> Iterator[Finding]:
    """Yield lower bounds for the pairs of a setting, from samples alone.

    `released(input, count)` draws as many releases, once for all pairs that an input is in, as the bound of
    each holds by itself; `sides` turns those of two inputs into bytes; `allowance` is what a pair may cost.
    """
    once, draws = cache(partial(_twice, released, setting.draws)), setting.draws

    def bound(first: Any, second: Any, alpha: float) -> Bound:
        return of_releases(sides(once(first), once(second)), draws, alpha, measure)

    pairs = [
        ComparedPair(
            f"{setting.case}, {label(a)} and {label(b)}", float(allowance(a, b)), partial(bound, a, b)
        )
        for a, b in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", **more)


def _twice(released: Callable[[Any, int], Any], draws: int, given: Any) -> Any:
    return released(given, 2 * draws)

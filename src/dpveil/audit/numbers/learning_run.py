"""Running the audits of models that learn, where scikit-learn is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpveil.audit.findings import Audited, Finding
from dpveil.audit.mutation import audited, told
from dpveil.noise.bits import BitSource

if TYPE_CHECKING:
    from dpveil.audit.numbers.learning import LearnAudit, LearnCase, LearnDrawn, LearnLevel, LearnVersion

Bits = Callable[[str], BitSource]


@lru_cache(maxsize=1)
def learners() -> dict[str, LearnAudit]:
    """Return the audits of models, by name: none without the extra `learn`."""
    if find_spec("sklearn") is None:
        return {}
    from dpveil.audit.numbers.learning_table import naive_bayes

    entry = naive_bayes()
    return {entry.name: entry}


def run_learner(entry: LearnAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a model at a level, and its mutants at the quick one."""
    from dpveil.audit.numbers.learning import INTACT
    from dpveil.audit.numbers.learning_gates import same_gate

    cases = entry.levels[level].exact
    same = tuple(finding for case in cases for finding in told("same", case, same_gate(case)))

    def gates(name: str) -> Iterator[tuple[str, Callable[[LearnVersion], Iterator[Finding]]]]:
        return checks_of(entry.levels[name], bits)

    found = audited(entry.name, INTACT, entry.mutants, gates, level, step)
    return replace(found, findings=same + found.findings)


def checks_of(
    level: LearnLevel, bits: Bits
) -> Iterator[tuple[str, Callable[[LearnVersion], Iterator[Finding]]]]:
    """Yield every gate with every setting."""
    from dpveil.audit.numbers.learning_gates import bound_gate, exact_gate, fit_gate

    for case in level.exact:
        yield "exact", partial(_computed, exact_gate, case)
    for setting in level.drawn:
        if setting.fit:
            yield "fit", partial(_drawn, "fit", fit_gate, setting, bits)
        if setting.pairs:
            yield "bound", partial(_drawn, "bound", bound_gate, setting, bits)


def _computed(
    gate: Callable[..., Iterator[Finding]], case: LearnCase, version: LearnVersion
) -> Iterator[Finding]:
    return told("exact", case, gate(version, case))


def _drawn(
    name: str, gate: Callable[..., Iterator[Finding]], setting: LearnDrawn, bits: Bits, version: LearnVersion
) -> Iterator[Finding]:
    if not version.draws:
        return iter(())
    return told(name, setting.case, gate(version, setting, bits=bits(f"{setting.case} {name}")))

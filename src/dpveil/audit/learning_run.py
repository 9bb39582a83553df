"""Running the audits of models that learn, where scikit-learn is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpveil.audit.findings import Audited, Finding
from dpveil.audit.killing import audited
from dpveil.noise.bits import BitSource

if TYPE_CHECKING:
    from dpveil.audit.learning import LearnAudit, LearnDrawn, LearnLevel, LearnVersion

Bits = Callable[[str], BitSource]


@lru_cache(maxsize=1)
def learners() -> dict[str, LearnAudit]:
    """Return the audits of models, by name: none without the extra `learn`."""
    if find_spec("sklearn") is None:
        return {}
    from dpveil.audit.learning_table import naive_bayes

    entry = naive_bayes()
    return {entry.name: entry}


def run_learner(entry: LearnAudit, level: str, bits: Bits, step: Callable[[], None]) -> Audited:
    """Audit a model at a level, and its mutants at the quick one."""
    from dpveil.audit.learning import INTACT
    from dpveil.audit.learning_gates import same_gate

    same = tuple(finding for case in entry.levels[level].exact for finding in same_gate(case))

    def gates(name: str) -> Iterator[tuple[str, Callable[[LearnVersion], Iterator[Finding]]]]:
        return checks_of(entry.levels[name], bits)

    found = audited(entry.name, INTACT, entry.mutants, gates, level, step)
    return replace(found, findings=same + found.findings)


def checks_of(
    level: LearnLevel, bits: Bits
) -> Iterator[tuple[str, Callable[[LearnVersion], Iterator[Finding]]]]:
    """Yield every gate with every setting."""
    from dpveil.audit.learning_gates import bound_gate, exact_gate, fit_gate

    for case in level.exact:
        yield "exact", partial(exact_gate, case=case)
    for setting in level.drawn:
        if setting.fit:
            yield "fit", partial(_drawn, fit_gate, setting, bits)
        if setting.pairs:
            yield "bound", partial(_drawn, bound_gate, setting, bits)


def _drawn(
    gate: Callable[..., Iterator[Finding]], setting: LearnDrawn, bits: Bits, version: LearnVersion
) -> Iterator[Finding]:
    if not version.draws:
        return iter(())
    return gate(version, setting, bits=bits(f"{setting.case} {gate.__name__}"))

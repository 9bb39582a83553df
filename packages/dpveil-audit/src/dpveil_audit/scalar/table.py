"""Audit entries of the scalar mechanisms, every one in their table.

A finite mechanism has the usual settings and mutants without an entry here. `OWN` adds mutants, and `NOISY`
is for mechanisms that also work on ranges without ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dpveil.errors import DPVeilError, NoiseError
from dpveil.mechanisms.scalar import TABLE, ScalarMechanism, TruncatedLaplace
from dpveil_audit.engine import NUMBERED, Audit, Bits, Check, Finding, Gate, drawing
from dpveil_audit.scalar.case import ScalarCase, ScalarDrawn, ScalarLevel, ScalarVersion, cases, gapped, wrong
from dpveil_audit.scalar.gates import arrive_gate, bound_gate, exact_gate, fit_gate, same_gate, tables_gate
from dpveil_audit.scalar.mutants import (
    FAIR,
    LAPLACE,
    READINGS,
    ROWS,
    STAIRCASE,
    TRUNCATED,
    UNIFORM,
    WEIGHTS,
    one_end,
    published,
)

DRAWS: Final = 20_000
OWN_DRAWS: Final = 20_000
FINITE_DRAWS: Final = 50_000
TABLES: Final = 10
DEEP_TABLES: Final = 1000
"""Random tables of each mechanism, 100 pairs each: in total ten thousand (quick) and a million (deep) for ten
mechanisms.
"""
MANY: Final = 20_000_000
"""Draws that detect the published variable scale: the responses at which it breaks its promise are rare."""

GAP: Final = gapped(None, None, (0, 2))
GAPS: Final = gapped(0, None, (1, "2.5"), (4, 6))
BETWEEN: Final = gapped(0, 6, (1, 2), (3, "4.5"))
OPEN: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 4), "step": "1/4"},
    {"range": "0:", "step": "1/8"},
    {"range": GAP, "step": "1/4", "epsilon": 2},
)
"""Settings for gates that draw, for mechanisms on ranges without ends."""
OPEN_EXACT: Final[tuple[dict[str, Any], ...]] = (
    {"range": GAPS, "step": "1/2", "epsilon": "1.5"},
    {"range": BETWEEN, "step": "1/4", "epsilon": "0.7"},
    {"range": (0, 5), "sensitivity": "0.7", "epsilon": "0.5", "step": "0.1"},
    {"range": (0, 1)},
    {"range": ":-1", "epsilon": 8},
    {"range": "0:", "epsilon": "0.01", "step": 1},
    {"range": ":", "sensitivity": 3},
    {"range": (0, 6), "sensitivity": "2.5", "step": 1},
    {"range": "0:", "sensitivity": "2.5", "step": 1, "epsilon": 2},
)
"""Settings for gates that compute; the last ones have steps that do not divide ΔF."""
OPEN_DEEP: Final[tuple[dict[str, Any], ...]] = (
    {"range": (-5, 300), "sensitivity": 2, "epsilon": "0.1"},
    {"range": GAPS, "step": "1/64", "epsilon": 4},
    {"range": "0:", "epsilon": 40, "step": "1/16"},
    {"range": BETWEEN, "step": "1/16", "epsilon": "0.05"},
)
FINITE: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 5)},
    {"range": (0, 6), "sensitivity": 2, "epsilon": "0.5"},
)
FINITE_EXACT: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 1), "epsilon": 3},
    {"range": (3, 13), "sensitivity": "2.5", "step": 1, "epsilon": "0.1"},
    {"range": (0, 20), "epsilon": 2},
)
FINITE_DEEP: Final[tuple[dict[str, Any], ...]] = ({"range": (0, 40)}, {"range": (0, 5), "epsilon": 12})
NOISY: Final[dict[str, tuple[ScalarVersion, ...]]] = {
    "laplace": LAPLACE,
    "truncated-laplace": TRUNCATED,
    "staircase": STAIRCASE,
    "geometric": LAPLACE,
}
OWN: Final[dict[str, tuple[ScalarVersion, ...]]] = {"explicit-fair": FAIR + ROWS, "uniform": UNIFORM}


@dataclass(frozen=True, kw_only=True)
class ScalarAudit(Audit):
    """The audit of one mechanism; a mutant's own settings for the bound gate apply to it alone."""

    intact: ScalarVersion = ScalarVersion(name="intact")
    gates: tuple[Gate, ...] = (
        Gate("same", same_gate, lambda level: level.cases, ties=True),
        Gate("exact", exact_gate, lambda level: level.cases),
        Gate("arrive", arrive_gate, lambda level: level.cases),
        drawing("fit", fit_gate, stream=NUMBERED),
        drawing("bound", bound_gate, stream=NUMBERED),
    )

    refusals: tuple[type[DPVeilError], ...] = (NoiseError,)
    common: bool = True

    def checks(self, level: ScalarLevel, bits: Bits) -> Iterator[Check]:
        """Yield every gate with every setting."""
        yield from super().checks(level, bits)
        for mutant in self.mutants:
            own = drawing(
                "bound", bound_gate, of=lambda mutant: mutant.bound, stream=f"{NUMBERED} of its own"
            )
            yield from own.checks(mutant, bits, self.intact, mutant)
        if level.tables:
            yield Check("arrive", self.method.name, partial(self._tables, level.tables, bits), self.intact)

    def _tables(self, tables: int, bits: Bits, version: ScalarVersion) -> Iterator[Finding]:
        return tables_gate(self.method, version, tables, bits=bits(f"{self.method.name} tables"))

    def differs(self, mutant: ScalarVersion, check: Check) -> bool:
        """Return whether a mutant differs here; if the mechanism itself refuses, its findings say so."""
        case: Any = check.case
        try:
            case.method.prepare()
            return mutant.fits(case)
        except NoiseError:
            return False


def own_scalar(method: ScalarMechanism, level: str) -> ScalarAudit:
    """Return the audit of one mechanism with the user's own parameters, without mutants."""
    method.prepare()
    case = ScalarCase(method)
    return ScalarAudit(
        method=type(method), levels={level: ScalarLevel((case,), (ScalarDrawn(case, OWN_DRAWS),))}
    )


def scalars() -> dict[str, ScalarAudit]:
    """Return the audits of all scalar mechanisms, by name: that in `NOISY`, or the usual one."""
    return {name: NOISY_AUDITS.get(name) or finite_audit(method) for name, method in TABLE.items()}


def finite_audit(method: type[ScalarMechanism]) -> ScalarAudit:
    """Return the usual audit of a mechanism with a matrix, under every relation that it can promise."""
    if not method.finite_only:
        raise ValueError(f"{method.name} goes without ends, so it needs an entry in NOISY")
    settings = _settings(method, FINITE)
    quick = ScalarLevel(_settings(method, FINITE_EXACT), _drawn(settings, FINITE_DRAWS), TABLES)
    levels = {"quick": quick, "deep": quick.more(_settings(method, FINITE_DEEP), tables=DEEP_TABLES)}
    return ScalarAudit(method=method, levels=levels, mutants=OWN.get(method.name, ROWS) + READINGS + WEIGHTS)


def noisy_audit(method: type[ScalarMechanism], mutants: tuple[ScalarVersion, ...]) -> ScalarAudit:
    """Return the audit of a mechanism with additive noise, on ranges with and without ends.

    A law that is the same under every relation is drawn under each, and computed under the strongest.
    """
    own = method.relations if method is TruncatedLaplace else method.relations[:1]
    quick = ScalarLevel(_settings(method, OPEN_EXACT, own), _drawn(_settings(method, OPEN)), TABLES)
    levels = {"quick": quick, "deep": quick.more(_settings(method, OPEN_DEEP, own), tables=DEEP_TABLES)}
    return ScalarAudit(method=method, levels=levels, mutants=mutants + READINGS)


def _settings(
    method: type[ScalarMechanism], given: tuple[dict[str, Any], ...], relations: tuple[str, ...] = ()
) -> tuple[ScalarCase, ...]:
    names = relations or method.relations
    made = [{**setting, "relation": name} for setting in given for name in names]
    return cases(method, *made)


def _drawn(given: tuple[ScalarCase, ...], draws: int = DRAWS) -> tuple[ScalarDrawn, ...]:
    return tuple(ScalarDrawn(case, draws) for case in given)


E1: Final = ScalarCase(TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="0.1"))
"""Answers 0 and 0.7 have scales of 1.59 and 1.36 as published: the violation shows above 12."""
PUBLISHED: Final = wrong(
    "scale of each answer, as published", published, one_end, (ScalarDrawn(E1, MANY, pairs=((0, 7),)),)
)
NOISY_AUDITS: Final = {
    name: noisy_audit(TABLE[name], mutants + ((PUBLISHED,) if name == "truncated-laplace" else ()))
    for name, mutants in NOISY.items()
}

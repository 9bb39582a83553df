"""Results of an audit: frozen data that the command line prints and writes as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of one gate: `value` against `limit` in `unit`, and whether the promise held.

    `detectable` is the smallest true value above `limit` that the draws detect (see
    `gates_drawn.detectable`): infinite if they are too few for any, None if a gate does not estimate the
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
    def survived(self) -> bool:
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
        return all(f.passed for f in self.findings) and not any(m.survived for m in self.mutants)

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
            "survived": sum(mutant.survived for mutant in mutants),
            "audited": [one.to_json() for one in self.audited],
        }


def _reach(finding: Finding) -> float:
    if finding.detectable is None or not finding.limit:
        return 0.0
    return finding.detectable / finding.limit


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""The audit as a whole: what is right passes, what is wrong on purpose is seen, nothing is left out."""

import csv
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dpveil_audit as audit
from dpveil.core.parameters import positive
from dpveil.core.registry import FACES, LATENT, PIXEL, SCALAR
from dpveil.mechanisms.latent.base import STEPS
from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.base import cell_areas
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import SeededBits
from dpveil_audit.engine import Check, exact_gate
from dpveil_audit.latent import SIDE
from dpveil_audit.numbers import queries
from dpveil_audit.pixel.case import Case
from dpveil_audit.pixel.methods import TABLE
from dpveil_audit.runner import entries, learners, steps_of
from dpveil_audit.samplers import samplers
from dpveil_audit.scalar.case import DEFINITIONS
from dpveil_audit.scalar.mutants import NOISY, OWN, scalar_audit, scalars

SEED = 20261121


def bits(name: str) -> SeededBits:
    return SeededBits(SEED, name)


def documented_killers(name: str) -> dict[str, str]:
    """Return the mutants of a method on the page about the audit, with the gates that reject each."""
    with (Path(__file__).parents[3] / "docs" / "mutants.csv").open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row["rejected by"] for row in csv.DictReader(file) if row["method"] == name}


def test_every_method_and_mechanism_has_its_audit():
    kinds = {**PIXEL, **SCALAR, **LATENT, **FACES}
    assert {name: entry.method for name, entry in entries().items() if name in kinds} == kinds
    assert SIDE == STEPS
    for name, entry in scalars().items():
        assert name in DEFINITIONS or entry.method.finite_only  # else its integers are no second opinion
        assert {case.method.promise for case in entry.level.cases} == set(entry.method.relations)
    for entry in (queries.AUDITS | learners()).values():
        settings = [case.settings for case in entry.level.exact]
        assert {one.get("relation") == "any-database" for one in settings} == {True, False}
        [refused] = entry.findings(None, Check("exact", 1, lambda version: positive(0, "epsilon")))
        assert (refused.gate, refused.passed) == ("exact", False)


@pytest.mark.parametrize("name", audit.names())
def test_the_first_setting_of_gates_that_compute_and_every_part_counts(name: str, monkeypatch: Any):
    entry, told, known = entries()[name], list[int](), documented_killers(name)
    assert len({mutant.name for mutant in entry.mutants}) == len(entry.mutants) >= (not entry.note)
    first = {check.gate: check for check in entry.checks(bits)[::-1] if check.gate != "fit"}
    monkeypatch.setattr(type(entry), "checks", lambda self, bits: [*first.values()])
    audited = entry.run(name, bits, lambda: told.append(1))
    assert len(told) == steps_of(name) == 1 + len(entry.mutants)
    assert [found for found in audited.findings if not found.passed] == []
    assert all({*m.killed_by} <= {*known.get(m.name, "same, exact").split(", ")} for m in audited.mutants)


@pytest.mark.parametrize("name", audit.names())
def test_the_audit_passes_and_every_mutant_dies(name: str):
    """Seeded; a right method is rejected with probability below 1e-7 over all seeds (`false_alarm`)."""
    report = audit.run(name, seed=SEED)
    assert report.passed, [f for one in report.audited for f in one.findings if not f.passed]
    [audited] = report.audited
    assert not [mutant.name for mutant in audited.mutants if mutant.has_survived]
    shared = scalars().keys() - {*NOISY, *OWN} | samplers().keys()  # their mutants are told of together
    if name not in shared and audited.mutants:
        assert {m.name: ", ".join(m.killed_by) for m in audited.mutants} == documented_killers(name)
    assert report.false_alarm < 1e-7
    assert json.loads(json.dumps(report.to_json(), allow_nan=False))["survived"] == 0


@dataclass(frozen=True, kw_only=True)
class Three(ScalarMechanism):
    """A small matrix: the truth e^ε times as likely as any other response."""

    name: ClassVar[str] = "three"
    relations: ClassVar[tuple[str, ...]] = ("database-record",)

    def _rows(self, epsilon):
        size, odds = self.lattice.size, int(math.exp(epsilon) * 2**50)
        return [[odds if x == y else 1 << 50 for y in range(size)] for x in range(size)]


def test_a_new_finite_mechanism_is_audited_without_a_line():
    """Seeded; right gates reject with probability below 1e-8."""
    found = scalar_audit(Three).run("three", bits, int)
    assert found.passed
    assert {"same", "exact", "fit"} == set(found.gates)
    assert {m.name: m.killed_by for m in found.mutants}["a weight 1e-9 beyond"] == ("exact",)


def test_a_seed_repeats_an_audit():
    first, second = (audit.run("integer-matrix", seed=3).to_json() for _ in range(2))
    assert first == second
    assert audit.run("integer-matrix", seed=4).to_json() != first


def test_errata_e12_published_scale_overspends_256_fold():
    """17×17 at b = 16 has a corner cell of one pixel: b² noise on its mean costs 256ε."""
    method = DPPix(epsilon="0.01", block=16, neighbourhood=1)
    areas = cell_areas(17, 17, 16).ravel()
    published = 255 / (256 * method.epsilon)  # the scale on every mean
    assert max(Fraction(255, int(area)) / published for area in areas) == 256 * method.epsilon
    assert Fraction(255) / method.sum_scale(height=17, width=17, channels=1) == method.epsilon
    case, entry = Case(17, 17, 1, method), TABLE["dp-pix"]
    wrong = next(mutant for mutant in entry.mutants if mutant.name == "b² noise on ragged means")
    for version, times in ((entry.intact, 1), (wrong, 256)):
        found = next(exact_gate(version, case))
        assert found.passed == (times == 1)
        assert found.value == pytest.approx(times * float(method.epsilon))

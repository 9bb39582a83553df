"""Audits of scalar mechanisms: nothing is left out, what is right passes, faults in the code are seen."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import dpveil_audit as audit
from dpveil.mechanisms.scalar import ExplicitFair, Laplace, Range, ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.scales import least_scale
from dpveil.noise import SeededBits
from dpveil.noise.matrix import TOTAL, IntegerMatrix
from dpveil_audit.scalar import table as scalar_table
from dpveil_audit.scalar.case import ScalarCase, ScalarDrawn, ScalarVersion
from dpveil_audit.scalar.gates import bound_gate, exact_gate, fit_gate, same_gate, worst_integers
from dpveil_audit.scalar.laws import DISTRIBUTIONS, distribution_of
from dpveil_audit.scalar.mutants import bounds, emptied, published, raised_weight, sharper
from dpveil_audit.scalar.table import E1, PUBLISHED, finite_audit, scalars

SEED = 20261121
INTACT = ScalarVersion(name="intact")


def bits(name):
    return SeededBits(SEED, name)


def broken(findings):
    return [finding for finding in findings if not finding.passed]


def test_every_scalar_mechanism_is_audited_by_another_law_and_under_all_that_it_can_promise():
    for name, entry in scalars().items():
        assert name in DISTRIBUTIONS or entry.method.finite_only  # else its integers are no second opinion
        for level in entry.levels.values():
            promises = {case.method.promise for case in level.cases}
            assert promises == set(entry.method.relations)


def test_a_mechanism_without_ends_needs_an_entry(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scalar_table, "NOISY_AUDITS", {})
    with pytest.raises(ValueError, match="laplace goes without ends"):
        scalars()


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
    found = finite_audit(Three).run("three", "quick", bits, int)
    assert found.passed, (broken(found.findings), found.mutants)
    assert {"same", "exact", "arrive", "fit", "bound"} == set(found.gates)
    assert {m.name: m.killed_by for m in found.mutants}["a weight 1e-9 beyond"] == ("exact", "arrive")


@pytest.mark.parametrize("excess", [1e-3, 1e-9, 1e-12, 1e-15])
def test_an_unrepaired_matrix_dies_of_the_smallest_violation(excess):
    """Linear programs leave violations of 1e-9 and less: integers are compared without tolerance."""
    case = ScalarCase(Three(range=(0, 4), sensitivity=1, epsilon=1))
    loss, limit, pairs = worst_integers(raised_weight(case.method, excess), case)
    assert limit == 1
    assert pairs == 4
    assert 0 < loss - limit <= 4 * Fraction(excess) + Fraction(1, 1 << 32)
    assert loss - limit >= Fraction(9, 10) * Fraction(excess)
    version = replace(INTACT, integers=lambda method: raised_weight(method, excess))
    assert broken(exact_gate(version, case))
    assert not broken(exact_gate(INTACT, case))


def test_worst_integers_by_hand():
    """Rows (1/2, 1/2), (1/4, 3/4), (1/8, 7/8): ln 2 a step, 2 ln 2 over two, in fractions."""
    rows = tuple((TOTAL // part, TOTAL - TOTAL // part) for part in (2, 4, 8))
    for relation, answer in (("any-database", math.log(2)), ("database-record", 2 * math.log(2))):
        method = ExplicitFair(range=(0, 2), sensitivity=2, step=1, epsilon=1, relation=relation)
        loss, limit, _ = worst_integers(IntegerMatrix(rows), ScalarCase(method))
        assert float(loss) == pytest.approx(answer)
        assert limit == (Fraction(1, 2) if relation == "any-database" else 1)
    never = IntegerMatrix(((TOTAL, 0), (TOTAL // 2, TOTAL // 2), (1, TOTAL - 1)))
    assert worst_integers(never, ScalarCase(method))[0] > 1000


def test_errata_e1_the_published_variable_scale():
    """Scales 1.586 and 1.321 at answers 0 and 0.9: a log-ratio of 12.2 at x = 100 where 0.9 is allowed."""
    method = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="1/200")
    distribution = published(method)
    assert 1 / float(distribution._rate(0)) / 200 == pytest.approx(1.586, abs=1e-3)
    assert 1 / float(distribution._rate(180)) / 200 == pytest.approx(1.321, abs=1e-3)
    for x, loss in ((20, 2.07), (100, 12.2), (1000, 126)):
        seen = abs(distribution.log(0, 200 * x) - distribution.log(180, 200 * x))
        assert float(seen) == pytest.approx(loss, rel=0.01)
        sound = distribution_of(method)
        assert abs(sound.log(0, 200 * x) - sound.log(180, 200 * x)) <= 0.9
    [worst, *_] = broken(exact_gate(PUBLISHED, E1))
    assert worst.value > 2 * worst.limit


def test_errata_e1_from_samples_alone():
    """20 million draws of answers 0 and 0.7 show a log-ratio above 0.8, where 0.7 is promised.

    Seeded. With probability below 1e-9 a sound mechanism would show that; ours does not.
    """
    setting = PUBLISHED.bound[0]
    [seen] = bound_gate(PUBLISHED, setting, bits=bits("e1"))
    assert seen.limit == pytest.approx(0.7)
    assert seen.value > 0.8
    assert not seen.passed
    [kept] = bound_gate(INTACT, replace(setting, draws=200_000), bits=bits("e1"))
    assert kept.passed


@pytest.mark.parametrize("gap", [(0, 1), (0, 3)])
def test_the_bounds_of_theorem_2_are_those_of_the_mechanism(gap):
    """3n + 2 conditions, each bisected by the audit alone: the largest is the mechanism's scale."""
    lattice = Lattice(Range(None, None, gaps=[gap]), Fraction(1, 8), Fraction(1))
    case = TruncatedLaplace(range=lattice.range, sensitivity=1, epsilon=2, step="1/8")
    found = bounds(distribution_of(case).spans, Fraction(2), 8)
    assert len(found) == 3
    assert float(max(found)) == pytest.approx(float(least_scale(lattice, Fraction(2), metric=True)), rel=1e-8)


@pytest.mark.parametrize(
    "method",
    [
        Laplace(range="0:", sensitivity=2, epsilon="0.3"),
        TruncatedLaplace(range=(0, 9), sensitivity=3, epsilon=2, relation="database-record"),
        ExplicitFair(range=(0, 9), sensitivity=1, epsilon=2),
    ],
    ids=lambda method: method.name,
)
def test_a_mechanism_of_the_users_own_is_audited_as_it_is(method):
    report = audit.run(method, seed=SEED)
    assert report.passed, broken(report.audited[0].findings)
    assert {"same", "exact", "arrive", "fit", "bound"} == set(report.audited[0].gates)
    assert report.audited[0].mutants == ()


def test_too_small_a_scale_in_the_code_itself_is_seen(monkeypatch: pytest.MonkeyPatch):
    """Not a mutant of the audit, but the mechanism: distributions, integers and draws all come from it."""
    monkeypatch.setattr(
        "dpveil.mechanisms.scalar.truncated_laplace.least_scale",
        lambda lattice, epsilon, *, metric: lattice.reach / epsilon,
    )
    method = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="1/8")
    distribution_of.cache_clear()
    gates = {f.gate for f in broken(audit.run(method, seed=SEED).audited[0].findings)}
    distribution_of.cache_clear()
    assert {"exact", "bound"} <= gates


def test_a_wrong_distribution_of_draws_or_matrix_is_seen(monkeypatch: pytest.MonkeyPatch):
    method = Laplace(range=Range(0, None, gaps=[(2, 4)]), sensitivity=1, epsilon=1, step="1/4")
    case = ScalarCase(method)
    right = Lattice.snap
    with monkeypatch.context() as patch:
        patch.setattr(Lattice, "snap", lambda self, points: right(self, points + 1))
        assert broken(
            fit_gate(INTACT, ScalarDrawn(case, 20_000), distribution_of(method), bits=bits("shift"))
        )
    assert not broken(
        fit_gate(INTACT, ScalarDrawn(case, 20_000), distribution_of(method), bits=bits("shift"))
    )
    masses = Laplace._masses
    monkeypatch.setattr(Laplace, "_masses", lambda self, point, edges: masses(self, point, edges + 1))
    assert "matrix unlike the distribution" in {finding.what for finding in broken(exact_gate(INTACT, case))}


def test_a_release_unlike_its_draws_is_seen(monkeypatch: pytest.MonkeyPatch):
    case = ScalarCase(Laplace(range=(0, 4), sensitivity=1, epsilon=1, step=1))
    assert not broken(same_gate(INTACT, case))
    right = Laplace.release
    monkeypatch.setattr(
        Laplace, "release", lambda self, answer, bits: np.round(right(self, answer, bits) * 0.5)
    )
    assert broken(same_gate(INTACT, case))


def test_a_certificate_that_states_too_little_is_seen():
    method = ExplicitFair(range=(0, 5), sensitivity=1, epsilon=1)
    stated = method.certificate
    method.__dict__["certificate"] = replace(stated, epsilon=stated.epsilon / 2)
    [found] = broken(exact_gate(INTACT, ScalarCase(method)))
    assert found.what == "cost of integers beyond their certificate"


def test_chances_that_do_not_follow_the_definition_are_seen():
    method = ExplicitFair(range=(0, 5), sensitivity=1, epsilon=1)
    wrong = replace(INTACT, integers=lambda m: sharper(m, 0.9))
    names = {finding.what for finding in broken(exact_gate(wrong, ScalarCase(method)))}
    assert names == {"chances unlike the distribution's, in all"}
    assert broken(exact_gate(replace(INTACT, integers=emptied), ScalarCase(method)))

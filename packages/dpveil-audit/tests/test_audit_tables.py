"""Audits of queries and naive Bayes: faults in the product are seen, what is right passes.

Bits are seeded; a right release is rejected with probability below 1e-8 over all seeds.
"""

import importlib.util
from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest

from dpveil.mechanisms.scalar import Geometric, Laplace, TruncatedLaplace
from dpveil.noise import SeededBits
from dpveil.numbers import naive_bayes, statistics
from dpveil_audit import runner
from dpveil_audit.numbers.learning import INTACT as INTACT_MODEL
from dpveil_audit.numbers.learning import exact_gate as exact_model
from dpveil_audit.numbers.learning import fit_gate as fit_model
from dpveil_audit.numbers.learning import same_gate as same_model
from dpveil_audit.numbers.queries import INTACT, Cell, QueryCase, QueryDrawn, exact_gate, fit_gate, same_gate
from dpveil_audit.numbers.queries_table import AUDITS
from dpveil_audit.runner import entries, learners, names, steps_of
from dpveil_audit.scalar.laws import UNBOUNDED, Number, chances, cost, loss, released

SEED = 20261122
CELLS = (Cell("0", Fraction(0)), Cell(1, Fraction(1)), Cell(0.5, Fraction(1, 2)), Cell("", None))
CASE = QueryCase("mean", CELLS, 3, {"range": (0, 1), "epsilon": 1, "missing": 1, "mechanism": "geometric"})
BINS = QueryCase(
    "histogram", CELLS, 2, {"range": (0, 1), "epsilon": 1, "missing": 1, "bins": 2, "mechanism": "geometric"}
)


def bits(name):
    return SeededBits(SEED, name)


def broken(findings):
    return {finding.gate for finding in findings if not finding.passed}


def seen(case, fits=((0, 1, 2),)):
    """Return the gates that find fault with a query as it is now."""
    drawn = QueryDrawn(case, 10_000, tuple(row[: case.rows] for row in fits))
    findings = [
        *same_gate(INTACT, case),
        *exact_gate(INTACT, case),
        *fit_gate(INTACT, drawn, bits=bits("fit")),
    ]
    return broken(findings)


# What neighbours cost in all


def test_costs_of_numbers_that_are_drawn_apart_add_up():
    mechanism = Geometric(range=(0, 3), sensitivity=1, epsilon="0.5")
    one, other = released(mechanism, [0, 1, 3]), released(mechanism, [1, 1, 2])
    assert float(cost(one, other)) == pytest.approx(1, abs=1e-9)
    assert cost(one, other) <= 1
    assert cost(one, one) == cost(None, None) == 0
    assert cost(one, None) == cost(one, one[:2]) == UNBOUNDED


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(range=":", sensitivity=1, epsilon="0.7", step="1/8"),
        TruncatedLaplace(range="0:", sensitivity=1, epsilon="0.7", relation="database-record"),
    ],
    ids=lambda one: one.name,
)
def test_the_largest_log_ratio_without_ends_is_found(mechanism):
    assert mechanism.integers is None
    reach = mechanism.lattice.reach
    both = [float(loss(*pair)) for pair in ((Number(mechanism, 0), Number(mechanism, reach)),) * 2]
    back = float(loss(Number(mechanism, reach), Number(mechanism, 0)))
    assert max(*both, back) == pytest.approx(0.7, abs=1e-6)


def test_mechanisms_that_the_data_choose_are_told_apart():
    """By what only one of them gives, or by the log-ratio of what both do."""
    one, other = Laplace(range="0:", sensitivity=1, epsilon=1), Laplace(range="0:", sensitivity=2, epsilon=1)
    assert loss(Number(one, 0), Number(other, 0)) == UNBOUNDED
    wide, narrow = (Geometric(range=(0, top), sensitivity=1, epsilon=1) for top in (2, 1))
    assert loss(Number(wide, 0), Number(narrow, 0)) == UNBOUNDED
    assert float(loss(Number(narrow, 0), Number(wide, 0))) == pytest.approx(0, abs=0.5)
    assert chances(Number(wide, 0))[Fraction(0)] / 2**64 == pytest.approx(1 / (1 + np.exp(-1)))
    assert float(loss(Number(narrow, 1), Number(wide, 0))) == pytest.approx(
        log((1 / (1 + np.exp(-1))) / ((1 - np.exp(-1)) / (1 + np.exp(-1)) * np.exp(-1)))
    )


# Faults in the product itself, not in the audit's copy of it


def test_queries_as_they_are_keep_their_promise():
    assert not seen(CASE)
    assert not seen(BINS)


def test_a_histogram_that_draws_every_bin_with_epsilon_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = statistics._mechanism
    monkeypatch.setattr(
        statistics, "_mechanism", lambda name, *, epsilon, **rest: right(name, epsilon=2 * epsilon, **rest)
    )
    assert "exact" in seen(BINS)


def test_bins_that_overlap_are_seen(monkeypatch: pytest.MonkeyPatch):
    right = statistics.histogram

    def overlapping(column, **settings):
        plan, counts = right(column, **settings), list(right(column, **settings).answers)
        counts[1] += sum(value == 0.5 for value in column)
        return replace(plan, answers=tuple(counts))

    case = replace(BINS, settings={**BINS.settings, "bins": 4})
    assert not seen(case, ((2, 0),))
    monkeypatch.setattr(statistics, "histogram", overlapping)
    assert seen(case, ((2, 0),)) == {"same", "exact", "fit"}


def test_half_a_sensitivity_and_values_that_are_not_clipped_are_seen(monkeypatch: pytest.MonkeyPatch):
    width = statistics._width
    with monkeypatch.context() as patch:
        patch.setattr(statistics, "_width", lambda allowed: width(allowed) / 2)
        assert "exact" in seen(CASE)
    assert not seen(CASE)
    right = statistics.clipped
    monkeypatch.setattr(
        statistics, "clipped", lambda rows, *rest: [min(x, Fraction(1, 2)) for x in right(rows, *rest)]
    )
    assert {"same", "fit"} <= seen(CASE)


def test_a_query_that_is_not_what_its_plan_says_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = statistics.Plan.release
    monkeypatch.setattr(
        statistics.Plan, "release", lambda plan, bits: right(replace(plan, answers=(Fraction(1),)), bits)
    )
    assert {"same", "fit"} <= seen(CASE, ((0, 0, 0),))


MODEL = learners()["naive-bayes"].levels["quick"]
ONE, DRAWN = MODEL.exact[0], MODEL.drawn[0]


def model_seen():
    return broken(
        [
            *same_model(INTACT_MODEL, ONE),
            *exact_model(INTACT_MODEL, ONE),
            *fit_model(INTACT_MODEL, DRAWN, bits=bits("nb")),
        ]
    )


def test_naive_bayes_as_it_is_keeps_its_promise():
    assert not model_seen()


def test_replaced_records_that_are_charged_as_added_ones_are_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(naive_bayes.NEIGHBOURS, "replaced", (1, ""))
    assert {"exact", "fit"} <= model_seen()


@pytest.mark.slow
def test_features_that_are_not_clipped_and_a_reach_that_is_too_short_are_seen(monkeypatch):
    def unclipped(held, lower, upper):
        return np.rint((held - lower) / (upper - lower) * naive_bayes.LEVELS).astype(np.int64)

    with monkeypatch.context() as patch:
        patch.setattr(naive_bayes, "encode", unclipped)
        assert {"same", "exact"} <= model_seen()
    right = naive_bayes.Plan.spreads

    def short(plan, means):
        return right(plan, means)[0], np.full_like(means, naive_bayes.LEVELS // 2)

    monkeypatch.setattr(naive_bayes.Plan, "spreads", short)
    assert {"same", "exact"} <= model_seen()


# What the table holds


def test_every_query_and_model_has_settings_of_both_relations():
    entries = AUDITS | learners()
    assert len(names()) == len(set(names()))
    for entry in entries.values():
        settings = [case.settings for case in entry.levels["quick"].exact]
        assert {one.get("relation") == "any-database" for one in settings} == {True, False}
        assert len({one.get("mechanism") for one in settings}) >= 4
    rows = {case.rows for entry in AUDITS.values() for case in entry.levels["quick"].exact}
    assert {1, 2, 3, 7} <= rows


@pytest.mark.parametrize("name", names())
def test_a_step_is_told_for_the_intact_version_and_every_mutant(name, monkeypatch: pytest.MonkeyPatch):
    told, entry = [], entries()[name]
    monkeypatch.setattr(type(entry), "checks", lambda self, level, bits: iter(()))
    found = entry.run(name, "quick", bits, lambda: told.append(1))
    assert len(told) == steps_of(name) == 1 + len(entry.mutants)
    assert [mutant.survived for mutant in found.mutants] == [True] * (0 if entry.common else len(told) - 1)


def test_without_scikit_learn_no_model_is_audited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    learners.cache_clear()
    assert learners() == {}
    learners.cache_clear()
    monkeypatch.undo()
    assert importlib.util.find_spec("sklearn") is not None
    assert list(learners()) == ["naive-bayes"]

"""The audit of synthetic data sets: faults planted in the product itself are seen, what is right passes.

Bits are seeded; a right release is rejected with probability below 1e-9.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpveil.accounting import zcdp_delta
from dpveil.noise import SeededBits
from dpveil.synthesis import plan, votes
from dpveil.synthesis.plan import Plan
from dpveil.synthesis.votes import REPLACED, UNIT
from dpveil_audit.synthesis import (
    INTACT,
    VoteCase,
    VoteDrawn,
    VoteVersion,
    delta_at,
    exact_gate,
    expected,
    fit_gate,
    max_change,
    neighbours,
    numbered,
    same_gate,
)

CASE = VoteCase("1", "1e-6", 3, 3, 3)
DRAWN = VoteDrawn(CASE, 150, fits=(((0, 0, 1), (2,)),))


def bits(name):
    return SeededBits(20261126, name)


def seen(version=INTACT, *, drawn=True):
    """Return the gates that find fault with the product as it is now, whose plan is made anew."""
    case = replace(CASE)
    found = [*same_gate(version, case), *exact_gate(version, case)]
    found += fit_gate(version, replace(DRAWN, case=case), bits=bits("fit")) if drawn else ()
    return {finding.gate for finding in found if not finding.passed}


def test_neighbours_are_all_pairs_of_a_replaced_person():
    few = VoteCase("1", "1e-6", 1, 2, 2)
    assert few.persons == [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    pairs = list(neighbours(few))
    assert len(pairs) == 2 * 15
    assert all(one[1] == two[1] and one[0] != two[0] for one, two in pairs)
    assert max_change(INTACT, few) == (REPLACED, 30)


@pytest.mark.parametrize(("rho", "epsilon", "delta"), [(0.5, 4.73, 1e-5), (0.0156, 1, 1e-9)])
def test_the_conversion_agrees_with_the_accountant(rho, epsilon, delta):
    assert delta_at(rho, epsilon) == pytest.approx(float(zcdp_delta(rho, epsilon)), rel=1e-6)
    assert delta_at(float("inf"), 1) > 1


def test_a_tally_without_a_bound_in_the_product_is_seen(monkeypatch: pytest.MonkeyPatch):
    def unbounded(choices, people, candidates):
        return UNIT * np.bincount(choices, minlength=candidates)

    monkeypatch.setattr(plan, "tally", unbounded)
    assert seen() == {"same"}
    assert "exact" in seen(VoteVersion(name="as now", tally=unbounded))


def test_a_round_without_noise_in_the_product_is_seen(monkeypatch: pytest.MonkeyPatch):
    calls = []

    def sometimes(true, variance, source):
        calls.append(1)
        return true if len(calls) % CASE.rounds == 0 else votes.noisy(true, variance, source)

    monkeypatch.setattr(plan, "noisy", sometimes)
    assert seen() == {"same", "fit"}


@pytest.mark.parametrize("factor", [1 / 3, 0.5, 0.8])
def test_less_noise_in_the_product_is_seen(monkeypatch: pytest.MonkeyPatch, factor):
    def quieter(true, variance, source):
        return votes.noisy(true, int(variance * factor), source)

    monkeypatch.setattr(plan, "noisy", quieter)
    assert "same" in seen(drawn=factor < 0.8)
    assert factor == 0.8 or "fit" in seen()


def test_a_plan_that_forgets_its_rounds_is_seen(monkeypatch: pytest.MonkeyPatch):
    whole = Plan.variance.func
    monkeypatch.setattr(Plan, "variance", property(lambda one: whole(one) // one.rounds))
    assert seen(drawn=False) == {"exact"}


def test_a_plan_that_spends_delta_twice_is_seen(monkeypatch: pytest.MonkeyPatch):
    usual = plan.zcdp_rho
    monkeypatch.setattr(plan, "zcdp_rho", lambda epsilon, delta: usual(epsilon, 2 * delta))
    assert seen(drawn=False) == {"exact"}


def test_votes_by_their_definition_are_those_of_the_product():
    for people in (((0, 0, 1), (2,)), ((), (1, 1)), ((0, 1, 2), (0, 0, 2))):
        own = votes.tally(*numbered(people), 3)
        assert expected(CASE, people).tolist() == own.tolist()

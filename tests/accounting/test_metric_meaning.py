"""What ε·d means: odds by Bayes' rule on a mechanism that attains the bound, and for people."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpveil.accounting.meaning import SHARES, STRENGTHS, meaning
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter

APART = {0.01: 0.03, 0.05: 0.04, 0.5: 0.08, 0.99: 0.2}


def metric(epsilon, diameter=1):
    words = {"metric": "mean part of the box", "relation": Relation("latent-cell"), "scope": Scope("a code")}
    return Guarantee(kind="metric", epsilon=epsilon, diameter=diameter, **words)


def test_the_example_of_the_thesis():
    """§6.6.1: with ε = 200, codes 0.01 apart change odds by e^2 at most."""
    found = meaning(metric(200))
    assert [one.distance for one in found.at] == [0.01, 0.05, 1]
    assert found.at[0].factor == pytest.approx(math.e**2)
    assert found.at[0].success == pytest.approx(1 / (1 + math.exp(-2)))
    assert found.at[1].factor == pytest.approx(math.e**10)
    assert found.people == ()
    assert found.epsilon_for == {}


@pytest.mark.parametrize("epsilon", [0.5, 3, 40])
def test_odds_after_a_release_keep_the_bound_and_attain_it(epsilon):
    """Laplace noise of scale 1/ε on one number: posterior over prior odds of every two, at every release."""
    places, outcomes = np.linspace(0, 1, 11), np.linspace(-1, 2, 61)
    likely = epsilon / 2 * np.exp(-epsilon * np.abs(outcomes[:, None] - places))
    prior = np.random.default_rng(3).dirichlet(np.ones(11))
    after = likely * prior
    after /= after.sum(axis=1, keepdims=True)
    for i in range(11):
        for j in range(11):
            moved = (after[:, i] / after[:, j]) / (prior[i] / prior[j])
            at = meaning(metric(epsilon, 3), dict.fromkeys(SHARES, abs(i - j) / 10)).people[0]
            assert moved.max() <= at.factor * (1 + 1e-9)
            assert moved.max() == pytest.approx(at.factor)


def test_people_and_the_budget_that_they_ask_for():
    found = meaning(metric(30), APART)
    assert [(one.share, one.distance) for one in found.people] == [(0.01, 0.03), (0.5, 0.08), (0.99, 0.2)]
    assert found.people[1].factor == pytest.approx(math.exp(2.4))
    assert found.epsilon_for["strong"] == pytest.approx(math.log(3) / 0.08)
    for name, epsilon in found.epsilon_for.items():
        chance = {"strong": 0.75, "moderate": 0.95, "weak": 0.9999}[name]
        assert meaning(metric(epsilon), APART).people[1].success == pytest.approx(chance)
    assert meaning(metric(30), dict.fromkeys(SHARES, 0.0)).epsilon_for == {}


def test_bounds_are_rounded_up_and_end():
    at = meaning(metric("1/3")).at[2]
    assert math.exp(1 / 3) < at.factor < math.exp(1 / 3) * (1 + 1e-15)
    huge = meaning(metric(10**6, 2), APART)
    assert huge.at[-1].factor == math.inf
    assert huge.at[-1].success == 1
    assert json.loads(json.dumps(huge.to_json()))["at"][-1] == {
        "d": 2.0,
        "factor": None,
        "success": 1.0,
        "share": None,
    }


def test_words():
    found = meaning(metric(30, 2), APART)
    assert [one.distance for one in found.at] == [0.01, 0.05, 1, 2]
    odds, usual, warning = found.sentences
    assert "e^(30·d)" in odds
    assert "mean part of the box" in odds
    assert "within 0.08" in usual
    assert "91.69 %" in usual  # 1/(1 + e^-2.4), rounded up
    assert "two photos of one person" in warning
    assert meaning(metric(30)).sentences == (odds, warning)
    assert found.to_json()["sentences"] == list(found.sentences)


def test_other_guarantees_are_refused():
    pure = Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a photo"))
    with pytest.raises(InvalidParameter, match="no distance"):
        meaning(pure)


def test_success_and_epsilons_are_rounded_away_from_what_is_promised():
    """Against 50 digits: one step of a float did not always cover what exp, log and a division lose."""
    with mpmath.workdps(50):
        for number in range(1, 400):
            epsilon = Fraction(number, 37)
            found = meaning(metric(epsilon), dict.fromkeys(APART, 0.01 * number)).at
            for one in found:
                # At the distance as it is meant, which the float of it may exceed.
                true = 1 / (1 + mpmath.exp(-mpmath.mpf(number) / 37 * mpmath.mpf(str(one.distance))))
                assert one.success >= true, (epsilon, one)
            wanted = meaning(metric(epsilon), dict.fromkeys(APART, 0.01 * number)).epsilon_for
            for name, chance in STRENGTHS.items():
                odds = mpmath.mpf(chance.numerator) / (chance.denominator - chance.numerator)
                assert wanted[name] * mpmath.mpf(0.01 * number) <= mpmath.log(odds), (name, number)

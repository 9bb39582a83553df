"""The best scales where responses end: the programme against brute force, and what the page says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kept_tables import kept_rows

from dpveil_research.croft_thesis_5 import Tabled, optimum
from dpveil_research.half_infinite import (
    BOUND,
    ENDS,
    OPTIMAL,
    PUBLISHED,
    SNAPPED,
    UNIFORM,
    Chain,
    best_rates,
    mechanism_scale,
    mechanisms,
)

ROWS = kept_rows("half-infinite", "errors")


def column(mechanism, name="mean"):
    return {int(r["end"]): float(r[name]) for r in ROWS if r["mechanism"] == mechanism and r[name]}


def test_programme_finds_the_best_of_all_sequences():
    chain = Chain(2, steps=2)
    table = np.array([0.5, 0.55, 0.62, 0.7, 0.8, 0.95])
    sound = []
    for rates in itertools.product(table, repeat=len(chain.points)):
        laws = chain.laws(np.array(rates))
        if chain.cost(laws) <= chain.epsilon * (1 - 1e-9):
            sound.append((laws.expected("error"), rates))
    assert 1 < len(sound) < len(table) ** 5
    assert best_rates(chain, table).tolist() == list(min(sound)[1])


@pytest.mark.parametrize("end", [2, 4, 8])
def test_best_scales_are_sound_over_all_responses(end):
    chain = Chain(end)
    tables = mechanisms(end)
    for name in (OPTIMAL, UNIFORM, SNAPPED):
        assert chain.cost(tables[name]) <= chain.epsilon * (1 + 1e-9)
        assert np.allclose(tables[name].matrix.sum(axis=0), 1)
    assert chain.cost(tables[PUBLISHED]) > 1.3
    assert tables[OPTIMAL].expected("error") < tables[UNIFORM].expected("error")


@pytest.mark.parametrize("end", [2, 4])
def test_bound_is_that_of_the_linear_program(end):
    chain = Chain(end)
    best = optimum(chain.points, chain.points, 1, chain.budget)
    found = Tabled(chain.points, chain.points, best).expected("error")
    assert found == pytest.approx(chain.snapped().expected("bayes"), rel=1e-7)
    assert column(BOUND)[end] == pytest.approx(found, abs=6e-5)


def test_totals_are_sums():
    chain, rates = Chain(3), np.array([0.4, 1.1])
    wanted = [[np.exp(-r * np.abs(chain.points - x)).sum() for r in rates] for x in chain.points]
    assert np.allclose(np.exp(chain.log_totals(rates)), wanted, rtol=1e-12)


def test_gain_stays_in_the_mean_and_vanishes_at_any_answer():
    one, best = column(UNIFORM), column(OPTIMAL)
    gains = [1 - best[end] / one[end] for end in ENDS]
    assert gains == sorted(gains)
    assert 0.31 < gains[-1] < 0.33
    for mark in ("at 0", "at 1", "at 4"):
        best, limit = column(OPTIMAL, mark), column(UNIFORM, mark)[64]
        rising = [best[end] for end in (16, 32, 64)]
        assert rising == sorted(rising)
        assert rising[-1] < limit
    assert column(OPTIMAL, "at 0")[64] > 0.97 * column(UNIFORM, "at 0")[64]


def test_snapped_laplace_errs_less_than_any_scales_and_nearly_as_little_as_anything():
    snapped, best, bound = column(SNAPPED), column(OPTIMAL), column(BOUND)
    assert all(bound[end] < snapped[end] < best[end] for end in ENDS)
    assert snapped[64] < 1.006 * bound[64]


def test_published_scales_spend_more_the_further_responses_go():
    spent = column(PUBLISHED, "epsilon")
    assert list(spent.values()) == sorted(spent.values())
    assert spent[64] > 9.7
    assert spent[2] > 1.3


def test_one_scale_tends_to_twice_the_noise_on_fine_lattices():
    scales = [mechanism_scale(Chain(16, steps=steps).uniform()) for steps in (4, 16, 64)]
    assert scales == sorted(scales)
    assert 1.97 < scales[-1] < 2

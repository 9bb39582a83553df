"""Sums, quantiles and groups: answers, and what a replaced record costs, over all small tables."""

from fractions import Fraction
from itertools import pairwise, product
from math import exp

import numpy as np
import pytest

from dpveil import Ledger, numbers
from dpveil.errors import BudgetRefused, DPVeilError
from dpveil.ledger.limits import Limit
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.noise_mechanisms import NoisyMechanism
from dpveil.noise.bits import SeededBits
from dpveil.numbers.statistics import RankExponential

CELLS = (0, 1, 2, 4)
ROWS = 4


def neighbours(cells, rows=ROWS):
    for table in product(cells, repeat=rows):
        for row, other in product(range(rows), cells):
            yield table, (*table[:row], other, *table[row + 1 :])


def chances(mechanism, table):
    law = mechanism.law([Fraction(value) for value in table])
    return [Fraction(weight, sum(law)) for weight in law]


@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5), Fraction(80)])
def test_a_replaced_record_changes_no_chance_of_a_quantile_by_more_than_its_budget(q, epsilon):
    own = RankExponential(range=Range(0, 4), epsilon=epsilon, step=Fraction(1), quantile=q, rows=ROWS)
    known = {table: chances(own, table) for table in product(CELLS, repeat=ROWS)}
    worst = max(max(a / b for a, b in zip(known[x], known[y], strict=True)) for x, y in neighbours(CELLS))
    assert worst <= Fraction(exp(float(epsilon))) * (1 + Fraction(1, 10**12))
    if epsilon <= 1 and 0 < q < 1:
        assert worst > Fraction(exp(float(epsilon / 2))), "the bound is not far off"
    for one, other in pairwise(own.weights):
        assert other <= one <= other * Fraction(exp(float(epsilon / 2))) * (1 + Fraction(1, 10**12))


def test_quantiles_are_drawn_by_their_law_and_near_the_truth_with_much_budget():
    values = [3] * 10 + [7] * 11 + [9] * 4
    for q, truth in ((0, 3), (0.3, 3), (0.5, 7), (0.95, 9)):
        plan = numbers.quantile(values, q, range=(0, 10), epsilon=200, step=1)
        assert plan.release(SeededBits(1)).response == truth
    plan = numbers.median(values, range=(0, 10), epsilon="1/2", step=1)
    law = np.array([float(c) for c in chances(plan.mechanism, values)])
    bits = SeededBits(2)
    drawn = np.bincount([int(plan.release(bits).response) for _ in range(4000)], minlength=11) / 4000
    assert np.abs(drawn - law).max() < 6.5 * np.sqrt(0.25 / 4000)


@pytest.mark.parametrize("value", [0, 2, 65, 119.99, 120])
def test_a_quantile_of_equal_values_is_theirs_whatever_the_points(value):
    for step in (None, 7, "0.3"):
        plan = numbers.median([value] * 200, range=(0, 120), epsilon=1, step=step)
        answer = plan.release(SeededBits(4))
        assert abs(answer.response - value) <= float(plan.mechanism.step)
        assert float(answer.shown) == pytest.approx(answer.response, rel=1e-9)


def test_sums_and_groups_are_those_of_the_table(monkeypatch):
    seen = []

    def release(self, answer, bits):
        seen.append(answer)
        return np.zeros(np.shape(answer)) if np.ndim(answer) else 0.0

    for kind in (ScalarMechanism, NoisyMechanism):
        monkeypatch.setattr(kind, "release", release)
    settings = {"range": (-1, 10), "epsilon": 1, "mechanism": "laplace"}
    numbers.total([1, "2", 99], **settings).release(SeededBits(1))
    numbers.total([1, "2", 99], groups=list("aba"), categories="ab", **settings).release(SeededBits(1))
    numbers.count_by(list("abca"), categories="ab", epsilon=1, mechanism="laplace").release(SeededBits(1))
    both = numbers.count_by(
        list("aab"), categories="ab", by=list("xyx"), by_categories="xy", epsilon=1, mechanism="laplace"
    )
    assert seen == [13, [11, 2], [2, 1]]
    assert both.answers == (1, 1, 1, 0)
    assert both.groups == ("a, x", "a, y", "b, x", "b, y")


SETTINGS = {"epsilon": 2, "mechanism": "laplace"}
GROUPED = SETTINGS | {"categories": "ab"}
QUERIES = {
    "sum": lambda values, groups, ends: numbers.total(values, range=ends, **SETTINGS),
    "sums": lambda values, groups, ends: numbers.total(values, range=ends, groups=groups, **GROUPED),
    "counts": lambda values, groups, ends: numbers.count_by(groups, **GROUPED),
    "pairs": lambda values, groups, ends: numbers.count_by(groups, by=values, by_categories=ends, **GROUPED),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("ends", [(0, 3), (-2, 3), (1, 3)])
def test_a_replaced_record_moves_answers_by_no_more_than_is_paid_for(query, ends):
    """ε for each number is ε · (moved / ΔF), and all of them together stay within the guarantee."""
    cells = list(product(ends, "abz"))

    def plan(table):
        values, groups = zip(*table, strict=True)
        return QUERIES[query](values, groups, ends)

    known = {table: plan(table) for table in product(cells, repeat=2)}
    worst = Fraction(0)
    for one, other in neighbours(cells, 2):
        a, b = known[one], known[other]
        moved = sum(abs(x - y) for x, y in zip(a.answers, b.answers, strict=True))
        worst = max(worst, moved * a.mechanism.epsilon / a.mechanism.sensitivity)
    assert worst == known[one].guarantee.epsilon == 2


def test_answers_show_the_digits_that_their_error_allows_and_are_paid_for(tmp_path):
    answer = numbers.mean([20, 30, 40] * 100, range=(0, 120), epsilon=1).release(SeededBits(3))
    assert len(answer.shown.partition(".")[2]) == 1  # the error is 0.2 to 0.9
    assert numbers.count([1, 2], above=1, epsilon=1).release(SeededBits(3)).shown.isdigit()
    plan = numbers.median([20, 30, 40], range=(0, 120), epsilon=3)
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", create=True) as ledger:
        ledger.set_limit("table", Limit("pure", epsilon=5))
        ledger.debit("table", plan.guarantee, "first")
        with pytest.raises(BudgetRefused):
            ledger.debit("table", plan.guarantee, "second")


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (numbers.quantile, {"q": 2}),
        (numbers.quantile, {"q": 0.5, "step": "1/100000"}),
        (numbers.quantile, {"q": 0.5, "step": 0}),
        (numbers.quantile, {"q": 0.5, "epsilon": 0}),
        (numbers.total, {"groups": ["a", "b"]}),
        (numbers.total, {"groups": ["a"], "categories": "ab"}),
        (numbers.total, {"groups": ["a", "b"], "categories": "aa"}),
    ],
)
def test_what_makes_no_sense_is_refused(call, arguments):
    with pytest.raises(DPVeilError):
        call([1, 2], **{"range": (0, 10), "epsilon": 1, **arguments})

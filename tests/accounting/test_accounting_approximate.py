"""Repeated releases as one (ε, δ): never below the exact optimum of independent formulas, and close to it."""

import math
from fractions import Fraction

import pytest

from dpveil.accounting import to_approximate, zcdp_epsilon
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter, UnsupportedRelation

ANY, SIXTEEN = Relation("any-image"), Relation("m-pixels", 16)


def part(kind: str, *, relation: Relation = ANY, covers: str = "a photo", **numbers: object) -> Guarantee:
    return Guarantee(kind=kind, relation=relation, scope=Scope(covers), **numbers)


def optimal_delta(each: float, times: int, epsilon: float) -> float:
    """Return the least δ of k ε-DP releases together (Kairouz, Oh & Viswanath 2015, theorem 3.3)."""
    total = 0.0
    for lost in range(times + 1):
        mass = math.comb(times, lost) / (1 + math.exp(each)) ** times
        total += mass * max(0.0, math.exp((times - lost) * each) - math.exp(epsilon + lost * each))
    return total


@pytest.mark.parametrize(
    ("each", "times", "delta"), [("0.1", 100, "1e-6"), ("0.5", 12, "1e-4"), ("0.02", 400, "1e-3")]
)
def test_pure_releases_reach_the_optimum_from_the_private_side(each: str, times: int, delta: str):
    total = to_approximate([part("pure", epsilon=each)] * times, delta)
    epsilon = float(total.epsilon)
    assert optimal_delta(float(each), times, epsilon) <= float(delta)
    assert optimal_delta(float(each), times, epsilon * 0.98) > float(delta)
    assert (total.kind, total.delta) == ("approximate", Fraction(delta))


def test_a_single_release_costs_no_more_than_it_says():
    assert to_approximate([part("pure", epsilon=3)], "1e-6").epsilon <= 3
    assert to_approximate([part("zcdp", rho="0.5")], "1e-6").epsilon == zcdp_epsilon("0.5", "1e-6")


def test_zcdp_adds_before_it_is_converted():
    together = to_approximate([part("zcdp", rho="0.1")] * 5, "1e-6")
    assert together.epsilon == zcdp_epsilon("0.5", "1e-6") < 5 * zcdp_epsilon("0.1", Fraction(1, 5 * 10**6))


def test_kinds_mix_and_their_deltas_are_spent_first():
    parts = [
        *[part("pure", epsilon="0.1")] * 30,
        part("approximate", epsilon="0.3", delta="4e-7"),
        part("zcdp", rho="0.01"),
    ]
    total = to_approximate(parts, "1e-6")
    rho = Fraction(1, 100) + (Fraction(30, 100) + Fraction(9, 100)) / 2
    assert total.epsilon == zcdp_epsilon(rho, Fraction(6, 10**7))
    few = [part("pure", epsilon="0.001"), part("zcdp", rho="0.02")]
    assert to_approximate(few, "1e-6").epsilon == min(
        Fraction(1, 1000) + zcdp_epsilon("0.02", "1e-6"), zcdp_epsilon(Fraction("0.0200005"), "1e-6")
    )
    with pytest.raises(InvalidParameter, match="delta"):
        to_approximate(parts, "4e-7")


def test_approximate_releases_by_their_worst_mechanism():
    total = to_approximate([part("approximate", epsilon="0.1", delta="1e-8")] * 50, "1e-6")
    plain = to_approximate([part("pure", epsilon="0.1")] * 50, "1e-6")
    assert plain.epsilon < total.epsilon < plain.epsilon * Fraction(21, 20)


def test_the_weaker_relation_and_both_scopes_remain():
    total = to_approximate(
        [part("pure", epsilon=1), part("pure", epsilon=1, relation=SIXTEEN, covers="b")], "1e-6"
    )
    assert total.relation == SIXTEEN
    assert total.scope.covers == "a photo; b"


def test_tiny_deltas_do_without_the_accountant_that_rounds():
    assert to_approximate([part("pure", epsilon=1)] * 2, "1e-14").epsilon == 2


def test_what_cannot_be_stated_is_refused_and_heuristics_absorb():
    with pytest.raises(InvalidParameter, match="empty"):
        to_approximate([], "1e-6")
    with pytest.raises(UnsupportedRelation):
        to_approximate([part("metric", epsilon=1, metric="L2", diameter=1)], "1e-6")
    assert (
        to_approximate([part("heuristic", broken_by=("x",)), part("pure", epsilon=1)], "1e-6").kind
        == "heuristic"
    )

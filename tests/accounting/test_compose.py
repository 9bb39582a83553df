"""What releases cost together: by hand for some, and over all kinds and relations."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.accounting import compose, to_approximate
from dpveil.core.guarantee import KINDS, Distance, Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter, UnsupportedRelation
from dpveil.numbers import histogram, mean
from strategies import RELATIONS, guarantees

ANY = Relation("any-image")


def make(kind: str, name: str = "a", **numbers: object) -> Guarantee:
    return Guarantee(kind=kind, relation=ANY, scope=Scope(name, ("size", name)), **numbers)


PURE = make("pure", epsilon=0.1)
APPROXIMATE = make("approximate", epsilon=2, delta=0.25)
ZCDP = make("zcdp", rho=0.5)
METRIC = make("metric", epsilon=1, metric="d", diameter=3, distance=Distance.of("d", codec="a"))
HEURISTIC = make("heuristic", broken_by=("parrot",))


def numbers(guarantee: Guarantee) -> tuple[object, ...]:
    return guarantee.kind, guarantee.epsilon, guarantee.delta, guarantee.rho


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ([PURE] * 3, ("pure", Fraction(3, 10), None, None)),
        ([PURE, APPROXIMATE], ("approximate", Fraction(21, 10), Fraction(1, 4), None)),
        ([APPROXIMATE] * 5, ("approximate", Fraction(10), Fraction(1), None)),
        ([ZCDP, make("pure", epsilon=2)], ("zcdp", None, None, Fraction(5, 2))),
        ([METRIC, METRIC], ("metric", Fraction(2), None, None)),
        ([make("pure", epsilon=2), make("pure", epsilon=1), ZCDP], ("zcdp", None, None, Fraction(3))),
        ([PURE, ZCDP, METRIC, HEURISTIC], ("heuristic", None, None, None)),
    ],
)
def test_what_several_releases_cost_together(parts, total):
    assert numbers(compose(parts)) == total


# Over all kinds and relations

SOUND = [{"pure"}, {"approximate"}, {"zcdp"}, {"metric"}, {"pure", "approximate"}, {"pure", "zcdp"}]


@st.composite
def several(draw: st.DrawFn) -> list[Guarantee]:
    """Parts of one or two kinds, under one or two relations."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2))
    relations = draw(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=2))
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
    return [draw(guarantees(kinds, relations, name)) for name in names]


def total_of(parts: list[Guarantee]) -> Guarantee | None:
    try:
        return compose(parts)
    except UnsupportedRelation:
        return None


def unmeasured(parts: list[Guarantee]) -> bool:
    """Whether these metric parts have no one distance that is known as data."""
    return len({part.distance for part in parts}) > 1 or parts[0].distance is None


def costs(guarantee: Guarantee) -> tuple[object, ...]:
    """Return all that does not depend on the order of parts."""
    relation = guarantee.relation if guarantee.formal else None
    named = guarantee.distance, frozenset(guarantee.broken_by or ()), set(guarantee.scope.in_the_clear)
    return *numbers(guarantee), guarantee.diameter, relation, *named


def rho(guarantee: Guarantee) -> Fraction:
    return guarantee.rho if guarantee.rho is not None else guarantee.epsilon**2 / 2


@given(several(), st.randoms(use_true_random=False))
def test_the_order_of_releases_is_free(parts, random):
    other = list(parts)
    random.shuffle(other)
    one, two = total_of(parts), total_of(other)
    assert (one is None) == (two is None)
    assert one is None or costs(one) == costs(two)


@given(several())
def test_a_total_is_refused_or_holds_under_a_relation_of_its_own_and_is_never_below_a_part(parts):
    kinds, relations = {part.kind for part in parts}, {part.relation for part in parts}
    common = [r for r in relations if all(other.implies(r) for other in relations)]
    total = total_of(parts)
    if total is None:
        assert kinds not in SOUND or not common or (kinds == {"metric"} and unmeasured(parts))
        return
    assert set(total.scope.in_the_clear) == {shown for part in parts for shown in part.scope.in_the_clear}
    if "heuristic" in kinds:
        assert {way for part in parts for way in part.broken_by or ()} == set(total.broken_by)
        return
    assert kinds in SOUND
    assert kinds != {"metric"} or len(parts) == 1 or not unmeasured(parts)
    assert [total.relation] == common
    for part in parts:
        if total.kind == "zcdp":
            assert total.rho >= rho(part)
        else:
            assert total.epsilon >= part.epsilon
            assert (total.delta or 0) >= (part.delta or 0)
            assert (total.diameter or 0) >= (part.diameter or 0)


@given(several(), st.integers(1, 4))
def test_totals_of_totals_are_the_total_and_never_less(parts, cut):
    whole, first = total_of(parts), total_of(parts[:cut])
    if first is None or (whole is not None and not whole.formal):
        return
    nested = total_of([first, *parts[cut:]])
    assert (nested is None) == (whole is None)
    if whole is None or nested is None:
        return
    if {part.kind for part in parts} == {"pure", "zcdp"}:  # ε adds before it is squared
        assert nested.rho >= whole.rho
    else:
        assert costs(nested) == costs(whole)


@settings(max_examples=25)
@given(several(), st.randoms(use_true_random=False))
def test_as_one_epsilon_and_delta_order_is_free_and_the_sum_is_never_exceeded(parts, random):
    parts = [part for part in parts if part.kind in ("pure", "approximate", "zcdp")]
    spent = sum(part.delta or 0 for part in parts)
    if not parts or spent >= Fraction(9, 10) or total_of([replace(p, **ONE) for p in parts]) is None:
        return
    delta, other = spent + Fraction(1, 10), list(parts)
    random.shuffle(other)
    one, two = to_approximate(parts, delta), to_approximate(other, delta)
    assert (one.epsilon, one.delta, one.relation) == (two.epsilon, delta, two.relation)
    if not any(part.rho for part in parts):
        assert one.epsilon <= sum(part.epsilon or 0 for part in parts)


ONE = {"kind": "pure", "epsilon": Fraction(1), "delta": None, "rho": None}
"""Turns any part into one that always adds, but for its relation."""


# By example


def test_nothing_composes_to_nothing():
    with pytest.raises(InvalidParameter):
        compose([])


def test_metric_promises_add_by_what_they_measure_and_not_by_their_words():
    one, other = Distance.of("d", codec="a" * 64), Distance.of("d", codec="a" * 63 + "b")
    told = {"kind": "metric", "epsilon": 1, "diameter": 1}
    parts = [make(metric="d", distance=distance, **told) for distance in (one, other, None, None)]
    for pair in ((0, 1), (0, 2), (2, 3)):
        with pytest.raises(UnsupportedRelation):
            compose([parts[i] for i in pair])
    total = compose([parts[0], make(metric="reworded", distance=one, **told)])
    assert (total.epsilon, total.distance) == (2, one)
    assert compose([parts[2]]) == parts[2]


def test_two_queries_of_one_sensitivity_are_two_distances():
    columns = [[1, 2, 3], [9, 9, 0]]
    settings = {"range": (0, 9), "epsilon": 1, "relation": "any-database"}
    with pytest.raises(UnsupportedRelation):
        compose([mean(column, **settings).guarantee for column in columns])
    counted = [histogram(column, bins=2, **settings).guarantee for column in columns]
    assert compose(counted).epsilon == 2  # of one database: records replaced


def test_scopes_join_and_say_nothing_twice():
    total = compose(
        [make("pure", "a", epsilon=1), make("pure", "b", epsilon=1), make("pure", "a", epsilon=1)]
    )
    assert total.scope.in_the_clear == ("size", "a", "b")
    assert total.scope.covers.startswith("a; b")


@pytest.mark.parametrize("given", [3, [3], "pure", {1}, None, PURE, [PURE, None]])
def test_what_is_no_list_of_guarantees_is_refused_by_name(given):
    with pytest.raises(InvalidParameter, match=r"^guarantees = '\w+' is not a list of guarantees"):
        compose(given)

import itertools
from fractions import Fraction

import pytest

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter, UnsupportedRelation

ANY = Relation("any-image")


def make(kind: str, name: str = "a", **numbers: object) -> Guarantee:
    return Guarantee(kind=kind, relation=ANY, scope=Scope(name, ("size", name)), **numbers)


PURE = make("pure", epsilon=0.1)
APPROXIMATE = make("approximate", epsilon=2, delta=0.25)
ZCDP = make("zcdp", rho=0.5)
METRIC = make("metric", epsilon=1, metric="d", diameter=3)
HEURISTIC = make("heuristic", broken_by=("parrot",))


def numbers(guarantee: Guarantee) -> tuple[object, ...]:
    return guarantee.kind, guarantee.epsilon, guarantee.delta, guarantee.rho


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ([PURE], ("pure", Fraction(1, 10), None, None)),
        ([PURE] * 3, ("pure", Fraction(3, 10), None, None)),
        ([PURE, APPROXIMATE], ("approximate", Fraction(21, 10), Fraction(1, 4), None)),
        ([APPROXIMATE, PURE], ("approximate", Fraction(21, 10), Fraction(1, 4), None)),
        ([APPROXIMATE] * 5, ("approximate", Fraction(10), Fraction(1), None)),
        ([ZCDP, ZCDP], ("zcdp", None, None, Fraction(1))),
        ([ZCDP, make("pure", epsilon=2)], ("zcdp", None, None, Fraction(5, 2))),
        ([METRIC, METRIC], ("metric", Fraction(2), None, None)),
        ([make("pure", epsilon=2), make("pure", epsilon=1), ZCDP], ("zcdp", None, None, Fraction(3))),
        ([PURE, ZCDP, METRIC, HEURISTIC], ("heuristic", None, None, None)),
    ],
)
def test_what_several_releases_cost_together(parts, total):
    assert numbers(compose(parts)) == total


@pytest.mark.parametrize(
    "pair",
    [
        (ZCDP, APPROXIMATE),
        (METRIC, PURE),
        (METRIC, ZCDP),
        (METRIC, make("metric", epsilon=1, metric="other", diameter=3)),
    ],
)
def test_what_has_no_sound_rule_is_refused_both_ways(pair):
    for parts in itertools.permutations(pair):
        with pytest.raises(UnsupportedRelation):
            compose(parts)


def test_nothing_composes_to_nothing():
    with pytest.raises(InvalidParameter):
        compose([])


def test_scopes_join_and_say_nothing_twice():
    total = compose(
        [make("pure", "a", epsilon=1), make("pure", "b", epsilon=1), make("pure", "a", epsilon=1)]
    )
    assert total.scope.in_the_clear == ("size", "a", "b")
    assert total.scope.covers.startswith("a; b")


def test_heuristics_remember_everything_that_breaks_them():
    total = compose([HEURISTIC, PURE, make("heuristic", broken_by=("averaging", "parrot"))])
    assert total.broken_by == ("parrot", "averaging")
    assert not total.formal

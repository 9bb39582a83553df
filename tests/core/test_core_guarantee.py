from fractions import Fraction

import pytest

from dpveil.core.guarantee import KINDS, RELATIONS, Guarantee, Relation, Scope
from dpveil.core.parameters import Between, Count, OptionalCount, OptionalProbability, Positive
from dpveil.errors import InvalidParameter

SCOPE = Scope("the photo", ("its size",))
ANY = Relation("any-image")
WHOLE = {
    "pure": {"epsilon": 0.1},
    "approximate": {"epsilon": 1, "delta": "1e-6"},
    "zcdp": {"rho": Fraction(1, 3)},
    "metric": {"epsilon": 2, "metric": "mean |x - y|", "diameter": 1},
    "heuristic": {"broken_by": ("parrot attack",)},
}
SPOKEN = {
    "pure": "0.1-DP, any-image",
    "approximate": "(1, 1e-06)-DP, any-image",
    "zcdp": "0.3334-zCDP, any-image",
    "metric": "2·d-privacy, d = mean |x - y|, diameter 1, any-image",
    "heuristic": "no formal guarantee",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_speaks_and_carries_exactly_its_fields(kind):
    guarantee = Guarantee(kind=kind, relation=ANY, scope=SCOPE, **WHOLE[kind])
    assert str(guarantee) == SPOKEN[kind]
    assert guarantee.formal == (kind != "heuristic")
    assert set(guarantee.to_json()) == {"kind", "relation", "scope", *KINDS[kind]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_fields_of_another_kind_are_refused(kind, other):
    if kind == other:
        return
    with pytest.raises(InvalidParameter, match=f"in a {kind} guarantee"):
        Guarantee(kind=kind, relation=ANY, scope=SCOPE, **WHOLE[other])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "pure", "epsilon": -1},
        {"kind": "approximate", "epsilon": 1, "delta": 2},
        {"kind": "approximate", "epsilon": 1, "delta": -1},
        {"kind": "strong", "epsilon": 1},
        {"kind": "pure", "epsilon": "nan"},
    ],
)
def test_impossible_guarantees_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        Guarantee(relation=ANY, scope=SCOPE, **wrong)


def test_guarantees_are_equal_by_value_and_frozen():
    a = Guarantee(kind="pure", epsilon=0.5, relation=ANY, scope=SCOPE)
    assert a == Guarantee(kind="pure", epsilon="1/2", relation=ANY, scope=SCOPE)
    with pytest.raises(AttributeError):
        a.epsilon = Fraction(1)


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_say_who_is_a_neighbour(name):
    relation = Relation(name, 16 if name == "m-pixels" else None)
    assert ("16 pixels" in relation.in_words()) == (name == "m-pixels")
    assert relation.to_json()["name"] == name


@pytest.mark.parametrize(
    ("name", "m"),
    [
        ("any-image", 1),
        ("m-pixels", None),
        ("m-pixels", 0),
        ("cousins", None),
        ("m-pixels", 1.5),
        ("m-pixels", True),
    ],
)
def test_impossible_relations_are_refused(name, m):
    with pytest.raises(InvalidParameter):
        Relation(name, m)


class Knobs:
    epsilon: Positive = Positive()
    delta: OptionalProbability = OptionalProbability()
    blur: Between = Between("1e-9", 1000, hint="such as 1")
    block: Count = Count(default=1)
    m: OptionalCount = OptionalCount(optional=True)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("epsilon", "1e12", Fraction(10**12)),
        ("epsilon", 1e-12, Fraction(1, 10**12)),
        ("delta", 0.5, Fraction(1, 2)),
        ("blur", "1e-9", Fraction(1, 10**9)),
        ("blur", 1000, Fraction(1000)),
        ("block", 2**31, 2**31),
        ("m", None, None),
        ("m", 1, 1),
    ],
)
def test_parameters_accept_up_to_their_ends(name, given, kept):
    knobs = Knobs()
    setattr(knobs, name, given)
    value = getattr(knobs, name)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("epsilon", 0),
        ("epsilon", -1),
        ("epsilon", None),
        ("epsilon", 1e13),
        ("epsilon", "1e-13"),
        ("delta", 0),
        ("delta", 1),
        ("delta", None),
        ("blur", 0),
        ("blur", 1001),
        ("block", 0),
        ("block", 2**31 + 1),
        ("block", 1.0),
        ("block", "16"),
        ("block", True),
        ("block", None),
        ("m", 0),
        ("m", -1),
    ],
)
def test_parameters_refuse_beyond_their_ends_and_name_themselves(name, given):
    with pytest.raises(InvalidParameter) as caught:
        setattr(Knobs(), name, given)
    assert caught.value.name == name
    assert name in str(caught.value)
    assert caught.value.hint


def test_a_missing_budget_explains_how_to_choose():
    with pytest.raises(
        InvalidParameter, match=r"epsilon is missing: there is no default: 1 or less is strong, 2 moderate"
    ):
        Knobs().epsilon = None

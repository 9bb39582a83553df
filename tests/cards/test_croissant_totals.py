"""Totals of releases: exact sums by hand, and everything that has no total is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.cards.croissant import Listed, number, prefix, together
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import BudgetRefused, OutputError, UsageError

ANY, FEW, MANY, VECTORS = (
    Relation("any-image"),
    Relation("m-pixels", 4),
    Relation("m-pixels", 9),
    Relation("singular-values"),
)


class Stated(Listed):
    """A file whose guarantee is given."""

    def __init__(self, name, guarantee):
        super().__init__(name, 64 * "0", "png")
        object.__setattr__(self, "given", guarantee)

    @property
    def guarantee(self):
        return self.given


def promise(relation=ANY, **numbers):
    kind = "zcdp" if "rho" in numbers else "approximate" if "delta" in numbers else "pure"
    return Guarantee(kind=kind, relation=relation, scope=Scope("a photo"), **numbers)


def summed(parts):
    return together([Stated(str(number), part) for number, part in enumerate(parts)])


def metric(diameter, relation=ANY):
    numbers = {"epsilon": "0.5", "diameter": diameter}
    return Guarantee(kind="metric", metric="l2", relation=relation, scope=Scope("a face"), **numbers)


def test_a_metric_guarantee_counts_with_the_diameter():
    assert str(summed([metric(6), promise(epsilon=1)])) == "4-DP, any-image"
    with pytest.raises(BudgetRefused, match="without a diameter"):
        summed([metric(None, Relation("any-database"))])


@pytest.mark.parametrize(
    "parts",
    [
        [
            promise(ANY, epsilon=1),
            Guarantee(kind="heuristic", broken_by=("x",), relation=ANY, scope=Scope("")),
        ],
        [promise(MANY, epsilon=1), promise(VECTORS, epsilon=1)],
        [promise(rho=1), promise(epsilon=1, delta="1e-6")],
    ],
)
def test_what_has_no_total_is_refused(parts):
    with pytest.raises(BudgetRefused) as caught:
        summed(parts)
    assert caught.value.exit_code == 3


@given(st.fractions(min_value=0, max_value=10**12) | st.fractions(min_value=0, max_value=1))
def test_numbers_are_never_rounded_down(value):
    told = number(value)
    assert Fraction(repr(told)) >= value
    assert len(repr(told).replace(".", "").partition("e")[0].strip("0")) <= 15
    assert value == 0 or Fraction(repr(told)) <= value * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("value", [Fraction(10**400), Fraction(1, 10**330)])
def test_numbers_beyond_floats_are_above_or_refused(value):
    try:
        assert Fraction(repr(number(value))) >= value
    except BudgetRefused:
        assert value > 1


def test_a_card_lies_where_no_name_in_it_leads_out(tmp_path):
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    assert prefix(inner, inner / "card.json") == ""
    assert prefix(inner, tmp_path / "card.json") == "one/two/"
    for place in (inner / "three" / "card.json", tmp_path / "other" / "card.json"):
        with pytest.raises(UsageError):
            prefix(inner, place)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "link").symlink_to(tmp_path / "one")
    assert prefix(inner, tmp_path / "link" / "card.json") == "two/"
    with pytest.raises(UsageError):  # it lies there by a link only, which nobody else would have
        prefix(tmp_path / "three" / "link" / "two", tmp_path / "three" / "card.json")
    (tmp_path / "a\\b").mkdir()
    with pytest.raises(OutputError):
        prefix(tmp_path / "a\\b", tmp_path / "card.json")

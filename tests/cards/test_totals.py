"""Totals of people: exact sums by hand, and everything that has no total is refused."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.cards.croissant import ANYBODY, Listed, by_table, number, prefix, totals
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import BudgetRefused, DataError, OutputError, UsageError

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


def summed(parts, people=None):
    """Return the totals of files a, b, c and so on."""
    names = "abcdefgh"[: len(parts)]
    whose = {name: frozenset(who) for name, who in (people or {}).items()}
    return totals([Stated(name, part) for name, part in zip(names, parts, strict=True)], whose)


def of(found):
    return {one.name: (one.releases, str(one.total)) for one in found.people}


def test_each_person_s_costs_add_up():
    parts = [promise(epsilon=1), promise(epsilon="1/4"), promise(epsilon=2)]
    found = summed(parts, {"a": ["Ada"], "b": ["Ada", "Bob"], "c": ["Bob"]})
    assert of(found) == {"Ada": (2, "1.25-DP, any-image"), "Bob": (2, "2.25-DP, any-image")}
    assert (found.named, found.unnamed, str(found.together)) == (2, (), "3.25-DP, any-image")
    assert [(str(total), people) for total, people in found.most] == [("2.25-DP, any-image", 2)]


def test_a_photo_of_nobody_known_counts_for_everybody():
    parts = [promise(epsilon=1), promise(epsilon=2), promise(epsilon=4)]
    found = summed(parts, {"a": ["Ada"], "b": ["Bob"]})
    assert of(found) == {"Ada": (2, "5-DP, any-image"), "Bob": (2, "6-DP, any-image")}
    assert found.unnamed == ("c",)
    bare = summed(parts)
    assert of(bare) == {ANYBODY: (3, "7-DP, any-image")}
    assert (bare.named, len(bare.unnamed)) == (0, 3)


def metric(diameter, relation=ANY):
    numbers = {"epsilon": "0.5", "diameter": diameter}
    return Guarantee(kind="metric", metric="l2", relation=relation, scope=Scope("a face"), **numbers)


def test_a_metric_guarantee_counts_with_the_diameter():
    assert str(summed([metric(6), promise(epsilon=1)]).together) == "4-DP, any-image"
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
        summed(parts, {"a": ["Ada"], "b": ["Ada"]})
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


def test_a_table_may_name_files_in_two_ways(tmp_path):
    table = tmp_path / "who.csv"
    table.write_text("person,file\nAda,a.png\nBob,./a.png\nBob,out/x/a.png\n,b.png\nEve,\n", encoding="utf-8")
    found = by_table(table, "person", ["a.png", "x/a.png", "b.png"], Path("out"))
    assert found == {"a.png": {"Ada", "Bob"}, "x/a.png": {"Bob"}}


def test_a_name_that_may_mean_two_files_is_refused(tmp_path):
    table = tmp_path / "who.csv"
    table.write_text("file,person\nb.png,Ada\nout/b.png,Ada\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 2 .* more than one file"):
        by_table(table, "person", ["b.png", "out/b.png"], Path("out"))


@pytest.mark.parametrize("name", ["c.png", "../a.png", "out/../a.png", "/etc/passwd", "A.png"])
def test_a_row_that_names_no_file_of_the_folder_is_refused(tmp_path, name):
    table = tmp_path / "who.csv"
    table.write_text(f"output,person\n{name},Ada\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 1"):
        by_table(table, "person", ["a.png"], Path("out"))


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

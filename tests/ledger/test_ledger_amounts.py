"""Amounts and limits: rounded towards more cost, and never below what composition says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from budgets import ANY, cost
from hypothesis import given
from hypothesis import strategies as st

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import BudgetExceeded, BudgetRefused, InvalidParameter
from dpveil.ledger import Account, Limit
from dpveil.ledger.amounts import Cost, Total, read_relation
from dpveil.ledger.limits import check_subject, is_under, path_to, show_left

amounts = st.fractions(min_value=0, max_value=50, max_denominator=10**9)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 10**3), max_denominator=10**18)


def test_amounts_are_whole_units_rounded_up_and_limits_are_rounded_down() -> None:
    assert Cost.of(cost("1e-9")) == Cost(1, 1, 0, 0)
    assert Cost.of(cost(rho="0.0000011")) == Cost(0, 0, 2, 0)
    assert Cost.of(cost(1, delta="1e-18")).delta == 1
    assert Limit("pure", epsilon="1.9999999").units == (1_999_999,)
    with pytest.raises(InvalidParameter, match="is not from"):
        Limit("pure", epsilon="1e-7")


@given(st.lists(st.tuples(amounts, st.booleans()), min_size=1, max_size=6), amounts)
def test_what_a_zcdp_limit_takes_composes_to_no_more(
    spent: list[tuple[Fraction, bool]], most: Fraction
) -> None:
    if most < Fraction(1, 10**6):
        return
    parts = [cost(rho=value) if is_rho else cost(value) for value, is_rho in spent]
    total = compose([cost(rho=0), *parts]).rho
    assert total is not None
    fits = Limit("zcdp", rho=most).fits(sum(map(Cost.of, parts), Cost()))
    assert not fits or total <= most
    assert fits or total > most - Fraction(len(parts) * 102, 10**6)


@given(st.lists(st.tuples(amounts, deltas), min_size=1, max_size=6), amounts, deltas)
def test_what_an_approximate_limit_takes_composes_to_no_more(
    spent: list[tuple[Fraction, Fraction]], most: Fraction, delta: Fraction
) -> None:
    if most < Fraction(1, 10**6) or delta < Fraction(1, 10**15):
        return
    parts = [cost(epsilon, delta=own) for epsilon, own in spent]
    limit = Limit("approximate", epsilon=most, delta=delta)
    total = compose(parts)
    assert total.epsilon is not None
    assert total.delta is not None
    if limit.fits(sum(map(Cost.of, parts), Cost())):
        assert total.epsilon <= most
        assert total.delta <= delta


@pytest.mark.parametrize(
    ("limit", "spent"),
    [
        (Limit("pure", epsilon=3), cost(rho=0.1)),
        (Limit("pure", epsilon=3), cost(1, delta="1e-9")),
        (Limit("zcdp", rho=3), cost(1, delta="1e-9")),
        (Limit("approximate", epsilon=3, delta="1e-6"), cost(rho="0.0001")),
        (Limit("pure", epsilon=3, relation=Relation("any-image")), cost(1, relation=Relation("m-pixels", 9))),
        (
            Limit("pure", epsilon=3, relation=Relation("m-pixels", 9)),
            cost(1, relation=Relation("m-pixels", 8)),
        ),
    ],
)
def test_what_cannot_be_totalled_under_a_limit_is_refused(limit: Limit, spent: Guarantee) -> None:
    total = Total(Cost.of(spent), spent.relation)
    with pytest.raises(BudgetRefused) as refusal:
        limit.check("album", total, total.cost)
    assert not isinstance(refusal.value, BudgetExceeded)
    assert refusal.value.exit_code == 3


def test_a_relation_that_implies_the_limits_counts_there() -> None:
    limit = Limit("pure", epsilon=3, relation=Relation("m-pixels", 9))
    for relation in (Relation("m-pixels", 9), Relation("m-pixels", 99), Relation("any-image")):
        limit.check("album", Total(Cost.of(cost(3)), relation), Cost())


def test_releases_without_common_neighbours_have_no_total_from_then_on() -> None:
    parts = [Total(Cost(1), Relation(name)) for name in ("singular-values", "any-image")]
    assert (parts[0] + parts[1]).relation == Relation("singular-values")
    mixed = parts[0] + Total(Cost(1), Relation("m-pixels", 9)) + parts[1]
    assert (mixed.mixed, mixed.relation, mixed.cost) == (True, None, Cost(3))
    with pytest.raises(BudgetRefused, match="no neighbours in common"):
        Limit("pure", epsilon=3).check("album", mixed, Cost())


def test_metric_guarantees_cost_their_diameter_and_what_is_unbounded_is_refused() -> None:
    about: Any = {"relation": Relation("any-database"), "scope": Scope(""), "kind": "metric", "metric": "d"}
    assert Cost.of(Guarantee(epsilon=2, diameter=5, **about)).epsilon == 10_000_000
    for endless in (
        Guarantee(epsilon=2, diameter=None, **about),
        Guarantee(kind="heuristic", broken_by=("all",), relation=Relation("any-image"), scope=Scope("")),
        cost("1e10"),
    ):
        with pytest.raises(BudgetRefused):
            Cost.of(endless)


@pytest.mark.parametrize(
    "text",
    ["", "1 2 3", "1 2 3 4 5", "-1 0 0 0", "01 0 0 0", "1e5 0 0 0", f"{'9' * 61} 0 0 0", None, 5, b"0"],
)
def test_other_amounts_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="no amounts"):
        Cost.parse(text)


@pytest.mark.parametrize(
    "text",
    ["m-pixels", "m-pixels:0", "any-image:3", "m-pixels:" + "9" * 30, "elsewhere", None, 3, b"x", "mixed:"],
)
def test_other_relations_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="no relation"):
        read_relation(text)


def test_limits_are_read_as_they_were_written_and_nothing_else_is() -> None:
    for limit in (
        Limit("pure", epsilon=3, relation=Relation("m-pixels", 16)),
        Limit("approximate", epsilon="0.1", delta="1e-9"),
        Limit.concentrated(3, "1e-6"),
    ):
        entry: dict[str, Any] = limit.entry()
        assert Limit.from_json(entry) == limit
        for name in entry:
            for wrong in (-1, 0, 1.5, True, "3", [], {}, 10**70):
                with pytest.raises(ValueError, match="no"):
                    Limit.from_json({**entry, name: wrong})


def test_subjects_are_paths_in_one_spelling() -> None:
    assert check_subject("cafe\u0301") == check_subject("café")
    assert path_to("a/b/c") == ["a", "a/b", "a/b/c"]
    assert is_under("a/b", "a")
    assert not is_under("ab", "a")
    for wrong in (None, 3, b"album", "/".join("a" * 17)):
        with pytest.raises(InvalidParameter):
            check_subject(wrong)


@given(st.sampled_from(["pure", "approximate", "zcdp"]), amounts, amounts)
def test_the_largest_epsilon_that_is_left_fits_and_one_unit_more_does_not(
    kind: str, most: Fraction, spent: Fraction
) -> None:
    more: dict[str, Any] = {"delta": "1e-6"} if kind == "approximate" else {}
    limit = Limit(kind, **{"rho" if kind == "zcdp" else "epsilon": most + 1}, **more)
    before = Cost.of(cost(spent))
    left = limit.left(before)["epsilon"]
    if left:
        assert limit.fits(before + Cost.of(cost(left)))
    assert not limit.fits(before + Cost.of(cost(left + Fraction(1, 10**6))))
    assert bool(limit.exceeded(before)) != limit.fits(before)
    assert all(over > 0 for over in limit.exceeded(before).values())


@given(amounts)
def test_what_is_left_is_shown_rounded_down_and_asking_for_it_fits(amount: Fraction) -> None:
    shown = Fraction(show_left(amount))
    assert 0 <= shown <= amount
    assert amount - shown <= amount / 1000
    limit = Limit("pure", epsilon=amount + 1)
    with pytest.raises(BudgetExceeded) as refused:
        limit.check("a", Total(Cost.of(cost(amount + 2))), Cost.of(cost(amount + 2)))
    assert limit.fits(Cost.of(cost(Fraction(str(refused.value.left)))))


def both(epsilon: Any, delta: Any = "1e-5") -> Limit:
    return Limit("approximate", epsilon=epsilon, delta=delta)


def test_of_a_limit_with_delta_both_amounts_are_left() -> None:
    """δ as well: a release with more of it does not fit, however much ε is left."""

    def account(limit: Limit, *parents: Account, **spent: Any) -> Account:
        used = Total(Cost.of(cost(**spent)), ANY) if spent else Total()
        return Account("a", used, Total(), (limit,), parents)

    own = account(both(12), epsilon=1, delta="1e-6")
    assert own.limits_in_words() == "limit epsilon 12 and delta 1e-05, left epsilon 11 and delta 9e-06"
    assert own.left == {"epsilon": 11, "delta": Fraction(9, 10**6)}
    below = account(both(3), account(both(9, "4e-6"), epsilon=8, delta="1e-6"))
    assert below.limits_in_words().endswith("; in all epsilon 1 and delta 3e-06 is left")
    assert account(both(3), account(Limit("pure", epsilon=2))).left == {"epsilon": 2}
    assert account(both(3), account(Limit("zcdp", rho=2))).left == {"epsilon": 2}
    spent = account(both(3, "1e-6"), epsilon=1, delta="1e-6")
    assert spent.limits_in_words().endswith("left epsilon 2 and delta 0")
    over = account(both(3, "1e-6"), epsilon=1, delta="2e-6")
    assert (over.left, "exceeded by delta 1e-06" in over.limits_in_words()) == (
        {"epsilon": 0, "delta": 0},
        True,
    )


def test_an_account_leaves_what_the_tightest_limit_of_its_path_does() -> None:
    def account(spent: Any, *limits: Limit, parents: tuple[Account, ...] = ()) -> Account:
        return Account("a", Total(Cost.of(cost(spent)), ANY), Total(), limits, parents)

    tight, loose = Limit("pure", epsilon=1), Limit("pure", epsilon=9)
    top = account("0.75", tight)
    assert account("0.5", loose, parents=(top,)).left == {"epsilon": Fraction(1, 4)}
    assert account("0.5", parents=(top,)).left == {"epsilon": Fraction(1, 4)}
    assert account(0, tight, parents=(account(8, loose),)).left == {"epsilon": 1}
    assert account("0.5").left == {}
    assert not account(0).limited
    concentrated = account(0, Limit("zcdp", rho="0.5"))
    assert concentrated.left == {"epsilon": 1, "rho": Fraction(1, 2)}
    assert account(0, loose, parents=(concentrated,)).left == {"epsilon": 1}
    assert account("0.5", loose, parents=(top,)).limits_in_words() == (
        "limit epsilon 9, left 8.5; a: limit epsilon 1, left 0.25; in all epsilon 0.25 is left"
    )
    assert account(1, tight).limits_in_words() == "limit epsilon 1, left 0"
    assert account(1, tight, parents=(account(0, both(9)),)).left == {"epsilon": 0}
    assert account(4, tight).limits_in_words() == "limit epsilon 1, exceeded by epsilon 3"


@pytest.mark.parametrize(
    "name",
    ["", "/", "a/", "/a", "a//b", " a", "a ", "a/ b", "a\nb", "a\x1b[2J", "a\u202eb", "\ud800", "a" * 201],
)
def test_names_that_could_forge_a_line_or_a_path_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        check_subject(name)
    assert "\n" not in str(refusal.value)

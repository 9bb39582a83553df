"""What a refusal tells a key: amounts of the subjects that it may spend, and of no other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from service_client import release, service, upload

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit
from dpveil.service.keys import Caller, Keys
from dpveil.service.page.account import price_of, prices, told
from dpveil.service.problems import Forbidden


def costs(epsilon: Any) -> Guarantee:
    return Guarantee(kind="pure", epsilon=epsilon, relation=Relation("any-image"), scope=Scope("a photo"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    """A studio with ε 0.5 left, in which an album has 3 and another one 0.25."""
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        for subject, epsilon in (("studio", 5), ("studio/album", 3), ("studio/few", "0.25"), ("secret", 1)):
            ledger.set_limit(subject, Limit(kind="pure", epsilon=epsilon))
        ledger.reserve("studio", costs("4.5"), "earlier").commit()
        yield ledger


@pytest.fixture
def keyed(ledger: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a function that asks for a release that costs ε = 1 with a key for these subjects."""
    keys = Keys()
    headers = {}
    for number, subjects in enumerate((("studio/album",), ("studio/few", "albun"), ("studio",))):
        keys, key = keys.new(f"key-{number}", subjects, 1000)
        headers[subjects[0]] = {"Authorization": f"Bearer {key}"}
    keys.write(tmp_path / "keys.json")
    with service(fake=True, ledger=ledger, keys=tmp_path / "keys.json") as (_, client):

        def asks(own: str, subject: str) -> Any:
            files = upload(b"x", {**release(), "subject": subject})
            return client.post("/v1/releases", files=files, headers=headers[own])

        yield asks


def test_a_budget_above_refuses_without_amounts(keyed: Any, ledger: Any) -> None:
    """Whatever of it refuses: neither name nor amount of what is above is told, and the page does not ask."""
    problem = keyed("studio/album", "studio/album").json()
    assert (problem["status"], problem["type"]) == (403, "urn:dpveil:error:BudgetRefused")
    assert problem["title"] == "a budget above studio/album refuses this release"
    assert "0.5" not in str(problem)
    key = Caller("1", "shop", ("studio/album",), 10)
    page: Any = told(ledger, key, None, prices([price_of(costs(1))]))
    assert page["each"][0]["problem"] == ""
    assert page["left"].startswith("studio/album has ε 3 of 3 left; a budget above it may refuse")
    ledger.set_limit("studio", Limit(kind="zcdp", rho="0.25"))
    assert keyed("studio/album", "studio/album").json()["title"] == problem["title"]


@pytest.mark.parametrize("own", ["studio/album", "studio/new"])
def test_the_page_tells_nothing_of_what_is_left_above(ledger: Any, own: str) -> None:
    """Many prices, as of a key that bisects: answers are equal whatever was spent above."""
    key = Caller("1", "shop", (own,), 10)
    steps = range(1, 101)
    words = [price_of(costs(Fraction(step, 20))) for step in steps]
    words += [f"{step} {step * step} 0 0/m-pixels:1" for step in steps]

    def answers() -> list[Any]:
        alone = [told(ledger, key, None, prices([word])) for word in words]
        return [told(ledger, key, None, prices(words)), *alone]

    before = answers()
    ledger.reserve("studio", costs("0.25"), "by another").commit()
    assert answers() == before
    ledger.set_limit("studio", Limit(kind="zcdp", rho="0.001"))
    assert answers() == before


def test_a_key_for_what_is_above_is_told_of_it(keyed: Any) -> None:
    assert keyed("studio", "studio/album").json()["title"] == (
        "studio has epsilon 0.5 left and this release costs 1"
    )


def test_a_mistyped_subject_is_answered_by_one_that_the_key_may_spend(ledger: Any) -> None:
    """And by no other, be it as similar as can be: that would tell that there is one."""
    with pytest.raises(Forbidden) as refused:
        Caller("1", "shop", ("secret", "studio"), 10).subject("secrte")
    assert refused.value.hint == "did you mean secret? name one of the key's own"
    with pytest.raises(Forbidden) as refused:
        Caller("1", "shop", ("studio", "album"), 10).subject("secrte")
    assert refused.value.hint == "name one of the key's own"
    for own, near in ((("secrte", "secret"), " Did you mean secret?"), (("secrte",), "")):
        page: Any = told(ledger, Caller("1", "shop", own, 10), "secrte", [])
        assert page["left"] == f"Nothing can be paid for secrte, which has no limit.{near}"

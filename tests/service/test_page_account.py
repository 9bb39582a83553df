"""What the page says of a budget, and its warnings: from data, in words for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service_client import photo, service, upload

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit
from dpveil.service.keys import LOCAL, Caller
from dpveil.service.page.account import price_of, prices, told
from dpveil.service.problems import Forbidden

ANY = Relation("any-image")


def costs(epsilon: Any, relation: Relation = ANY, **more: Any) -> Guarantee:
    kind = "approximate" if more else "pure"
    return Guarantee(kind=kind, epsilon=epsilon, relation=relation, scope=Scope("a photo"), **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.set_limit("studio", Limit(kind="pure", epsilon=5))
        ledger.set_limit("studio/album", Limit(kind="pure", epsilon=4))
        ledger.set_limit("other", Limit(kind="approximate", epsilon=2, delta="1e-6"))
        ledger.reserve("studio/album", costs(1), "one").commit()
        yield ledger


KEY = Caller("1", "shop", ("studio/album",), 10)


def test_what_is_left_after_and_in_turn(ledger: Any) -> None:
    asked = prices([price_of(costs(epsilon)) for epsilon in (0, 2, "1.5", 1, 4)])
    found = told(ledger, LOCAL, "studio/album", asked)
    assert found["left"] == "studio has ε 4 of 5 left; studio/album has ε 3 of 4 left"
    assert found["share"] == 0.75
    assert found["subjects"] == ["other", "studio", "studio/album"]
    each: Any = found["each"]
    assert [one["problem"] for one in each[:4]] == ["", "", "", ""]
    assert each[4]["problem"] == "This release costs ε 4, and studio/album has 3 left."
    assert each[1]["after"] == "studio has ε 2 of 5 left; studio/album has ε 1 of 4 left"
    assert [one["in_turn"] for one in each] == [True, True, False, True, False]
    assert ledger.show("studio/album").to_json()["spent"]["epsilon"] == 1, "nothing was spent to tell"


def names(ledger: Any, caller: Caller, *asked: Any) -> Any:
    """Return who is offered to pay for releases at these ε, and why nobody is."""
    found = told(ledger, caller, None, prices([price_of(costs(epsilon)) for epsilon in asked]))
    return found["subjects"], found["none"]


def test_who_can_pay_is_offered_and_nobody_else(ledger: Any) -> None:
    """A parent without a limit, one whose own parent is spent, and one that has too little, are not."""
    ledger.set_limit("family/anna", Limit(kind="pure", epsilon=2))
    ledger.reserve("family/anna", costs("0.5"), "one").commit()
    assert "family" in ledger.subjects()
    everybody = ["family/anna", "other", "studio", "studio/album"]
    assert names(ledger, LOCAL) == (everybody, "")
    assert names(ledger, LOCAL, 3) == (["studio", "studio/album"], "")
    assert names(ledger, LOCAL, "3.5") == (["studio"], "")
    assert names(ledger, LOCAL, "3.5", "1.75") == (["other", "studio", "studio/album"], "")
    none, why = names(ledger, LOCAL, 9)
    assert none == []
    assert why == "No budget can pay for this: too little is left. Keep less of each face, or nothing."
    ledger.reserve("studio", costs(4), "rest").commit()
    assert names(ledger, LOCAL) == (["family/anna", "other"], ""), "studio/album counts for studio"
    ledger.reserve("family/anna", costs("1.5"), "two").commit()
    ledger.reserve("other", costs(2), "two").commit()
    none, why = names(ledger, LOCAL)
    assert none == []
    assert why.startswith("Nothing is left to spend in any budget.")
    assert names(ledger, LOCAL, 0) == (everybody, ""), "what costs nothing is always paid"
    each: Any = told(ledger, LOCAL, None, prices([price_of(costs(9))]))["each"]
    assert each[0]["problem"].startswith("No budget can pay for this")


def test_a_key_is_offered_its_own_subjects_that_can_pay(ledger: Any) -> None:
    ledger.set_limit("few", Limit(kind="pure", epsilon=1))
    several = Caller("1", "shop", ("studio/album", "few", "studio/new", "stranger"), 10)
    assert names(ledger, several, 2) == (["studio/album", "studio/new"], ""), "studio may refuse the new one"
    assert told(ledger, several, None, [])["own"] == "studio/album", "with which photos are planned"
    stranger = Caller("1", "shop", ("stranger",), 10)
    assert names(ledger, stranger) == (
        [],
        "There is no budget to pay from: whoever runs the service sets limits.",
    )
    assert told(ledger, LOCAL, None, [])["own"] == ""


def test_a_key_sees_its_own_subjects_alone(ledger: Any) -> None:
    ledger.reserve("studio", costs("3.5"), "two").commit()
    found = told(ledger, KEY, None, prices([price_of(costs(2))]))
    assert (found["subject"], found["subjects"]) == ("studio/album", ["studio/album"])
    above = "; a budget above it may refuse, and is not shown to this key"
    assert found["left"] == f"studio/album has ε 3 of 4 left{above}"
    (each,) = found["each"]  # type: ignore[misc]
    after = f"studio/album has ε 1 of 4 left{above}"
    assert each == {"problem": "", "after": after, "in_turn": True}, "paying decides"
    with pytest.raises(Forbidden):
        told(ledger, KEY, "studio", [])
    below = told(ledger, Caller("1", "shop", ("studio/new",), 10), None, [])
    assert below["left"] == "studio/new is paid from a budget that is not shown to this key and may refuse"


def test_the_page_asks_over_http(ledger: Any) -> None:
    with service(fake=True, ledger=ledger) as (_, client):
        asked = [("subject", "studio/album"), ("price", price_of(costs(1))), ("price", price_of(costs(9)))]
        found = client.get("/page/budget", params=asked)
        assert [one["in_turn"] for one in found.json()["each"]] == [True, False]
        asked = [("subject", "studio/album"), ("paid", price_of(costs(1))), ("paid", price_of(costs("0.5")))]
        assert client.get("/page/budget", params=asked).json()["paid"] == "for ε 1.5"
        assert client.get("/page/budget", params=[("paid", "x")]).status_code == 400
        assert client.get("/page/budget", params=[("price", "x")]).status_code == 400
        assert client.get("/page/budget", params={"subject": "a//b"}).status_code == 422


def test_a_plan_says_by_what_each_region_is_replaced(client: Any) -> None:
    settings = {"method": "attributes", "regions": ["object:1,1,9,9", "8,8,40,30"]}
    said = client.post("/page/plan", files=upload(photo(), settings)).json()["said"]
    assert said["by"] == ["a grey box", "a face of nobody"]
    assert said["cost"].startswith(
        "2 regions are replaced: one by a grey box, one by a face of nobody. Nothing"
    )
    assert said["price"] == "0 0 0 0/any-image"
    made = client.post("/v1/releases", files=upload(photo(), settings)).json()
    origins = [region["origin"]["kind"] for region in made["certificate"]["regions"]]
    assert origins == ["object", "box"]

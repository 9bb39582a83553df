"""What answers say of costs: what a release was paid, what a plan would cost, and what is left of whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_client import SETTINGS, photo, release, service, upload

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import LedgerError
from dpveil.ledger import Ledger, Limit
from dpveil.service.keys import Keys
from dpveil.service.schemas import PaidRelease, Plan


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    """A studio with ε 9, in which an album has 3; and a zCDP limit."""
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.set_limit("studio", Limit(kind="pure", epsilon=9))
        ledger.set_limit("studio/album", Limit(kind="pure", epsilon=3))
        ledger.set_limit("other", Limit(kind="zcdp", rho="0.6"))
        yield ledger


@pytest.fixture
def client(ledger: Any) -> Iterator[httpx.Client]:
    """A client of a service whose worker releases for ε = 1."""
    with service(fake=True, ledger=ledger) as (_, client):
        yield client


def post(client: httpx.Client, key: str | None = None, subject: str = "studio/album", **headers: str) -> Any:
    sent = {**headers, **({} if key is None else {"Idempotency-Key": key})}
    files = upload(b"x", release(), subject=subject)
    return client.post("/v1/releases", files=files, headers=sent)


def left(told: dict[str, Any]) -> dict[str, Any]:
    return {limit["subject"]: limit["left"] for limit in told["left"]["limits"]}


def test_a_release_says_what_was_paid_and_what_is_left(client: Any) -> None:
    told = post(client).json()
    assert told["paid"] == {
        "subject": "studio/album",
        "epsilon": 1,
        "delta": 0,
        "rho": 0,
        "relation": "any-image",
    }
    limit = {"relation": None, "not_before": None, "not_after": None, "exceeded": {}, "kind": "pure"}
    assert told["left"] == {
        "limits": [
            {"subject": "studio", "epsilon": 9, "left": 8, **limit},
            {"subject": "studio/album", "epsilon": 3, "left": 2, **limit},
        ],
        "complete": True,
    }
    PaidRelease.model_validate(told, strict=True)
    zcdp = post(client, subject="other").json()
    assert left(zcdp) == {"other": 0.1}, "a pure release counts as ε²/2 there"
    assert client.get(f"/v1/releases/{told['id']}").json() == {
        name: value for name, value in told.items() if name not in ("paid", "left")
    }


def test_a_retry_after_a_loss_is_told_what_was_paid_for_what_it_gets(client: Any, ledger: Any) -> None:
    """The worker ends while it draws: that debit bought nothing, and is not the one that is told of."""
    files = upload(b"x", release(), subject="studio/album", draw="end")
    lost = client.post("/v1/releases", files=files, headers={"Idempotency-Key": "a"})
    assert lost.status_code == 500
    assert "paid" not in lost.json()
    found = post(client, "a").json()
    assert (found["paid"]["epsilon"], left(found)["studio/album"]) == (1, 1)
    assert ledger.paid("studio/album", "local\0a").draw == 2


def test_a_ledger_that_cannot_be_read_takes_nobody_the_release(
    client: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise LedgerError("the ledger is locked")

    for name in ("show", "paid"):
        with monkeypatch.context() as patch:
            patch.setattr(ledger, name, fails)
            answer = post(client)
            assert answer.status_code == 201
            assert not {"paid", "left"} & set(answer.json())


@pytest.mark.parametrize(
    ("subjects", "own", "seen", "complete"),
    [
        (("studio/album",), "studio/album", {"studio/album"}, False),
        (("studio/album", "other"), "studio/album", {"studio/album"}, False),
        (("studio",), "studio/album", {"studio", "studio/album"}, True),
        (("studio/new",), "studio/new", set(), False),
        (("other",), "other", {"other"}, True),
    ],
)
def test_a_key_learns_no_amount_of_a_budget_above_its_own(
    ledger: Any, tmp_path: Path, subjects: tuple[str, ...], own: str, seen: set[str], complete: bool
) -> None:
    """Neither from releases nor from plans, and whether a plan fits is said of its own limits alone."""
    keys, key = Keys().new("shop", subjects, 1000)
    keys.write(tmp_path / "keys.json")
    headers = {"Authorization": f"Bearer {key}"}
    with service(ledger=ledger, keys=tmp_path / "keys.json") as (_, client):

        def ask(path: str, epsilon: Any = "0.5") -> Any:
            wanted = {"method": "fill", "regions": "8,8,32,24"} if not epsilon else settings(epsilon)
            files = upload(photo(), wanted, subject=own)
            return client.post(path, files=files, headers=headers).json()

        made, before = ask("/v1/releases"), ask("/v1/plan", "2.25")
        for told in (made, before):
            assert set(left(told)) == seen
            assert told["left"]["complete"] == complete
        assert before["fits"] == (own != "other"), "ρ 2.53"
        spend(ledger, "studio", "8.25")  # by another, of a budget above
        after = ask("/v1/plan", "2.25")
        hidden = own != "other" and "studio" not in subjects
        assert (after == before) == (hidden or own == "other")
        assert after["fits"] == hidden


def settings(epsilon: Any) -> dict[str, Any]:
    return {"method": "dp-pix", "epsilon": epsilon, "block": 8, "regions": "8,8,32,24"}


def spend(ledger: Any, subject: str, epsilon: Any) -> None:
    promise = Guarantee(kind="pure", epsilon=epsilon, relation=Relation("any-image"), scope=Scope("a photo"))
    ledger.reserve(subject, promise, f"by another, of {subject}").commit()


def test_a_plan_says_what_it_would_cost_and_whether_that_fits(ledger: Any) -> None:
    with service(ledger=ledger) as (_, client):

        def plan(wanted: dict[str, Any], **more: Any) -> Any:
            return client.post("/v1/plan", files=upload(photo(), wanted, **more))

        told = plan(settings(3), subject="studio/album").json()
        assert told["cost"] == {"epsilon": 3, "delta": 0, "rho": 0, "relation": "any-image"}
        assert (left(told), told["fits"]) == ({"studio": 9, "studio/album": 3}, True)
        Plan.model_validate(told, strict=True)
        assert plan(settings("3.000001"), subject="studio/album").json()["fits"] is False
        dear = plan(settings(4), subject="studio/album").json()
        assert (dear["fits"], "reason" in told) == (False, False)
        assert "studio/album" in dear["reason"]
        mistyped = plan(settings(3), subject="studoi").json()
        words = "studoi has no limit, so nothing may be spent for it; did you mean studio?"
        assert (mistyped["fits"], mistyped["reason"]) == (False, words)
        nobody = plan(settings(3)).json()
        assert nobody["cost"] == told["cost"]
        assert not {"left", "fits"} & set(nobody), "nobody is named"
        unlimited = plan(settings(3), subject="nobody").json()
        assert (unlimited["left"], unlimited["fits"]) == ({"limits": [], "complete": True}, False)
        faceless = {"method": "fill", "regions": "faces", "if_none": "copy"}
        copy = plan(faceless, subject="studio/album").json()
        assert (copy["cost"], copy["fits"]) == (None, False), "nobody pays for a copy"
        assert plan(settings(3), subject="a//b").status_code == 422
        assert ledger.show("studio").spent.cost.epsilon == 0
        shown = client.post("/page/plan", files=upload(photo(), settings(3), subject="studio/album"))
        assert "cost" not in shown.json()["plan"], "the page asks for what is left when it changes"


def test_without_a_ledger_nothing_is_said_of_costs() -> None:
    with service(fake=True) as (_, client):
        made = client.post("/v1/releases", files=upload(b"x", release())).json()
        planned = client.post("/v1/plan", files=upload(b"x", SETTINGS)).json()
    assert not {"paid", "left"} & set(made)
    assert not {"cost", "left", "fits"} & set(planned)

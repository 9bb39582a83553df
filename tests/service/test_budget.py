"""Paying: before anything is drawn, once for each key, and never for nothing that somebody saw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from service_client import SETTINGS, photo, release, service, upload

import dpveil
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import LedgerError, OutputError
from dpveil.ledger import Ledger, Limit
from dpveil.service.budget import Budget
from dpveil.service.keys import Keys
from dpveil.service.schemas import PaidRelease, Plan
from dpveil.service.store import KEPT


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        for subject, epsilon in (("album", 3), ("other", 1)):
            ledger.set_limit(subject, Limit(kind="pure", epsilon=epsilon))
        yield ledger


@pytest.fixture
def both(ledger: Any) -> Iterator[tuple[Any, httpx.Client]]:
    with service(fake=True, ledger=ledger) as both:
        yield both


def post(client: httpx.Client, key: str | None = None, subject: Any = "album", **settings: Any) -> Any:
    chosen = {**release(), "subject": subject, **settings}
    return client.post(
        "/v1/releases", files=upload(b"x", chosen), headers={} if key is None else {"Idempotency-Key": key}
    )


def spent(ledger: Any, subject: str = "album") -> Any:
    return ledger.show(subject).to_json()["spent"]["epsilon"]


def kind(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("urn:dpveil:error:")


def test_each_key_is_paid_once_until_the_limit(both: Any, ledger: Any) -> None:
    made, client = both
    for _ in range(3):
        assert post(client, "a").status_code == 201
    assert spent(ledger) == 1
    assert [post(client, key).status_code for key in ("b", "c", "d", None)] == [201, 201, 403, 403]
    refused = post(client, "d")
    assert kind(refused) == "BudgetExceeded"
    assert refused.json()["title"] == "album has epsilon 0 left and this release costs 1"
    assert post(client, "d", draw="end").status_code == 403  # it is not even begun to draw
    assert post(client, "a").status_code == 201
    assert spent(ledger) == 3
    assert post(client, "d", "other").status_code == 201
    assert made.jobs.workers.replaced == 0
    ledger.check()


@pytest.mark.parametrize(("subject", "status"), [(None, 422), ("unknown", 403), ("a\nb", 422), ("", 422)])
def test_nothing_is_drawn_without_a_payer(both: Any, ledger: Any, subject: Any, status: int) -> None:
    assert post(both[1], subject=subject).status_code == status
    assert post(both[1], total=None).status_code == 422
    assert spent(ledger) == 0


def test_a_worker_that_ends_while_it_draws_costs_one_debit_and_shows_nothing(both: Any, ledger: Any) -> None:
    _, client = both
    lost = post(client, "a", draw="end")
    assert (lost.status_code, kind(lost)) == (500, "Lost")
    assert spent(ledger) == 1
    assert post(client, "a").status_code == 201
    assert post(client, "a").headers["idempotency-replayed"] == "true"
    assert spent(ledger) == 2
    assert "dpveil_releases_lost_total 1.0" in client.get("/metrics").text
    ledger.check()


def test_what_was_forgotten_is_not_drawn_again_for_one_payment(both: Any, ledger: Any) -> None:
    _, client = both
    made = post(client, "a").json()
    assert client.delete(f"/v1/releases/{made['id']}").status_code == 204
    gone = post(client, "a")
    assert (gone.status_code, kind(gone)) == (410, "Gone")
    assert spent(ledger) == 1


def test_the_ledger_knows_every_file_that_is_shown(both: Any, ledger: Any) -> None:
    sha256 = post(both[1], "a").json()["certificate"]["output"]["sha256"]
    assert [paid.subject for paid in ledger.paid_for(sha256)] == ["album"]


@pytest.mark.parametrize("told", [False, True])
def test_what_a_crash_left_is_shown_if_it_was_paid_for(ledger: Any, tmp_path: Path, told: bool) -> None:
    """The server ends after it kept a release: before, or after, the ledger was told of it."""
    results = tmp_path / "results.db"
    with service(fake=True, ledger=ledger, results=results) as (made, client):
        stored = made.jobs.budget.stored

        def ends(payment: Any, sha256: str) -> None:
            if told:
                stored(payment, sha256)
            raise RuntimeError

        async def nothing(*_: Any) -> None:
            """Leave all as a killed process does."""

        made.jobs.budget.stored, made.jobs._note_failure = ends, nothing
        made.jobs.sweep = nothing  # else it notes that the release failed, as after ten seconds under load
        answer = post(client, "a")
        rows = made.jobs.store._base.execute("SELECT state FROM results").fetchall()
        assert rows == [(KEPT,)]
        assert answer.status_code == 202
    with (
        Ledger(f"sqlite:///{tmp_path}/budget.db") as again,
        service(fake=True, ledger=again, results=results) as (_, client),
    ):
        found = post(client, "a")
        assert found.status_code == 201
        assert found.headers.get("idempotency-replayed") == ("true" if told else None)
        assert spent(again) == (1 if told else 2)
        assert len(again.paid_for(found.json()["certificate"]["output"]["sha256"])) == 1
        again.check()


def test_stopping_cancels_what_is_not_paid_for_and_finishes_the_rest(ledger: Any, tmp_path: Path) -> None:
    results = tmp_path / "results.db"
    with service(fake=True, ledger=ledger, results=results, workers=2) as (made, client):
        headers = {"Prefer": "respond-async"}

        def begin(key: str, **settings: Any) -> str:
            files = upload(b"x", {**release(), "subject": "album", **settings})
            answer = client.post("/v1/releases", files=files, headers={**headers, "Idempotency-Key": key})
            return str(answer.json()["id"])

        paid, unpaid = begin("paid", draw="doze"), begin("unpaid", plan="sleep")
        while spent(ledger) == 0:
            time.sleep(0.02)
        assert set(made.jobs._jobs) == {paid, unpaid}
    with (
        Ledger(f"sqlite:///{tmp_path}/budget.db") as again,
        service(fake=True, ledger=again, results=results) as (_, client),
    ):
        assert client.get(f"/v1/jobs/{paid}").json()["status"] == "done"
        told = client.get(f"/v1/jobs/{unpaid}").json()
        assert told["problem"]["title"] == "the service stops, and this was not paid for yet"
        assert spent(again) == 1


def test_a_ledger_that_cannot_be_used_stops_every_draw(both: Any, ledger: Any) -> None:
    ledger.files[0].rename(ledger.files[0].with_suffix(".away"))
    ledger.files[0].write_bytes(b"another file")
    answer = post(both[1], "a")
    assert (answer.status_code, kind(answer)) == (503, "LedgerError")


FULL = "CREATE TEMP TRIGGER full BEFORE INSERT ON images BEGIN SELECT RAISE(FAIL, 'full'); END"
"""No image can be written, as on a full disk."""


def test_a_full_disk_is_noticed_before_anything_is_paid(
    ledger: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpveil.service import store

    def full(folder: Path) -> Any:
        return SimpleNamespace(free=0)

    with service(fake=True, ledger=ledger, results=tmp_path / "results.db") as (made, client):
        with monkeypatch.context() as patch:
            patch.setattr(store.shutil, "disk_usage", full)
            for _ in range(3):
                answer = post(client, "a")
                assert (answer.status_code, kind(answer)) == (503, "NotKept")
                assert answer.headers["retry-after"] == "60"
        assert spent(ledger) == 0
        assert made.jobs.store._room == 0
        assert post(client, "a").status_code == 201


def test_after_a_release_that_could_not_be_kept_none_is_paid_before_a_write_succeeds(
    ledger: Any, tmp_path: Path
) -> None:
    with service(fake=True, ledger=ledger, results=tmp_path / "results.db") as (made, client):
        base = made.jobs.store._base
        base.execute(FULL)
        lost = post(client, "a")
        assert (lost.status_code, kind(lost)) == (500, "Lost")
        assert "as it could not be written to the results: nothing was shown" in lost.json()["title"]
        for key in ("a", "a", "b"):
            assert kind(post(client, key)) == "NotKept"
        assert spent(ledger) == 1
        base.execute("DROP TRIGGER full")
        assert post(client, "a").status_code == 201
        assert spent(ledger) == 2


def test_what_cannot_be_paid_is_not_held(both: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise LedgerError("the ledger is locked")

    with monkeypatch.context() as patch:
        patch.setattr("dpveil.ledger.transaction.Tables.debit", fails)
        answer = post(both[1], "a")
    assert (answer.status_code, answer.json()["title"]) == (503, "the ledger is locked")
    assert answer.headers["retry-after"] == "60"
    assert ledger.show("album").reserved.cost.epsilon == spent(ledger) == 0


def test_results_are_not_shown_without_the_ledger_that_paid(ledger: Any, tmp_path: Path) -> None:
    results = tmp_path / "results.db"
    with service(fake=True, ledger=ledger, results=results) as (_, client):
        assert post(client, "a").status_code == 201
    with pytest.raises(OutputError, match="another ledger, or without one"), service(results=results):
        pass


def test_a_photo_is_released_with_the_same_regions_alone(both: Any, ledger: Any) -> None:
    """The service has no exception, and does not name one."""
    made, client = both
    assert post(client, "a").status_code == 201
    for subject in ("album", "other"):
        other = post(
            client, f"b-{subject}", subject=subject, covered={"photo": "01" * 32, "pixels": "03" * 32}
        )
        assert (other.status_code, kind(other)) == (403, "RegionsDiffer")
        assert "released with other regions before" in other.json()["title"]
        assert "other_regions" not in other.text
    assert post(client, "c", covered={"photo": "04" * 32, "pixels": "03" * 32}).status_code == 201
    assert (spent(ledger), spent(ledger, "other")) == (2, 0)
    assert ledger.show("album").reserved.cost.epsilon == 0
    assert made.jobs.store._room == 0


@pytest.mark.parametrize("covered", [None, {}, [], "x", 5, {"photo": "01" * 32}, {"photo": 1, "pixels": 2}])
def test_a_worker_that_does_not_say_what_is_covered_gets_nothing_paid(
    both: Any, ledger: Any, covered: Any
) -> None:
    answer = post(both[1], "a", covered=covered)
    assert (answer.status_code, kind(answer)) == (422, "WorkerEnded")
    assert (spent(ledger), ledger.show("album").reserved.cost.epsilon) == (0, 0)


# What answers say of costs: what a release was paid, what a plan would cost, and what is left of whom.


@pytest.fixture
def priced_ledger(tmp_path: Path) -> Iterator[Any]:
    """A studio with ε 9, in which an album has 3; and a zCDP limit."""
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as priced_ledger:
        priced_ledger.set_limit("studio", Limit(kind="pure", epsilon=9))
        priced_ledger.set_limit("studio/album", Limit(kind="pure", epsilon=3))
        priced_ledger.set_limit("other", Limit(kind="zcdp", rho="0.6"))
        yield priced_ledger


@pytest.fixture
def client(priced_ledger: Any) -> Iterator[httpx.Client]:
    """A client of a service whose worker releases for ε = 1."""
    with service(fake=True, ledger=priced_ledger) as (_, client):
        yield client


def post_for(
    client: httpx.Client, key: str | None = None, subject: str = "studio/album", **headers: str
) -> Any:
    sent = {**headers, **({} if key is None else {"Idempotency-Key": key})}
    files = upload(b"x", release(), subject=subject)
    return client.post("/v1/releases", files=files, headers=sent)


def left(told: dict[str, Any]) -> dict[str, Any]:
    return {limit["subject"]: limit["left"] for limit in told["left"]["limits"]}


def test_a_release_says_what_was_paid_and_what_is_left(client: Any) -> None:
    told = post_for(client).json()
    assert told["paid"] == {
        "subject": "studio/album",
        "epsilon": 1,
        "delta": 0,
        "rho": 0,
        "relation": "any-image",
    }
    limit = {"relation": None, "exceeded": {}, "kind": "pure"}
    assert told["left"] == {
        "limits": [
            {"subject": "studio", "epsilon": 9, "left": 8, **limit},
            {"subject": "studio/album", "epsilon": 3, "left": 2, **limit},
        ],
        "complete": True,
    }
    PaidRelease.model_validate(told, strict=True)
    zcdp = post_for(client, subject="other").json()
    assert left(zcdp) == {"other": 0.1}, "a pure release counts as ε²/2 there"
    assert client.get(f"/v1/releases/{told['id']}").json() == {
        name: value for name, value in told.items() if name not in ("paid", "left")
    }


def test_a_retry_after_a_loss_is_told_what_was_paid_for_what_it_gets(client: Any, priced_ledger: Any) -> None:
    """The worker ends while it draws: that debit bought nothing, and is not the one that is told of."""
    files = upload(b"x", release(), subject="studio/album", draw="end")
    lost = client.post("/v1/releases", files=files, headers={"Idempotency-Key": "a"})
    assert lost.status_code == 500
    assert "paid" not in lost.json()
    found = post_for(client, "a").json()
    assert (found["paid"]["epsilon"], left(found)["studio/album"]) == (1, 1)
    assert priced_ledger.paid("studio/album", "local\0a").draw == 2


def test_a_ledger_that_cannot_be_read_takes_nobody_the_release(
    client: Any, priced_ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise LedgerError("the ledger is locked")

    for name in ("show", "paid"):
        with monkeypatch.context() as patch:
            patch.setattr(priced_ledger, name, fails)
            answer = post_for(client)
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
    priced_ledger: Any, tmp_path: Path, subjects: tuple[str, ...], own: str, seen: set[str], complete: bool
) -> None:
    """Neither from releases nor from plans, and whether a plan fits is said of its own limits alone."""
    keys, key = Keys().new("shop", subjects, 1000)
    keys.write(tmp_path / "keys.json")
    headers = {"Authorization": f"Bearer {key}"}
    with service(ledger=priced_ledger, keys=tmp_path / "keys.json") as (_, client):

        def ask(path: str, epsilon: Any = "0.5") -> Any:
            wanted = {"method": "fill", "regions": "8,8,32,24"} if not epsilon else settings(epsilon)
            files = upload(photo(), wanted, subject=own)
            return client.post(path, files=files, headers=headers).json()

        made, before = ask("/v1/releases"), ask("/v1/plan", "2.25")
        for told in (made, before):
            assert set(left(told)) == seen
            assert told["left"]["complete"] == complete
        assert before["fits"] == (own != "other"), "ρ 2.53"
        spend(priced_ledger, "studio", "8.25")  # by another, of a budget above
        after = ask("/v1/plan", "2.25")
        hidden = own != "other" and "studio" not in subjects
        assert (after == before) == (hidden or own == "other")
        assert after["fits"] == hidden


def settings(epsilon: Any) -> dict[str, Any]:
    return {"method": "dp-pix", "epsilon": epsilon, "block": 8, "regions": "8,8,32,24"}


def spend(priced_ledger: Any, subject: str, epsilon: Any) -> None:
    promise = Guarantee(kind="pure", epsilon=epsilon, relation=Relation("any-image"), scope=Scope("a photo"))
    priced_ledger.reserve(subject, promise, f"by another, of {subject}").commit()


def test_a_plan_says_what_it_would_cost_and_whether_that_fits(priced_ledger: Any) -> None:
    with service(ledger=priced_ledger) as (_, client):

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
        assert Budget(priced_ledger).account(None, None, "key") == {}
        unlimited = plan(settings(3), subject="nobody").json()
        assert (unlimited["left"], unlimited["fits"]) == ({"limits": [], "complete": True}, False)
        faceless = {"method": "fill", "regions": "faces", "if_none": "copy"}
        copy = plan(faceless, subject="studio/album").json()
        assert (copy["cost"], copy["fits"]) == (None, False), "nobody pays for a copy"
        assert plan(settings(3), subject="a//b").status_code == 422
        assert priced_ledger.show("studio").spent.cost.epsilon == 0
        shown = client.post("/page/plan", files=upload(photo(), settings(3), subject="studio/album"))
        assert "cost" not in shown.json()["plan"], "the page asks for what is left when it changes"


def test_without_a_ledger_nothing_is_said_of_costs() -> None:
    with service(fake=True) as (_, client):
        made = client.post("/v1/releases", files=upload(b"x", release())).json()
        planned = client.post("/v1/plan", files=upload(b"x", SETTINGS)).json()
    assert not {"paid", "left"} & set(made)
    assert not {"cost", "left", "fits"} & set(planned)


def test_a_real_worker_says_which_pixels_of_which_photo_are_covered(ledger: Any) -> None:
    contents, settings = photo(), {"method": "fill", "subject": "album", "regions": "8,8,32,24"}
    planned = dpveil.plan(contents, "fill", regions="8,8,32,24")
    planned.release(ledger=ledger, subject="other")
    with service(ledger=ledger) as (_, client):

        def status(**changed: Any) -> int:
            return client.post("/v1/releases", files=upload(contents, {**settings, **changed})).status_code

        assert status() == 201
        assert status(regions=["8,8,32,12", "8,20,32,12"]) == 201
        assert status(regions="8,8,32,23") == 403
    assert ledger.check().debits == 3

"""Jobs: what is cancelled or fails is noted, whatever else happens, and no key stays at work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
import pytest
import service_client
from service_client import SETTINGS, photo, release, service, upload

from dpveil.ledger import Ledger, Limit
from dpveil.service import log
from dpveil.service.jobs import Jobs
from dpveil.service.limits import Limits


def test_a_sweep_leaves_what_is_being_made_and_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpveil.service import run

    monkeypatch.setattr(run, "SWEEP_SECONDS", 0.001)
    with service(fake=True) as (_, client):
        for _ in range(10):
            assert client.post("/v1/releases", files=upload(b"x", release())).status_code == 201
        for doze in ("plan", "draw"):
            files = upload(b"x", release(**{doze: "doze"}))
            job = client.post("/v1/releases", files=files, headers={"Prefer": "respond-async"}).json()[
                "job_url"
            ]
            seen = []
            while (told := client.get(job).json()["status"]) == "working" or not seen:
                seen.append(told)
            assert {*seen, told} == {"working", "done"}


def test_a_photo_without_settings_gets_the_defaults() -> None:
    with service(fake=True) as (_, client):
        assert client.post("/v1/plan", files={"photo": b"x"}).json()["planned"] == {}


def slowed(jobs: Jobs) -> threading.Event:
    """Let releases be kept once the event is set, or after 20 s."""
    free, payments = threading.Event(), jobs.payments

    async def slowly(do: Any, *arguments: Any) -> Any:
        while do == jobs.budget.stored and not free.is_set():
            await asyncio.sleep(0.01)
        return await payments(do, *arguments)

    jobs.payments = slowly  # type: ignore[method-assign]
    return free


def test_a_worker_is_free_once_it_has_drawn() -> None:
    """While one release is kept, another is drawn; then the worker waits, for memory is finite."""
    with service(fake=True) as (made, client):
        free = slowed(made.jobs)
        planned = upload(b"x", {})
        later = {"Prefer": "respond-async"}
        jobs = [client.post("/v1/releases", files=upload(b"x", release()), headers=later).json()]
        assert client.post("/v1/plan", files=planned).status_code == 200
        assert client.get(jobs[0]["job_url"]).json()["status"] == "working"
        jobs.append(client.post("/v1/releases", files=upload(b"x", release()), headers=later).json())
        with ThreadPoolExecutor(1) as thread:
            plan = thread.submit(client.post, "/v1/plan", files=planned)
            waits = wait([plan], 0.5).not_done
            free.set()
            assert waits
            assert plan.result().status_code == 200
        for job in jobs:
            while client.get(job["job_url"]).json()["status"] == "working":
                time.sleep(0.02)
            assert client.get(job["job_url"]).json()["status"] == "done"


# When workers draw: once they are told to, after it was paid for.


LATER = {"Prefer": "respond-async"}
ROOM = 40_000


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger')}/budget.db", create=True) as ledger:
        for subject in ("album", "other"):
            ledger.set_limit(subject, Limit(kind="pure", epsilon=45))
        yield ledger


@pytest.fixture(scope="module", params=["paid", "unpaid"])
def both(request: pytest.FixtureRequest, ledger: Ledger) -> Iterator[tuple[Any, httpx.Client]]:
    limits = Limits(results_bytes=ROOM, draw_seconds=20)
    with service(limits, fake=True, ledger=ledger if request.param == "paid" else None) as both:
        yield both


def post(both: Any, headers: Any = None, **settings: Any) -> httpx.Response:
    payer = {} if both[0].jobs.budget.ledger is None else {"subject": "album"}
    return both[1].post("/v1/releases", files=upload(b"x", release(**payer, **settings)), headers=headers)


def replaced(both: Any) -> int:
    """Return how many workers were replaced, once one waits."""
    workers, end = both[0].jobs.workers, time.monotonic() + 60
    while workers.busy:
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(workers.replaced)


@pytest.mark.parametrize("draw", [None, "end"])
def test_without_room_nothing_is_kept_and_the_worker_goes_on(both: Any, draw: str | None) -> None:
    before, store = replaced(both), both[0].jobs.store
    made = post(both).json()
    refused = post(both, room=ROOM, draw=draw)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:dpveil:error:Busy")
    assert replaced(both) == before
    assert (store._room, store.unfinished_ids()) == (0, [])
    assert both[1].delete(f"/v1/releases/{made['id']}").status_code == 204
    assert post(both).status_code == 201
    store._forget("1", [])


def test_a_job_that_is_deleted_while_it_is_planned_leaves_nothing(both: Any, tmp_path: Path) -> None:
    before, store = replaced(both), both[0].jobs.store
    job = post(both, LATER, plan=f"until {tmp_path / 'go'}", draw="end").json()["job_url"]
    while not both[0].jobs.workers.busy:
        time.sleep(0.01)
    assert both[1].delete(job).status_code == 204
    (tmp_path / "go").touch()
    assert replaced(both) == before
    assert both[1].get(job).status_code == 404
    assert (store.used, store._room, store.unfinished_ids()) == (0, 0, [])


def test_a_worker_that_ends_between_its_answers_is_replaced(both: Any, monkeypatch: Any) -> None:
    logged: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(log, "write", lambda event, **told: logged.append((event, told)))
    before, store = replaced(both), both[0].jobs.store
    lost = "Lost" if both[0].jobs.budget.ledger else "WorkerEnded"
    assert post(both, draw="end").json()["type"] == f"urn:dpveil:error:{lost}"
    assert [told["kind"] for event, told in logged if event == "failed"] == [lost]
    assert replaced(both) == before + 1
    assert (store._room, store.unfinished_ids()) == (0, [])
    assert post(both).status_code == 201
    store._forget("1", [])


def test_with_a_ledger_no_bit_is_drawn_before_it_is_paid_for(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(service_client, "REAL", "noting_worker:serve")
    draws: list[str] = []
    with service(ledger=ledger) as (made, client):
        pay = made.jobs.budget.pay

        def paying(*arguments: Any) -> Any:
            time.sleep(0.5)  # a worker that does not wait would draw meanwhile
            draws.append((tmp_path / "draws").read_text())
            return pay(*arguments)

        made.jobs.budget.pay = paying
        files = upload(photo(), {**SETTINGS, "subject": "other"})
        assert [client.post("/v1/releases", files=files).status_code for _ in range(3)] == [201, 201, 403]
        assert replaced((made, client)) == 0
    assert draws == ["", "draw\n", "draw\n" * 2]
    assert (tmp_path / "draws").read_text() == "draw\n" * 2

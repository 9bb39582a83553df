"""When workers draw: once they are told that it is paid for, or without a ledger as soon as it is planned."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import service_client
from service_client import SETTINGS, photo, release, service, upload

from dpveil.ledger import Ledger, Limit
from dpveil.processes import Channel
from dpveil.service import worker
from dpveil.service.budget import Budget
from dpveil.service.jobs import Jobs
from dpveil.service.log import Metrics
from dpveil.service.settings import Limits
from dpveil.service.store import MEMORY, Store
from dpveil.service.workers import Pool

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
    pool, end = both[0].jobs.pool, time.monotonic() + 60
    while pool.busy or pool._idle.empty():
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(pool.replaced)


@pytest.mark.parametrize("draw", [None, "end"])
def test_without_room_nothing_is_kept_and_the_worker_goes_on(both: Any, draw: str | None) -> None:
    """Even if the worker ends over what it draws unbidden, the answer tells why there is none."""
    before, store = replaced(both), both[0].jobs.store
    made = post(both).json()
    refused = post(both, room=ROOM, draw=draw)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:dpveil:error:Busy")
    ended = bool(draw) and both[0].jobs.budget.ledger is None
    assert replaced(both) == before + ended
    assert (store._room, store.unfinished()) == (0, [])
    assert both[1].delete(f"/v1/releases/{made['id']}").status_code == 204
    assert post(both).status_code == 201
    store._forget("1", [])


def test_a_job_that_is_deleted_while_it_is_planned_leaves_nothing(both: Any, tmp_path: Path) -> None:
    before, store = replaced(both), both[0].jobs.store
    draw = "end" if both[0].jobs.budget.ledger else None  # which would be seen
    job = post(both, LATER, plan=f"until {tmp_path / 'go'}", draw=draw).json()["job_url"]
    while not both[0].jobs.pool.busy:
        time.sleep(0.01)
    assert both[1].delete(job).status_code == 204
    (tmp_path / "go").touch()
    assert replaced(both) == before
    assert both[1].get(job).status_code == 404
    assert (store.used, store._room, store.unfinished()) == (0, 0, [])


def test_a_worker_that_ends_between_its_answers_is_replaced(both: Any) -> None:
    before, store = replaced(both), both[0].jobs.store
    lost = "Lost" if both[0].jobs.budget.ledger else "Busy"
    assert post(both, draw="end").json()["type"] == f"urn:dpveil:error:{lost}"
    assert replaced(both) == before + 1
    assert (store._room, store.unfinished()) == (0, [])
    assert post(both).status_code == 201
    store._forget("1", [])


@pytest.mark.parametrize(
    ("paid", "word", "answers"),
    [
        (False, None, ["plan", "release", "done"]),
        (True, None, ["plan", "done"]),
        (True, "drop", ["plan", "done"]),
        (True, "draw", ["plan", "release", "done"]),
    ],
)
def test_a_worker_waits_for_a_word_only_where_a_ledger_pays(
    paid: bool, word: str | None, answers: list[str]
) -> None:
    told = {"do": "release", "settings": SETTINGS, "pixels": 10**6, "paid": paid}
    heard, said = io.BytesIO(), io.BytesIO()
    Channel(heard, heard).send(told, photo())
    if word:
        Channel(heard, heard).send({"do": word})
    heard.seek(0)
    worker.answer(Channel(heard, said))
    said.seek(0)
    kinds = {"room": "plan", "certificate": "release", "done": "done"}
    got = []
    while (message := Channel(said, said).receive()) is not None:
        got.append(next(kinds[name] for name in kinds if name in message[0]))
    assert got == answers


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


def test_room_that_is_made_for_one_release_is_made_again_for_the_next() -> None:
    """Both find none, and what the first one frees is enough for one of them."""

    async def both_wait() -> list[Any]:
        limits = Limits(results_bytes=2000)
        jobs = Jobs(Pool(1, limits), Store(MEMORY, limits), Budget(None), limits, Metrics())
        for _ in range(2):
            id_ = jobs.store.begin("me", None, b"")[0].id
            made = {"certificate": "", "notes": "[]", "format": "png", "sha256": ""}
            jobs.store.keep(id_, made, bytes(998))
            jobs.store.show(id_)
            jobs.store.fetched(id_)
        given = await asyncio.gather(*(jobs._room(f"{n}", 1000) for n in range(3)), return_exceptions=True)
        jobs.end()
        return given

    *given, refused = asyncio.run(both_wait())
    assert given == [None, None]
    assert "leave no room" in str(refused)

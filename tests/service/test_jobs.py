"""Jobs: what is cancelled or fails is noted, whatever else happens, and no key stays at work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from typing import Any

import pytest
from service_client import release, service, upload

from dpveil.service.budget import Budget
from dpveil.service.guard import Held, Share
from dpveil.service.jobs import Jobs, Order
from dpveil.service.keys import LOCAL
from dpveil.service.log import Metrics
from dpveil.service.settings import Limits
from dpveil.service.store import MEMORY, Store


class Occupied:
    """A pool whose workers are all at work."""

    count = 1

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Any]:
        """Wait in line."""
        await asyncio.Event().wait()
        yield None


def test_a_job_that_is_cancelled_repeatedly_is_forgotten() -> None:
    """The second DELETE arrives while the first waits for the thread of the results."""

    async def cancels() -> None:
        limits, free = Limits(), threading.Event()
        pool: Any = Occupied()
        jobs = Jobs(pool, Store(MEMORY, limits), Budget(None), limits, Metrics())
        order = Order(b"x", {}, None, LOCAL, "key", b"digest", 0.0)
        made, new = await jobs.begin(order, Share(Held(limits)))
        await asyncio.sleep(0)
        jobs._results.submit(free.wait)
        deletes = []
        for _ in range(3):
            deletes.append(asyncio.create_task(jobs.cancel(LOCAL, made.id)))
            for _ in range(5):
                await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*deletes)
        assert new
        assert await jobs.results(jobs.store.find, LOCAL.number, made.id) is None
        assert not jobs._jobs
        again = await jobs.begin(order, Share(Held(limits)))
        assert again[1]
        await jobs.close()
        jobs.end()

    asyncio.run(cancels())


@pytest.mark.parametrize("kept", [False, True])
def test_what_could_not_be_noted_is_noted_later(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a failure is told and not written; its key is free again once there is room."""
    from dpveil.service import run

    monkeypatch.setattr(run, "SWEEP_SECONDS", 0.05)
    full = (
        "CREATE TEMP TRIGGER full BEFORE UPDATE OF problem ON results BEGIN SELECT RAISE(FAIL, 'full'); END"
    )
    with service(fake=True) as (made, client):

        def post(**settings: Any) -> Any:
            files = upload(b"x", {**release(), **settings})
            return client.post("/v1/releases", files=files, headers={"Idempotency-Key": "a"})

        base, stored = made.jobs.store._base, made.jobs.budget.stored
        base.execute(full)
        if kept:
            made.jobs.budget.stored = None  # calling it fails
        sent: dict[str, Any] = {} if kept else {"plan": "memory"}
        first = post(**sent)
        made.jobs.budget.stored = stored
        assert first.status_code == (500 if kept else 422)
        time.sleep(0.3)  # sweeps fail, too
        assert post(**sent).json() == first.json()
        assert made.jobs.store.unfinished()
        base.execute("DROP TRIGGER full")
        while made.jobs._unnoted:
            time.sleep(0.02)
        assert made.jobs.store.unfinished() == []
        assert post().status_code == 201


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


@pytest.mark.parametrize("first", [True, False])
def test_a_failed_job_is_there_for_everybody_who_was_told_of_it(first: bool) -> None:
    """A client that waits, before or after one that does not, does not delete its job."""
    with service(fake=True) as (made, client):
        files = upload(b"x", release(plan="memory"))
        slow = upload(b"x", {"plan": "doze"})

        def post(wait: bool) -> Any:
            headers = {"Idempotency-Key": "a"} | ({} if wait else {"Prefer": "respond-async"})
            return client.post("/v1/releases", files=files, headers=headers)

        occupied = threading.Thread(target=lambda: client.post("/v1/releases", files=slow))
        occupied.start()
        while not made.jobs.pool.busy:
            time.sleep(0.01)
        told: list[Any] = []
        waits = threading.Thread(target=lambda: told.append(post(True)))
        if first:
            waits.start()
            while len(made.jobs._jobs) < 2:
                time.sleep(0.01)
        job = post(False)
        assert job.status_code == 202
        if not first:
            waits.start()
        for thread in (waits, occupied):
            thread.join()
        assert told[0].json()["type"] == "urn:dpveil:error:WorkerEnded"
        assert client.get(job.json()["job_url"]).json()["problem"] == told[0].json()


def test_a_failure_that_one_request_was_told_is_not_kept() -> None:
    with service(fake=True) as (made, client):
        answer = client.post("/v1/releases", files=upload(b"x", {"plan": "memory"}))
        assert answer.status_code == 422
        assert made.jobs.store.used == 0


def test_a_photo_without_settings_gets_the_defaults() -> None:
    with service(fake=True) as (_, client):
        assert client.post("/v1/plan", files={"photo": b"x"}).json()["planned"] == {}


def slowed(jobs: Jobs) -> threading.Event:
    """Let releases be checked once the event is set, or after 20 s."""
    free, checked, end = threading.Event(), jobs._checked, time.monotonic() + 20

    async def slowly(*arguments: Any) -> Any:
        while not free.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.01)
        return await checked(*arguments)

    jobs._checked = slowly  # type: ignore[method-assign]
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

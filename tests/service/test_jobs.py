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

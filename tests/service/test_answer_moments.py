"""Answers about photos are given at fixed moments, by a clock that the tests hold."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service_client import release, service, upload

from dpveil.service.jobs import Moments
from dpveil.service.settings import Limits

ASYNC = {"Prefer": "respond-async"}


@pytest.mark.parametrize(
    ("every", "passed", "waits"),
    [(5, 0, [5]), (5, 3, [2]), (5, 5, [0]), (5, 5.5, [4.5]), (5, 14, [1]), (0.5, 0.75, [0.25]), (0, 3, [])],
)
def test_the_next_multiple_is_waited_for(every: float, passed: float, waits: list[float]) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    asyncio.run(Moments(every, lambda: 100 + passed, sleep).due(100))
    assert waited == waits


class Clock:
    """Ten seconds pass between any two looks at it, and who sleeps is woken by the test."""

    def __init__(self) -> None:
        self.time, self.asked = 0.0, []  # type: ignore[var-annotated]
        self.woken = threading.Event()

    def now(self) -> float:
        self.time += 10
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        while not self.woken.is_set():
            await asyncio.sleep(0.005)

    def wait(self, sleepers: int) -> None:
        """Wait until so many sleep, or have slept; for half a minute or more."""
        for _ in range(6000):
            if len(self.asked) >= sleepers:
                return
            time.sleep(0.005)
        raise AssertionError("nobody waits for the moment")


@pytest.fixture
def timed() -> Iterator[Any]:
    """A service whose answers are given every 7 s, its client and its clock."""
    limits, clock = Limits(answer_after=7), Clock()
    with service(limits, fake=True) as (made, client):
        made.jobs.moments = Moments(limits.answer_after, clock.now, clock.sleep)
        yield made, client, clock
        clock.woken.set()


@pytest.mark.parametrize("settings", [{}, {"draw": "end"}, {"plan": "end"}])
def test_answer_after(timed: Any, settings: dict[str, Any]) -> None:
    """Before its moment a job says nothing of what became of it, in any address; then all say it."""
    made, client, clock = timed
    answer = client.post("/v1/releases", files=upload(b"x", release(**settings)), headers=ASYNC)
    job, where = answer.json()["job_url"], f"/v1/releases/{answer.json()['id']}"
    clock.wait(1)
    assert not made.jobs.pool.busy
    stored = made.jobs.store.find("local", answer.json()["id"])
    assert stored.state == ("failed" if settings else "done")
    told = client.get(job).json()
    assert (told["status"], told["release_url"], told["problem"]) == ("working", None, None)
    for address in (where, f"{where}/image", f"{where}/certificate"):
        assert client.get(address).status_code == 404
    clock.woken.set()
    while (told := client.get(job).json())["status"] == "working":
        time.sleep(0.005)
    assert told["status"] == stored.state
    assert client.get(where).status_code == (404 if settings else 200)
    assert clock.asked == [4]  # 10 s have passed: the next multiple of 7 s is 14


@pytest.mark.parametrize("settings", [{}, {"plan": "memory"}])
@pytest.mark.parametrize("address", ["/v1/plan", "/page/plan", "/v1/releases"])
def test_whoever_waits_is_answered_then(timed: Any, address: str, settings: dict[str, Any]) -> None:
    _, client, clock = timed
    answers: list[Any] = []
    files = upload(b"x", release(**settings))
    asks = threading.Thread(target=lambda: answers.append(client.post(address, files=files)))
    asks.start()
    clock.wait(1)
    asks.join(0.1)
    early = [*answers]
    clock.woken.set()
    asks.join()
    assert not early
    assert answers[0].status_code == (422 if settings else 201 if address == "/v1/releases" else 200)
    assert clock.asked == [4]


def test_what_a_request_says_is_refused_at_once(timed: Any) -> None:
    _, client, clock = timed
    assert client.post("/v1/plan", files=upload(b"x", "{")).status_code == 422
    assert client.post("/v1/releases", files={"settings": (None, "{}")}).status_code == 400
    assert clock.asked == []


def test_a_job_that_waits_for_its_moment_is_deleted_if_nothing_was_paid(timed: Any) -> None:
    """It counts as under way until then: else that would tell that it was planned."""
    made, client, clock = timed
    failed, paid = (
        client.post("/v1/releases", files=upload(b"x", release(**settings)), headers=ASYNC).json()["job_url"]
        for settings in ({"plan": "end"}, {})
    )
    clock.wait(2)
    assert [client.delete(job).status_code for job in (failed, paid)] == [204, 409]
    assert client.get(failed).status_code == 404
    assert len(made.jobs._jobs) == 2
    clock.woken.set()
    while made.jobs._jobs:
        time.sleep(0.005)
    assert client.delete(paid).status_code == 204


def test_a_job_that_is_deleted_while_it_is_planned_ends_at_its_moment(timed: Any, tmp_path: Path) -> None:
    """What its key may have under way would tell else how long planning took."""
    made, client, clock = timed
    files = upload(b"x", release(plan=f"until {tmp_path / 'go'}"))
    job = client.post("/v1/releases", files=files, headers=ASYNC).json()["job_url"]
    while not made.jobs.pool.busy:
        time.sleep(0.005)
    assert client.delete(job).status_code == 204
    (tmp_path / "go").touch()
    clock.wait(1)
    assert (len(made.jobs._jobs), made.jobs.pool.busy, made.jobs.pool.replaced) == (1, 0, 0)
    clock.woken.set()
    while made.jobs._jobs:
        time.sleep(0.005)


@pytest.mark.parametrize("address", ["/v1/plan", "/page/plan"])
def test_a_plan_is_under_way_until_its_moment(timed: Any, address: str) -> None:
    """Else what its key may have under way would tell how long planning took; its photo is let go of."""
    made, client, clock = timed
    files = upload(b"x" * 1000, release())
    asks = threading.Thread(target=client.post, args=(address,), kwargs={"files": files})
    asks.start()
    clock.wait(1)
    assert made.jobs.turns._work["local"].count == 1
    assert made.jobs.pool.busy == 0
    assert "dpveil_upload_bytes 0.0" in client.get("/metrics").text
    clock.woken.set()
    asks.join()
    assert not made.jobs.turns._work

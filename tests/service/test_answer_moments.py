"""Answers about photos are given at fixed moments, by a clock that the tests hold."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from service_client import release, service, upload

from dpveil.service.jobs import Moments
from dpveil.service.settings import Limits

ASYNC = {"Prefer": "respond-async"}


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

"""A worker that was taken over costs the request that it answers, and tells the next one nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from service_client import release, service, upload

from dpveil.processes import Channel
from dpveil.service.settings import MIB, Limits

ENDED = "urn:dpveil:error:WorkerEnded"


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Any, httpx.Client]]:
    with service(Limits(pixels=1000, results_bytes=60 * MIB), fake=True) as both:
        yield both


def post(both: Any, do: str, **settings: Any) -> httpx.Response:
    answer: httpx.Response = both[1].post(f"/v1/{do}", files=upload(b"x", release(**settings)))
    return answer


def planned(both: Any, name: str) -> Any:
    return post(both, "plan", method=name).json()["planned"]["method"]


def test_what_an_idle_worker_says_is_told_nobody(both: Any) -> None:
    """The next request has another worker, and its own answer."""
    pool = both[0].jobs.pool
    before = pool.replaced
    assert post(both, "plan", after="stale").status_code == 200
    time.sleep(0.2)
    assert planned(both, "mine") == "mine"
    assert pool.replaced == before + 1


def test_what_was_said_before_a_request_is_no_answer_to_it(
    both: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it arrives after the look at the pipe."""
    monkeypatch.setattr(Channel, "silent", True)
    assert post(both, "plan", after="stale").status_code == 200
    time.sleep(0.2)
    assert post(both, "plan").json()["type"] == ENDED
    assert planned(both, "mine") == "mine"


def test_a_plan_has_no_contents(both: Any) -> None:
    assert post(both, "plan", contents=1).json()["type"] == ENDED
    assert planned(both, "mine") == "mine"


@pytest.mark.parametrize("told", [10**9, -1, True, "9", None, 1.0])
def test_the_certificate_of_a_release_is_within_it(both: Any, told: Any) -> None:
    assert post(both, "releases", told={"certificate": told}).json()["type"] == ENDED
    assert post(both, "releases").status_code == 201


def test_a_release_is_not_longer_than_its_room(both: Any) -> None:
    assert post(both, "releases", room=100).json()["type"] == ENDED


def test_nobody_loses_results_for_room_that_no_release_needs(both: Any) -> None:
    made = post(both, "releases").json()
    assert both[1].get(made["image_url"]).status_code == 200
    assert post(both, "releases", room=1 << 40).status_code == 201
    assert both[1].get(made["image_url"]).status_code == 200

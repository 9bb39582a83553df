"""Jobs: what is cancelled or fails is noted, whatever else happens, and no key stays at work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import service_client
from service_client import SETTINGS, photo, release, service, several, upload

from dpveil.ledger import Ledger, Limit
from dpveil.service.budget import Budget
from dpveil.service.guard import Held, Share
from dpveil.service.jobs import Jobs, Moments, Order
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
    free, checked, end = threading.Event(), jobs._check, time.monotonic() + 20

    async def slowly(*arguments: Any) -> Any:
        while not free.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.01)
        return await checked(*arguments)

    jobs._check = slowly  # type: ignore[method-assign]
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


# Answers about photos are given at fixed moments, by a clock that the tests hold.


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


# When workers draw: once they are told that it is paid for, or without a ledger as soon as it is
# planned.


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
    assert (store._room, store.unfinished_ids()) == (0, [])
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
    assert (store.used, store._room, store.unfinished_ids()) == (0, 0, [])


def test_a_worker_that_ends_between_its_answers_is_replaced(both: Any) -> None:
    before, store = replaced(both), both[0].jobs.store
    lost = "Lost" if both[0].jobs.budget.ledger else "Busy"
    assert post(both, draw="end").json()["type"] == f"urn:dpveil:error:{lost}"
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


# Several photos in one request: each is a release of its own, is paid for by itself, and has its
# answer.


KEY = {"Idempotency-Key": "album"}


@pytest.fixture
def album_ledger(tmp_path: Path) -> Iterator[Any]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as album_ledger:
        album_ledger.set_limit("album", Limit(kind="pure", epsilon=3))
        yield album_ledger


@pytest.fixture
def paying_service(album_ledger: Any) -> Iterator[tuple[Any, httpx.Client]]:
    """A service with a fake worker that pays, and a client."""
    with service(fake=True, ledger=album_ledger) as paying_service:
        yield paying_service


def post_photos(client: httpx.Client, *photos: bytes, headers: Any = None, **settings: Any) -> Any:
    files = several(release(**{"subject": "album"} | settings), *photos)
    return client.post("/v1/releases", files=files, headers=headers)


def statuses(answer: Any) -> list[int]:
    return [entry["status"] for entry in answer.json()["photos"]]


def spent(album_ledger: Any) -> Any:
    return album_ledger.show("album").to_json()["spent"]["epsilon"]


def test_each_photo_has_its_release_in_their_order(client: Any) -> None:
    """And it is the release of that photo: what is not protected is the photo's."""
    photos = [photo(40 + 8 * number, 40, seed=number) for number in range(3)]
    answer = client.post("/v1/releases", files=several(SETTINGS, *photos))
    assert answer.status_code == 201, answer.text
    entries = answer.json()["photos"]
    assert [entry["status"] for entry in entries] == [201] * 3
    made = [entry["release"] for entry in entries]
    assert [told["certificate"]["output"]["width"] for told in made] == [40, 48, 56]
    assert len({told["id"] for told in made}) == 3
    for told in made:
        assert client.get(f"/v1/releases/{told['id']}").json() == told
        assert client.get(told["image_url"]).headers["content-type"] == "image/png"


def test_each_photo_pays_for_itself_until_the_limit(paying_service: Any, album_ledger: Any) -> None:
    """What the budget does not allow is refused; what was made before it stays."""
    answer = post_photos(paying_service[1], *[b"x"] * 5)
    assert answer.status_code == 200
    assert sorted(statuses(answer)) == [201] * 3 + [403] * 2
    refused = next(entry["problem"] for entry in answer.json()["photos"] if entry["status"] == 403)
    assert refused["title"] == "album has epsilon 0 left and this release costs 1"
    assert spent(album_ledger) == 3
    assert paying_service[0].jobs.store.find("local", answer.json()["photos"][0]["release"]["id"])
    none = post_photos(paying_service[1], b"x", b"y")
    assert none.status_code == 403
    assert none.headers["content-type"] == "application/problem+json"
    assert none.json()["title"] == refused["title"]
    assert statuses(none) == [403, 403]
    album_ledger.check()


def test_a_retry_pays_for_what_is_new_alone(paying_service: Any, album_ledger: Any) -> None:
    """Equal photos at two places are two releases; a photo that was exchanged is refused."""
    client = paying_service[1]
    first = post_photos(client, b"x", b"x", headers=KEY)
    assert (first.status_code, spent(album_ledger)) == (201, 2)
    ids = [entry["release"]["id"] for entry in first.json()["photos"]]
    assert len(set(ids)) == 2
    again = post_photos(client, b"x", b"x", headers=KEY)
    assert again.status_code == 201
    assert [entry["release"]["id"] for entry in again.json()["photos"]] == ids
    assert [entry.get("replayed") for entry in again.json()["photos"]] == [True, True]
    assert not any("replayed" in entry for entry in first.json()["photos"])
    exchanged = post_photos(client, b"x", b"y", headers=KEY)
    assert (exchanged.status_code, statuses(exchanged)) == (200, [201, 422])
    assert exchanged.json()["photos"][1]["problem"]["type"] == "urn:dpveil:error:KeyReused"
    assert post_photos(client, b"x", b"x", headers=KEY, more=1).status_code == 422
    assert spent(album_ledger) == 2
    longer = post_photos(client, b"x", b"x", b"z", headers=KEY)
    assert [entry.get("replayed") for entry in longer.json()["photos"]] == [True, True, None]
    assert spent(album_ledger) == 3
    alone = post_photos(client, b"x", headers=KEY)
    assert (alone.json()["id"], alone.headers["idempotency-replayed"]) == (ids[0], "true")
    assert spent(album_ledger) == 3


def test_what_takes_longer_is_a_job_for_each(paying_service: Any) -> None:
    answer = post_photos(paying_service[1], b"x", b"y", headers=ASYNC)
    assert (answer.status_code, statuses(answer)) == (202, [202, 202])
    for entry in answer.json()["photos"]:
        while (told := paying_service[1].get(entry["job"]["job_url"]).json())["status"] == "working":
            time.sleep(0.01)
        assert paying_service[1].get(told["release_url"]).status_code == 200


def test_plans_are_those_of_each_photo(client: Any) -> None:
    photos = [photo(seed=1), photo(96, 96, seed=2)]
    whole = {**SETTINGS, "regions": "whole"}
    answer = client.post("/v1/plan", files=several(whole, *photos))
    assert (answer.status_code, statuses(answer)) == (200, [200, 200])
    for entry, contents in zip(answer.json()["photos"], photos, strict=True):
        assert entry["plan"] == client.post("/v1/plan", files=upload(contents, whole)).json()
    mixed = client.post("/v1/plan", files=several(whole, b"no photo", photos[0]))
    assert (mixed.status_code, statuses(mixed)) == (200, [422, 200])
    none = client.post("/v1/plan", files=several(whole, b"no photo", b"nor this"))
    assert (none.status_code, none.json()["type"]) == (422, "urn:dpveil:error:PhotoError")
    titles = [none.json()["title"], *(entry["problem"]["title"] for entry in none.json()["photos"])]
    assert [title.partition(": ")[0] for title in titles] == [f"photo {n} of 2" for n in (1, 1, 2)]
    wrong = client.post("/v1/plan", files=several({**SETTINGS, "epsilon": -1}, *photos)).json()
    for problem in (wrong, *(entry["problem"] for entry in wrong["photos"])):
        assert (problem["title"], problem["about"]) == ("epsilon = -1 is not above 0", "settings")


def test_keys_of_photos_cannot_be_sent(paying_service: Any) -> None:
    post_photos(paying_service[1], b"x", b"x", headers=KEY)
    for key in ("album\\0", "album\x001", "album 1"):
        try:
            answer = post_photos(paying_service[1], b"x", headers={"Idempotency-Key": key})
        except httpx.LocalProtocolError:
            continue
        assert "idempotency-replayed" not in answer.headers

"""Every limit is reached, and what a worker may do wrong: the request fails, the service goes on."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_client import release, service, upload

from dpveil.cli import run
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter, OutputError
from dpveil.ledger import Ledger, Limit
from dpveil.service.guard import Rates, RequestLoad, UploadMemory
from dpveil.service.keys import KEY, LOCAL, Caller, Keys
from dpveil.service.limits import MOST_PARALLEL, PARALLEL, Limits
from dpveil.service.page.account import account_json, price_text, prices
from dpveil.service.problems import ServiceError

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def tight() -> Iterator[tuple[Any, httpx.Client]]:
    limits = Limits(
        body_seconds=0.3,
        plan_seconds=2,
        draw_seconds=2,
        answer_seconds=0.4,
        result_seconds=3,
        results_bytes=60_000,
        held_bytes=100_000,
        waiting=1,
        connections=12,
    )
    with service(limits, fake=True) as both:
        yield both


@pytest.fixture(scope="module")
def small() -> Iterator[httpx.Client]:
    """A client of a service that takes small requests only."""
    with service(Limits(body_bytes=20_000, settings_bytes=12_000), fake=True) as (_, client):
        yield client


@pytest.fixture
def free(tight: Any) -> httpx.Client:
    """The client of the tight service once its worker waits."""
    made, client = tight
    while made.jobs.workers.busy:
        time.sleep(0.02)
    assert client.post("/v1/plan", files=upload(b"x", {})).status_code == 200
    return client


def post(client: httpx.Client, settings: dict[str, Any], headers: Any = None, sent: bytes = b"x") -> Any:
    return client.post("/v1/releases", files=upload(sent, settings), headers=headers)


def kind(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("urn:dpveil:error:")


def talk(client: httpx.Client, *sent: bytes, most: int = 100_000) -> bytes:
    """Send bytes on a connection of their own, and return all that comes back until it is closed."""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=20) as line:
        for part in sent:
            line.sendall(part)
        got = b""
        while len(got) < most and (part := line.recv(4096)):
            got += part
        return got


def test_body_seconds(free: httpx.Client) -> None:
    head = b"POST /v1/plan HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n"
    head += b"content-type: multipart/form-data; boundary=b\r\nconnection: close\r\n\r\n--b\r\n"
    got = talk(free, head)
    assert b" 408 " in got.partition(b"\r\n")[0]
    assert b"did not arrive within 0.3 s" in got


def test_an_upload_that_breaks_off_is_forgotten(tight: Any, free: httpx.Client) -> None:
    head = b"POST /v1/releases HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n"
    head += b"content-type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with socket.create_connection(("127.0.0.1", free.base_url.port or 0)) as line:
        line.sendall(head)
    while "dpveil_upload_bytes 0.0" not in free.get("/metrics").text:
        time.sleep(0.02)
    assert not tight[0].jobs._jobs


def test_plan_seconds(free: httpx.Client) -> None:
    answer = post(free, {"plan": "sleep"}, ASYNC)
    told = finished(free, answer.json()["job_url"])["problem"]
    assert told["status"] == 422
    assert told["title"] == "the request takes longer than 2 s"


def test_draw_seconds(free: httpx.Client) -> None:
    answer = post(free, release(draw="sleep"), ASYNC)
    assert finished(free, answer.json()["job_url"])["problem"]["title"] == "the request takes longer than 2 s"


def finished(client: httpx.Client, job: str) -> Any:
    while (told := client.get(job).json())["status"] == "working":
        time.sleep(0.02)
    return told


def test_answer_seconds(free: httpx.Client) -> None:
    """What takes longer than a client waits is a job; a retry meanwhile finds the same one."""
    first, again = (post(free, release(plan="doze"), {"Idempotency-Key": "slow"}) for _ in range(2))
    assert first.status_code == 202
    assert first.json()["status"] == "working"
    assert again.json()["id"] == first.json()["id"]
    told = finished(free, first.json()["job_url"])
    assert free.get(told["release_url"]).json()["certificate"]["method"] == "dp-pix"


def test_result_seconds(tight: Any, free: httpx.Client) -> None:
    made = post(free, release(), {"Idempotency-Key": "expires"}).json()
    assert free.get(made["image_url"]).status_code == 200
    while free.get(made["image_url"]).status_code == 200:
        time.sleep(0.1)
    assert free.get(f"/v1/jobs/{made['id']}").status_code == 404
    again = post(free, release(), {"Idempotency-Key": "expires"})
    assert again.json()["id"] != made["id"]
    assert tight[0].jobs.store.used < 30_000


def test_results_bytes(tight: Any, free: httpx.Client) -> None:
    """Nobody's unseen release is forgotten for another; one that was downloaded is."""
    store = tight[0].jobs.store
    store.limits = Limits(results_bytes=60_000)
    made = [post(free, release(room=20_000)) for _ in range(40)]
    full = next(answer for answer in made if answer.status_code != 201)
    assert (full.status_code, kind(full), full.headers["retry-after"]) == (503, "Busy", "60")
    seen = made[0].json()
    assert free.get(seen["image_url"]).status_code == 200
    assert free.get(made[1].json()["certificate_url"]).status_code == 200
    for answer in made[:5]:
        free.get(answer.json()["image_url"])
    assert post(free, release(room=20_000)).status_code == 201
    assert free.get(seen["image_url"]).status_code == 404
    assert store._room == 0
    store._forget("1", [])


def test_held_bytes(free: httpx.Client) -> None:
    answer = post(free, release(), sent=b"x" * 100_000)
    assert (answer.status_code, kind(answer)) == (503, "Busy")
    assert "dpveil_upload_bytes 0.0" in free.get("/metrics").text


@pytest.mark.parametrize("how", ["flood", "pickle", "large", "memory"])
def test_a_worker_that_goes_wrong_costs_one_request(tight: Any, free: httpx.Client, how: str) -> None:
    answer = post(free, {"plan": how})
    assert (answer.status_code, kind(answer)) == (422, "WorkerEnded")
    assert ("memory" in answer.json()["title"]) == (how == "memory")
    assert post(free, release()).status_code in (201, 202)


def test_an_error_that_nobody_expected_is_a_problem(
    tight: Any, free: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what a worker says in half a surrogate pair is told all the same."""

    async def fails(*_: Any) -> Any:
        raise RuntimeError("private words")

    monkeypatch.setattr(tight[0].jobs, "ask", fails)
    answer = free.get("/v1/explain")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["title"] == "the service failed"
    assert answer.headers["x-frame-options"] == "DENY"
    monkeypatch.setattr(tight[0].jobs, "ask", odd)
    assert free.get("/v1/explain").json() == {"words": "\ud800"}


async def odd(*_: Any) -> Any:
    return {"words": "\ud800"}


def test_worker_bytes() -> None:
    """What `test_server` sees in /proc: a worker has as much address space as that, and no core dumps."""
    limits = Limits(worker_bytes=1 << 29)
    code = f"from dpveil.processes import _confine; _confine({limits.worker_bytes}); bytearray(1 << 29)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (1, "MemoryError")


def test_a_worker_that_shows_another_file_is_found_out(tight: Any, free: httpx.Client) -> None:
    lie = {**release(), "image": release()["image"][:-8]}
    assert kind(post(free, lie)) == "WorkerEnded"
    while tight[0].jobs.workers.busy:
        time.sleep(0.02)
    cheap = {**release()["total"], "epsilon": 0.5}
    assert kind(post(free, release(total=cheap))) == "WorkerEnded"
    assert post(free, release(total={"kind": "pure"})).status_code == 500


def test_a_job_is_cancelled(tight: Any, free: httpx.Client) -> None:
    job = post(free, {"plan": "sleep"}, ASYNC).json()["job_url"]
    assert free.delete(job).status_code == 204
    assert free.get(job).status_code == 404
    while tight[0].jobs._jobs:  # until its plan takes too long
        time.sleep(0.02)


def test_body_bytes(small: httpx.Client) -> None:
    files = upload(b"x" * 20_000, release())
    fits, refused = (small.post("/v1/plan", files=each) for each in (upload(b"x", release()), files))
    assert fits.status_code == 200
    assert (refused.status_code, kind(refused)) == (413, "TooLarge")
    assert refused.json()["title"] == "the upload has more than 20,000 bytes"


def test_settings_bytes(small: httpx.Client) -> None:
    for more, status in ((0, 200), (12_000, 413)):
        answer = small.post("/v1/plan", files=upload(b"x", release(more=" " * more)))
        assert answer.status_code == status
    assert kind(answer) == "TooLarge"
    assert small.get("/v1/explain?x=" + "x" * 12_000).status_code == 400


def test_what_has_expired_is_not_shown_before_it_is_swept_away() -> None:
    from dpveil.service.store import Store

    for seconds, shown in ((3600, True), (1e-6, False)):
        store = Store(":memory:", Limits(result_seconds=seconds))
        made, _ = store.begin("me", None, b"")
        assert store.find("me", made.id)  # it is being made
        store.keep(made.id, {"certificate": "", "notes": "", "format": "png", "sha256": ""}, b"image")
        store.show(made.id)
        assert (store.find("me", made.id) is not None) == shown
        assert store.find("you", made.id) is None
        store.sweep()
        assert store.used == (5 if shown else 0)
        store.close()


def test_a_store_has_one_service(tmp_path: Path) -> None:
    from dpveil.service.store import Store

    one = Store(tmp_path / "results", Limits())
    with pytest.raises(OutputError, match="database is locked"):
        Store(tmp_path / "results", Limits())
    one.close()
    Store(tmp_path / "results", Limits()).close()


# What each key may take: photos a minute, and work under way; no key keeps the others waiting.


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Any]:
    """A service with two workers and the keys a (one at once) and b (two at once): it, client and headers."""
    keys, first = Keys().new("a", ["album"], 1000, 1)
    keys, second = keys.new("b", ["album"], 1000, 2)
    keys.write(tmp_path / "keys.json")
    headers = [{"Authorization": f"Bearer {key}"} for key in (first, second)]
    with service(fake=True, workers=2, keys=tmp_path / "keys.json") as (made, client):
        yield made, client, *headers


def over(client: Any, job: str, headers: dict[str, str]) -> Any:
    while (told := client.get(job, headers=headers).json())["status"] == "working":
        time.sleep(0.01)
    return told


@pytest.mark.parametrize("address", ["/v1/releases", "/v1/plan", "/page/plan", "/v1/explain"])
def test_parallel(keyed: Any, address: str, tmp_path: Path) -> None:
    """A key with enough under way is refused, another key is not, and the first one may ask after it."""
    made, client, a, b = keyed
    slow = upload(b"x", release(plan=f"until {tmp_path / 'go'}"))
    job = client.post("/v1/releases", files=slow, headers=a | ASYNC).json()

    def asks(headers: dict[str, str]) -> Any:
        if address == "/v1/explain":
            return client.get(address, headers=headers)
        return client.post(address, files=upload(b"x", release()), headers=headers)

    refused = asks(a)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.json()["title"] == "this key has as many requests and jobs under way as it may: 1"
    assert {*+made.jobs.under_way._counts} == {made.keys_file._keys.callers[0].number}
    assert asks(b).status_code in (200, 201)
    (tmp_path / "go").touch()
    assert over(client, job["job_url"], a)["status"] == "done"
    assert asks(a).status_code in (200, 201)
    assert not +made.jobs.under_way._counts


def test_without_keys_everything_is_for_whoever_asks() -> None:
    jobs = 3 * PARALLEL
    with service(fake=True) as (made, client):
        posted = [
            client.post("/v1/releases", files=upload(b"x", release()), headers=ASYNC) for _ in range(jobs)
        ]
        assert {answer.status_code for answer in posted} <= {201, 202}
        for answer in posted:
            assert over(client, f"/v1/jobs/{answer.json()['id']}", {})["status"] == "done"
    assert LOCAL.parallel > Limits().connections
    assert not +made.jobs.under_way._counts


def test_the_command_line_makes_keys_with_limits(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "keys.json"
    for name, *more in (("a", "--parallel", "7"), ("b",)):
        assert run(["api-key", "new", name, "--keys", str(file), "--subject", "album", *more]) == 0
        printed = capsys.readouterr()
        assert KEY.fullmatch(printed.out.rstrip("\n")), "a script reads the key alone"
        assert printed.err.startswith("this key is shown once")
    assert run(["api-key", "list", "--keys", str(file), "--json"]) == 0
    assert [key["parallel"] for key in json.loads(capsys.readouterr().out)["keys"]] == [7, PARALLEL]
    assert run(["api-key", "list", "--keys", str(file)]) == 0
    assert "a: 60 a minute, 7 at once; album" in capsys.readouterr().out
    assert Limits().waiting >= 2 * MOST_PARALLEL
    with pytest.raises(InvalidParameter, match="parallel = 33 is out of range"):
        Keys().new("x", ["album"], 60, MOST_PARALLEL + 1)


# What a refusal tells a key: amounts of the subjects that it may spend, and of no other.


def costs(epsilon: Any) -> Guarantee:
    return Guarantee(kind="pure", epsilon=epsilon, relation=Relation("any-image"), scope=Scope("a photo"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    """A studio with ε 0.5 left, in which an album has 3 and another one 0.25."""
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        for subject, epsilon in (("studio", 5), ("studio/album", 3), ("studio/few", "0.25"), ("secret", 1)):
            ledger.set_limit(subject, Limit(kind="pure", epsilon=epsilon))
        ledger.reserve("studio", costs("4.5"), "earlier").commit()
        yield ledger


@pytest.mark.parametrize("own", ["studio/album", "studio/new"])
def test_the_page_tells_nothing_of_what_is_left_above(ledger: Any, own: str) -> None:
    """Many prices, as of a key that bisects: answers are equal whatever was spent above."""
    key = Caller(number="1", name="shop", subjects=(own,), rate=10)
    steps = range(1, 101)
    words = [price_text(costs(Fraction(step, 20))) for step in steps]
    words += [f"{step} {step * step} 0 0/m-pixels:1" for step in steps]

    def answers() -> list[Any]:
        alone = [account_json(ledger, key, None, prices([word])) for word in words]
        return [account_json(ledger, key, None, prices(words)), *alone]

    before = answers()
    ledger.reserve("studio", costs("0.25"), "by another").commit()
    assert answers() == before
    ledger.set_limit("studio", Limit(kind="zcdp", rho="0.001"))
    assert answers() == before


def test_a_key_may_ask_so_often_a_minute() -> None:
    rates, caller = Rates(), Caller(number="1", name="x", subjects=None, rate=60)
    for _ in range(60):
        rates.check(caller, 0)
    with pytest.raises(ServiceError) as refused:
        rates.check(caller, 0)
    assert (refused.value.kind, refused.value.after) == ("TooMany", 2)
    rates.check(caller, 1.1)
    rates.check(Caller(number="2", name="y", subjects=None, rate=1), 1.1)


def test_uploads_may_fill_their_memory_to_the_last_byte() -> None:
    held = UploadMemory(10)
    one, other = RequestLoad(held), RequestLoad(held)
    one.add(10)
    with pytest.raises(ServiceError):
        other.add(1)
    one.free()
    assert (held.now, one.size) == (0, 0)

"""Several photos in one request: each is a release of its own, is paid for by itself, and has its answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_client import SETTINGS, photo, release, service, several, upload

from dpveil.ledger import Ledger, Limit

ASYNC = {"Prefer": "respond-async"}
KEY = {"Idempotency-Key": "album"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit(kind="pure", epsilon=3))
        yield ledger


@pytest.fixture
def both(ledger: Any) -> Iterator[tuple[Any, httpx.Client]]:
    """A service with a fake worker that pays, and a client."""
    with service(fake=True, ledger=ledger) as both:
        yield both


def post(client: httpx.Client, *photos: bytes, headers: Any = None, **settings: Any) -> Any:
    files = several(release(**{"subject": "album"} | settings), *photos)
    return client.post("/v1/releases", files=files, headers=headers)


def statuses(answer: Any) -> list[int]:
    return [entry["status"] for entry in answer.json()["photos"]]


def spent(ledger: Any) -> Any:
    return ledger.show("album").to_json()["spent"]["epsilon"]


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


def test_each_photo_pays_for_itself_until_the_limit(both: Any, ledger: Any) -> None:
    """What the budget does not allow is refused; what was made before it stays."""
    answer = post(both[1], *[b"x"] * 5)
    assert answer.status_code == 200
    assert sorted(statuses(answer)) == [201] * 3 + [403] * 2
    refused = next(entry["problem"] for entry in answer.json()["photos"] if entry["status"] == 403)
    assert refused["title"] == "album has epsilon 0 left and this release costs 1"
    assert spent(ledger) == 3
    assert both[0].jobs.store.find("local", answer.json()["photos"][0]["release"]["id"])
    none = post(both[1], b"x", b"y")
    assert none.status_code == 403
    assert none.headers["content-type"] == "application/problem+json"
    assert none.json()["title"] == refused["title"]
    assert statuses(none) == [403, 403]
    ledger.check()


def test_a_retry_pays_for_what_is_new_alone(both: Any, ledger: Any) -> None:
    """Equal photos at two places are two releases; a photo that was exchanged is refused."""
    client = both[1]
    first = post(client, b"x", b"x", headers=KEY)
    assert (first.status_code, spent(ledger)) == (201, 2)
    ids = [entry["release"]["id"] for entry in first.json()["photos"]]
    assert len(set(ids)) == 2
    again = post(client, b"x", b"x", headers=KEY)
    assert again.status_code == 201
    assert [entry["release"]["id"] for entry in again.json()["photos"]] == ids
    assert [entry.get("replayed") for entry in again.json()["photos"]] == [True, True]
    assert not any("replayed" in entry for entry in first.json()["photos"])
    exchanged = post(client, b"x", b"y", headers=KEY)
    assert (exchanged.status_code, statuses(exchanged)) == (200, [201, 422])
    assert exchanged.json()["photos"][1]["problem"]["type"] == "urn:dpveil:error:KeyReused"
    assert post(client, b"x", b"x", headers=KEY, more=1).status_code == 422
    assert spent(ledger) == 2
    longer = post(client, b"x", b"x", b"z", headers=KEY)
    assert [entry.get("replayed") for entry in longer.json()["photos"]] == [True, True, None]
    assert spent(ledger) == 3
    alone = post(client, b"x", headers=KEY)
    assert (alone.json()["id"], alone.headers["idempotency-replayed"]) == (ids[0], "true")
    assert spent(ledger) == 3


def test_keys_of_photos_cannot_be_sent(both: Any) -> None:
    post(both[1], b"x", b"x", headers=KEY)
    for key in ("album\\0", "album\x001", "album 1"):
        try:
            answer = post(both[1], b"x", headers={"Idempotency-Key": key})
        except httpx.LocalProtocolError:
            continue
        assert "idempotency-replayed" not in answer.headers


def test_one_that_fails_is_told_beside_the_others(client: Any) -> None:
    answer = client.post("/v1/releases", files=several(SETTINGS, photo(), b"no photo", photo(seed=2)))
    assert (answer.status_code, statuses(answer)) == (200, [201, 422, 201])
    problem = answer.json()["photos"][1]["problem"]
    assert (problem["type"], problem["about"]) == ("urn:dpveil:error:PhotoError", "photo")
    assert problem["title"].startswith("photo 2 of 3: ")


def test_what_takes_longer_is_a_job_for_each(both: Any) -> None:
    answer = post(both[1], b"x", b"y", headers=ASYNC)
    assert (answer.status_code, statuses(answer)) == (202, [202, 202])
    for entry in answer.json()["photos"]:
        while (told := both[1].get(entry["job"]["job_url"]).json())["status"] == "working":
            time.sleep(0.01)
        assert both[1].get(told["release_url"]).status_code == 200


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


def test_what_is_wrong_with_the_request_is_told_once(client: Any) -> None:
    answer = client.post("/v1/releases", files=several("{", photo(), photo()))
    assert answer.status_code == 422
    assert "photos" not in answer.json()

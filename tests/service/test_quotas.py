"""What each key may take: photos a minute, and work under way; no key keeps the others waiting."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service_client import release, service, several, upload

from dpveil.cli import run
from dpveil.errors import InvalidParameter
from dpveil.service.guard import Rates
from dpveil.service.keys import KEY, LOCAL, Caller, Keys
from dpveil.service.problems import TooMany
from dpveil.service.settings import MOST_PARALLEL, PARALLEL, Limits

ASYNC = {"Prefer": "respond-async"}


def test_photos_count_for_the_rate_of_later_requests() -> None:
    rates, caller = Rates(), Caller("1", "x", None, 60)
    rates.check(caller, 0)
    rates.more(caller, 89, 0)
    for now in (0, 30.9):
        with pytest.raises(TooMany) as refused:
            rates.check(caller, now)
        assert (refused.value.status, refused.value.after) == (429, 32 if not now else 1)
    rates.check(caller, 31.1)
    other = Caller("2", "y", None, 1)
    rates.check(other, 31.1)


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
    assert made.jobs.turns._work.keys() == {made.keys_file._keys.callers[0].number}
    assert asks(b).status_code in (200, 201)
    (tmp_path / "go").touch()
    assert over(client, job["job_url"], a)["status"] == "done"
    assert asks(a).status_code in (200, 201)
    assert not made.jobs.turns._work


def test_photos_are_counted_by_the_minute(tmp_path: Path) -> None:
    keys, key = Keys().new("a", ["album"], 1)
    keys.write(tmp_path / "keys.json")
    headers = {"Authorization": f"Bearer {key}"}
    with service(fake=True, keys=tmp_path / "keys.json") as (_, client):
        assert client.post("/v1/plan", files=several(release(), *[b"x"] * 6), headers=headers).is_success
        refused = client.get("/metrics", headers=headers)
    assert refused.status_code == 429
    assert 60 < int(refused.headers["retry-after"]) <= 361  # a photo a minute, and the request itself


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
    assert not made.jobs.turns._work


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


def read(folder: Path, entry: dict[str, Any]) -> Keys:
    """Return the keys of a file with one key, whose entry is changed."""
    Keys().new("a", ["album"], 60)[0].write(folder / "keys.json")
    data = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
    data["keys"][0] |= entry
    (folder / "keys.json").write_text(json.dumps(data), encoding="utf-8")
    return Keys.read(folder / "keys.json")

"""A large certificate keeps nobody else waiting: it is read beside the event loop, or not at all."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from service_client import release, service, upload

from dpveil.core.certificate import parse_certificate
from dpveil.service.answers import Answer, release_text, together
from dpveil.service.jobs import SHORT
from dpveil.service.store import DONE, Result


def large(regions: int) -> dict[str, Any]:
    """Return settings with which a fake worker releases something with a certificate of so many regions."""
    made = release()
    one = parse_certificate(made["certificate"])
    many = replace(one, regions=one.regions * regions, guarantees=one.guarantees * regions)
    return {**made, "certificate": many.to_text(), "room": 100_000}


def test_an_answer_holds_the_certificate_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = large(9)["certificate"]
    result = Result("x" * 32, DONE, 1.5, "png", text, '["a \\"note\\""]')

    def fails(*_: Any) -> Any:
        raise AssertionError("it is parsed")

    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", fails)
        alone = Answer.of(result, replayed=False).response().body
        both = together([Answer.of(result, replayed=replayed) for replayed in (True, False)]).body
    told = json.loads(release_text(result))
    assert told["certificate"] == json.loads(text)
    assert (told["id"], told["notes"], told["expires"]) == ("x" * 32, ['a "note"'], 1)
    assert json.loads(alone) == told
    entries = json.loads(both)["photos"]
    assert entries == [
        {"status": 201, "replayed": True, "release": told},
        {"status": 201, "release": told},
    ]


@pytest.mark.parametrize("regions", [1, 80])
def test_a_large_certificate_is_read_beside_the_event_loop(
    regions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpveil.service import jobs
    from dpveil.service.page import routes

    where: list[str] = []

    def noted(text: str) -> Any:
        where.append(threading.current_thread().name)
        return parse_certificate(text)

    settings = large(regions)
    assert (len(settings["certificate"]) > SHORT) == (regions > 1)
    assert len(base64.b64decode(settings["image"])) < SHORT
    for module in (jobs, routes):
        monkeypatch.setattr(module, "parse_certificate", noted)
    with service(fake=True) as (_, client):
        told = client.post("/v1/releases", files=upload(b"x", settings))
        assert told.status_code == 201, told.text
        assert client.get(f"/page/releases/{told.json()['id']}").status_code == 200
    beside = [name.startswith("asyncio_") for name in where]
    assert beside == [regions > 1, True]

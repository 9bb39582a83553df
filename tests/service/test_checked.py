"""What the server checks of a release before anybody sees it: a worker may be taken over."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_client import SETTINGS, photo, release, server, service, upload, workers

import dpveil
from dpveil.core.certificate import parse_certificate
from dpveil.release.keys import SigningKey
from dpveil.service import worker
from dpveil.service.jobs import MOST_NOTES, check_release
from dpveil.service.limits import MIB, Limits
from dpveil.service.problems import WorkerEnded


def told(image: bytes, stated: str, answered: Any) -> tuple[dict[str, Any], bytes, bytes, dict[str, Any]]:
    """Return a worker's answer with another image, a certificate that matches, and what was paid."""
    made = release()
    certificate = parse_certificate(made["certificate"])
    output = replace(certificate.output, sha256=hashlib.sha256(image).hexdigest(), format=stated)
    text = replace(certificate, output=output).to_text().encode()
    return {"format": answered, "notes": []}, text, image, made["total"]


def check(answer: Any, text: bytes, image: bytes, total: Any, sign: Any = None) -> dict[str, Any]:
    return check_release(answer, text, image, total=total, sign=sign)


def test_a_release_passes_with_its_own_format() -> None:
    image = base64.b64decode(release()["image"])
    assert check(*told(image, "png", "png"))["sha256"] == hashlib.sha256(image).hexdigest()
    for kind in ("jpeg", "webp", "tiff", "bmp"):
        assert check(*told(photo(kind=kind), kind, kind))["format"] == kind


@pytest.mark.parametrize(
    ("image", "stated", "answered"),
    [
        (photo(), "png", "jpeg"),
        (photo(), "jpeg", "jpeg"),
        (photo(), "jpeg", "png"),
        (photo(), "png", "../../x"),
        (photo(), "png", ["png"]),
        (photo(), "png", None),
        (photo(kind="GIF"), "gif", "gif"),
        (b"<svg/>", "svg", "svg"),
        (b"<svg/>", "png", "png"),
        (b"\0\0\0\x1cftypavif" + bytes(16), "avif", "avif"),
        (b"\0\0\0\x1cftyp", "png", "png"),
        (b"", "png", "png"),
    ],
)
def test_other_files_do_not(image: bytes, stated: str, answered: Any) -> None:
    with pytest.raises(WorkerEnded):
        check(*told(image, stated, answered))


def test_notes_are_short() -> None:
    answer, *rest = told(photo(), "png", "png")
    answer["notes"] = ["n" * (MOST_NOTES - len('[""]'))]
    assert check(answer, *rest)["notes"] == json.dumps(answer["notes"])
    answer["notes"] = ["n" * MOST_NOTES]
    with pytest.raises(WorkerEnded):
        check(answer, *rest)


# A worker that was taken over costs the request that it answers, and tells the next one nothing.


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
    workers = both[0].jobs.workers
    before = workers.replaced
    assert post(both, "plan", after="stale").status_code == 200
    time.sleep(0.2)
    assert planned(both, "mine") == "mine"
    assert workers.replaced <= before + 1


def test_a_plan_has_no_contents(both: Any) -> None:
    assert post(both, "plan", contents=1).json()["type"] == ENDED
    assert planned(both, "mine") == "mine"


def test_a_release_is_not_longer_than_its_room(both: Any) -> None:
    assert post(both, "releases", room=100).json()["type"] == ENDED


def test_nobody_loses_results_for_room_that_no_release_needs(both: Any) -> None:
    made = post(both, "releases").json()
    assert both[1].get(made["image_url"]).status_code == 200
    assert post(both, "releases", room=1 << 40).status_code == 201
    assert both[1].get(made["image_url"]).status_code == 200


# What a worker says and checks before a release is paid for, so that none is paid and then lost.


def steps(contents: bytes, **changed: Any) -> Any:
    return worker._release({"settings": {**SETTINGS, **changed}, "pixels": 10**7, "paid": True}, contents)


def test_a_draw_that_has_no_memory_is_refused_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = photo()
    assert "total" in next(steps(contents))[0]
    monkeypatch.setattr(worker, "DRAW_BYTES", 1 << 50)
    with pytest.raises(MemoryError):
        next(steps(contents))


# Certificates that the service signs: by its own key, which no worker has or can make believe to have.


@pytest.fixture(scope="module")
def signed() -> Iterator[tuple[Any, SigningKey]]:
    """A client of a service that signs, and its key."""
    key = SigningKey.generate()
    with service(sign=key) as (_, client):
        yield client, key


def test_releases_verify_with_the_key_of_the_service(signed: Any, tmp_path: Path) -> None:
    client, key = signed
    told = client.post("/v1/releases", files=upload(photo())).json()
    words = client.get(f"/page/releases/{told['id']}").json()
    assert words["note"] == f"The certificate is signed by {key.public.fingerprint}."
    text = client.get(told["certificate_url"]).text
    assert json.loads(text) == told["certificate"]
    (tmp_path / "a.png").write_bytes(client.get(told["image_url"]).content)
    (tmp_path / "a.png.certificate.json").write_text(text, encoding="utf-8")
    found = dpveil.verify(tmp_path / "a.png", trust=key.public)
    assert (found.status, found.problems) == ("consistent", ())
    assert found.signer == key.public.fingerprint
    other = dpveil.verify(tmp_path / "a.png", trust=SigningKey.generate().public)
    assert other.untrusted


def test_a_signature_is_on_what_was_paid_for() -> None:
    key, made = SigningKey.generate(), release()
    image, total = dpveil_image(made), made["total"]
    answer, text = {"format": "png", "notes": []}, made["certificate"].encode()
    kept = check(answer, text, image, total, key)
    assert key.has_signed(parse_certificate(kept["certificate"]))
    assert kept["certificate"] != made["certificate"]
    assert check(answer, text, image, total)["certificate"] == made["certificate"]
    with pytest.raises(WorkerEnded):
        check(answer, text, image, {**total, "epsilon": 0.5}, key)


@pytest.mark.parametrize("own", [True, False])
def test_a_worker_signs_nothing(own: bool) -> None:
    """Whether or not the service has a key: a signature that comes from a worker is refused."""
    key, made = SigningKey.generate(), release()
    text = SigningKey.generate().sign(parse_certificate(made["certificate"])).to_text()
    answer = {"format": "png", "notes": []}
    with pytest.raises(WorkerEnded):
        check(answer, text.encode(), dpveil_image(made), made["total"], key if own else None)


@pytest.mark.parametrize("lie", [{"strength": "weak"}, {"accountant": "none"}, {"method": "blur"}])
def test_what_contradicts_itself_is_not_signed(lie: dict[str, Any]) -> None:
    made = release()
    text = replace(parse_certificate(made["certificate"]), **lie).to_text()
    answer = {"format": "png", "notes": []}
    with pytest.raises(WorkerEnded):
        check(answer, text.encode(), dpveil_image(made), made["total"], SigningKey.generate())


def dpveil_image(made: dict[str, Any]) -> bytes:
    import base64

    return base64.b64decode(made["image"])


def test_the_command_line_signs_with_an_encrypted_key(tmp_path: Path, monkeypatch: Any) -> None:
    key = SigningKey.generate()
    key.write(tmp_path / "sign.key", "a passphrase")
    monkeypatch.setenv("DPVEIL_PASSPHRASE", "a passphrase")
    with server("--sign", str(tmp_path / "sign.key"), fake=True) as (process, client):
        told = client.post("/v1/releases", files=upload(b"x", release())).json()
        assert told["certificate"]["signature"]["public_key"] == key.public.data.hex()
        (worker,) = workers(process)
        assert b"a passphrase" not in Path(f"/proc/{worker}/environ").read_bytes()
        opened = {each.readlink().name for each in Path(f"/proc/{worker}/fd").iterdir()}
        assert not any("sign.key" in name for name in opened)


def test_nothing_else_of_an_answer_is_kept() -> None:
    answer, *rest = told(photo(), "png", "png")
    assert set(check({**answer, "more": "x"}, *rest)) == {"certificate", "format", "sha256", "notes"}

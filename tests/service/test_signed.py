"""Certificates that the service signs: by its own key, which no worker has or can make believe to have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from service_client import photo, release, server, service, upload, workers

import dpveil
from dpveil.core.certificate import parse_certificate
from dpveil.release.keys import SigningKey
from dpveil.service.jobs import checked
from dpveil.service.problems import WorkerEnded

ROOM = 1 << 20


@pytest.fixture(scope="module")
def signed() -> Iterator[tuple[Any, SigningKey]]:
    """A client of a service that signs, and its key."""
    key = SigningKey.made()
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
    other = dpveil.verify(tmp_path / "a.png", trust=SigningKey.made().public)
    assert other.untrusted


def test_a_signature_is_on_what_was_paid_for() -> None:
    key, made = SigningKey.made(), release()
    image, total = dpveil_image(made), made["total"]
    answer = {"certificate": made["certificate"], "format": "png", "notes": []}
    kept = checked(answer, image, total, ROOM, key)
    assert key.has_signed(parse_certificate(kept["certificate"]))
    assert kept["certificate"] != made["certificate"]
    assert checked(answer, image, total, ROOM)["certificate"] == made["certificate"]
    with pytest.raises(WorkerEnded):
        checked(answer, image, {**total, "epsilon": 0.5}, ROOM, key)


@pytest.mark.parametrize("own", [True, False])
def test_a_worker_signs_nothing(own: bool) -> None:
    """Whether or not the service has a key: a signature that comes from a worker is refused."""
    key, made = SigningKey.made(), release()
    text = SigningKey.made().signed(parse_certificate(made["certificate"])).to_text()
    answer = {"certificate": text, "format": "png", "notes": []}
    with pytest.raises(WorkerEnded):
        checked(answer, dpveil_image(made), made["total"], ROOM, key if own else None)


@pytest.mark.parametrize("lie", [{"strength": "weak"}, {"accountant": "none"}, {"method": "blur"}])
def test_what_contradicts_itself_is_not_signed(lie: dict[str, Any]) -> None:
    made = release()
    text = replace(parse_certificate(made["certificate"]), **lie).to_text()
    answer = {"certificate": text, "format": "png", "notes": []}
    with pytest.raises(WorkerEnded):
        checked(answer, dpveil_image(made), made["total"], ROOM, SigningKey.made())


def dpveil_image(made: dict[str, Any]) -> bytes:
    import base64

    return base64.b64decode(made["image"])


def test_the_command_line_signs_with_an_encrypted_key(tmp_path: Path, monkeypatch: Any) -> None:
    key = SigningKey.made()
    key.write(tmp_path / "sign.key", "a passphrase")
    monkeypatch.setenv("DPVEIL_PASSPHRASE", "a passphrase")
    with server("--sign", str(tmp_path / "sign.key"), fake=True) as (process, client):
        told = client.post("/v1/releases", files=upload(b"x", release())).json()
        assert told["certificate"]["signature"]["public_key"] == key.public.data.hex()
        (worker,) = workers(process)
        assert b"a passphrase" not in Path(f"/proc/{worker}/environ").read_bytes()
        opened = {each.readlink().name for each in Path(f"/proc/{worker}/fd").iterdir()}
        assert not any("sign.key" in name for name in opened)

"""Hostile uploads and settings: no field opens a file, no body is taken for more than it is."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_client import SETTINGS, photo, upload

BOUNDARY = "b0unda7y"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(name: str, contents: bytes, more: str = "") -> bytes:
    told = f'content-disposition: form-data; name="{name}"; filename="../../etc/passwd"'
    head = f"--{BOUNDARY}\r\n{told}\r\n{more}\r\n"
    return head.encode() + contents + b"\r\n"


def body(*parts: bytes, end: bytes = f"--{BOUNDARY}--\r\n".encode()) -> bytes:
    return b"".join(parts) + end


PHOTO, TEXT = part("photo", photo()), part("settings", json.dumps(SETTINGS).encode())


@pytest.mark.parametrize(
    ("sent", "headers", "status", "words"),
    [
        (b"", {}, 415, "is not multipart"),
        (b"{}", {"content-type": "application/json"}, 415, "is not multipart"),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 415, "is not multipart"),
        (b"", {"content-type": "multipart/form-data"}, 400, "is not what multipart"),
        (b"", {"content-type": "multipart/form-data; boundary="}, 400, ""),
        (body(TEXT), {**FORM, "content-type": FORM["content-type"] + "; charset=idna"}, 400, "is missing"),
        (b"", FORM, 400, "ends before"),
        (b"garbage", FORM, 400, "is not what multipart"),
        (body(), FORM, 400, ""),
        (body(TEXT), FORM, 400, '"photo" is missing'),
        (body(PHOTO, TEXT, TEXT), FORM, 400, "there twice"),
        (body(PHOTO, TEXT, part("more", b"")), FORM, 400, "is not expected"),
        (body(PHOTO, TEXT, part("\t\x1b[2J", b"")), FORM, 400, "is not expected"),
        (body(PHOTO, TEXT, part("", b"")), FORM, 400, "is not expected"),
        (body(PHOTO.replace(b"; filename=", b"; other="), TEXT), FORM, 400, "no file"),
        (body(PHOTO, TEXT, end=b""), FORM, 400, "ends before"),
        (body(PHOTO[:-90], TEXT)[:-30], FORM, 400, "ends before"),
        (body(part("photo", b"x", "x: y\r\n" * 20), TEXT), FORM, 400, "is not what multipart"),
        (body(part("photo", b"x", f"x: {'y' * 9000}\r\n"), TEXT), FORM, 400, "is not what multipart"),
        (body(PHOTO, part("settings", b" " * 5000)), FORM, 413, "settings have more than 4,096"),
        (body(part("photo", b"x" * (1 << 20)), TEXT), FORM, 413, "more than 1,048,576 bytes"),
    ],
)
def test_malformed_bodies(client: Any, sent: bytes, headers: dict[str, str], status: int, words: str) -> None:
    answer = client.post("/v1/releases", content=sent, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in answer.json()["title"]


def test_a_body_is_counted_whatever_its_length_claims(client: Any) -> None:
    def chunks() -> Any:
        yield part("photo", b"")
        for _ in range(40):
            yield b"x" * 65536

    answer = client.post("/v1/releases", content=chunks(), headers=FORM)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "are not JSON"),
        ("[]", "are no object"),
        ("7", "are no object"),
        ('{"epsilon": 1, "epsilon": 2}', "is given twice"),
        ('{"epsilon": NaN}', "is no number of JSON"),
        ('{"epsilon": -Infinity}', "is no number of JSON"),
        ('{"a": ' + "[" * 1500 + "]" * 1500 + "}", ""),
        ('{"block": ' + "9" * 4000 + "}", ""),
        ('{"block": 1' + "0" * 4000 + ".5}", ""),
        (b"\xff\xfe{}", "are not JSON"),
        ('{"method": "dp-pix", "epsilon": 1e999999999, "block": 8}', "epsilon"),
        ('{"method": "\\ud800"}', "are not JSON"),
        ('{"\\ud800": 1}', "are not JSON"),
        ('{"method": "\\ud83d\\ude00"}', "unknown method"),
    ],
)
def test_malformed_settings(client: Any, text: str | bytes, words: str) -> None:
    answer = client.post("/v1/releases", files=upload(photo(), text))
    assert answer.status_code in (400, 422), answer.text
    assert words in answer.json()["title"]


def test_what_is_no_setting_is_answered_with_the_settings_and_their_values(client: Any) -> None:
    def refusal(**settings: Any) -> str:
        answer = client.post("/v1/plan", files=upload(photo(), {"regions": "faces", **settings}))
        assert answer.status_code == 422
        return str(answer.json())

    told = refusal(preset="press")
    assert all(name in told for name in ("'preset'", "regions", "except", "protect"))
    told = refusal(**{"except": 2})
    assert all(text in told for text in ("except", "1,3"))
    assert "exclude" not in told


@pytest.mark.parametrize(
    "changed",
    [
        {"regions": "FILE"},
        {"regions": ["whole", "FILE"]},
        {"regions": "mask.png"},
        {"regions": "faces", "detector": "FILE"},
        {"regions": "faces", "model": "FILE"},
        {"regions": "faces", "detector_model": "FILE"},
        {"method": "attributes", "gallery": "FILE"},
        {"method": "attributes", "model": "FILE"},
        {"method": "attributes", "outside": "FILE"},
        {"method": "latent", "codec": "FILE"},
        {"post_processing": "FILE"},
        {"post_processing": ["FILE"]},
        {"post_processing": "denoiser:FILE"},
        {"post_processing": ["median:3", " denoiser : FILE"]},
        {"post_processing": "denoiser:FILE", "regions": "8,8,32,24"},
        {"format": "FILE"},
        {"method": "FILE"},
        {"out": "FILE"},
        {"ledger": "sqlite:///FILE"},
    ],
)
def test_no_setting_opens_a_file(client: Any, tmp_path: Path, changed: dict[str, Any]) -> None:
    """Also where no audit hook sees it: what is said of a file that is there is said of a missing one."""
    from dpveil.errors import DPVeilError
    from dpveil.service.request_settings import Request

    trap = tmp_path / "trap.png"
    trap.write_bytes(photo())
    told = []
    for path in (tmp_path / "miss.png", trap):
        named = json.loads(json.dumps(changed).replace("FILE", str(path)))
        settings = {"method": "dp-pix", "epsilon": 1, "block": 8, **named} if "method" not in named else named
        with opened() as names, pytest.raises(DPVeilError) as refused:
            Request.of(settings)
        assert str(path) not in names
        told.append(str(refused.value).replace(path.name, "FILE"))
    assert told[0] == told[1]
    answer = client.post("/v1/releases", files=upload(photo(), settings))
    assert answer.status_code == 422, answer.text


LISTENING: list[list[str]] = []
"""Lists that get the name of every file that is opened; a hook cannot be removed."""


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and LISTENING:
        LISTENING[-1].append(str(arguments[0]))


sys.addaudithook(_hook)


@contextmanager
def opened() -> Iterator[list[str]]:
    LISTENING.append([])
    try:
        yield LISTENING[-1]
    finally:
        LISTENING.pop()


def bomb(side: int) -> bytes:
    """Return a PNG of side × side black pixels, which is a thousandth of its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    rows = zlib.compress(bytes(side * 3 + 1) * min(side, 500), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"", "is empty"),
        (b"hello", "is not an image of a known format"),
        (b"%PDF-1.7\n", ""),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", ""),
        (photo()[:-100], "truncated or damaged"),
        (photo()[:60], ""),
        (bomb(300), "pixels"),
        (bomb(60000), "pixels"),
        (photo(kind="GIF")[:200], ""),
    ],
)
def test_what_is_no_photo(client: Any, contents: bytes, words: str) -> None:
    for address in ("/v1/plan", "/v1/releases"):
        answer = client.post(address, files=upload(contents))
        assert answer.status_code == 422
        assert answer.json()["type"] == "urn:dpveil:error:PhotoError"
        assert words in answer.json()["title"]
        assert "secret name" not in answer.text


def test_pixels(client: Any) -> None:
    for width, status in ((200, 200), (201, 422)):
        answer = client.post("/v1/plan", files=upload(photo(width, 250)))
        assert answer.status_code == status
    assert answer.json()["type"] == "urn:dpveil:error:PhotoError"
    assert "has 201 × 250 pixels, more than the limit of 50,000" in answer.json()["title"]


@pytest.mark.parametrize(
    "address",
    [
        "/v1/releases/../../etc/passwd",
        "/v1/releases/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/releases/..%2f..%2fetc/image",
        "/v1/releases/%00",
        "/v1/releases/" + "a" * 32,
        "/v1/jobs/" + "a" * 5000,
        "/v1/releases/a'%20OR%201=1--/image",
        "//v1/releases/x",
        "/v1/releases/ä",
        "/v1/releases/",
    ],
)
def test_addresses_lead_to_no_file(client: Any, address: str) -> None:
    for method in ("GET", "DELETE"):
        answer = client.request(method, address)
        assert answer.status_code in (400, 404, 405)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("key", ["", "a b", "ä".encode(), "x" * 256, "a\tb"])
def test_malformed_idempotency_keys(client: Any, key: str | bytes) -> None:
    answer = client.post("/v1/releases", files=upload(photo()), headers={"Idempotency-Key": key})
    assert answer.status_code == 400


def test_random_bodies_never_fail_the_service(client: Any) -> None:
    """Uploads with bytes changed, cut and repeated, with a fixed seed: an answer below 500 each."""
    draw = np.random.Generator(np.random.PCG64(7))
    whole = body(PHOTO, TEXT)
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(int(draw.integers(1, 6))):
            changed[int(draw.integers(len(changed)))] = int(draw.integers(256))
        cut = changed[: int(draw.integers(len(changed)))] if draw.random() < 0.2 else changed
        answer = client.post("/v1/plan", content=bytes(cut), headers=FORM)
        assert answer.status_code < 500, answer.text


def test_a_worker_that_was_short_of_memory_is_no_more_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpveil.errors import PhotoError
    from dpveil.service import worker

    def short(*_: Any, **__: Any) -> Any:
        try:
            raise MemoryError
        except MemoryError as error:
            raise PhotoError("the photo does not fit into memory") from error

    monkeypatch.setattr(worker, "read", short)
    monkeypatch.setattr(worker.sys, "platform", "any")  # else this process would end with its parent
    answers = worker.prepare(None)
    with pytest.raises(MemoryError):
        answers({"do": "plan", "settings": SETTINGS, "pixels": 10}, np.zeros(1, np.uint8))

"""Answers that may be large: certificates, images part by part, and archives (`Accept: application/zip`)."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest
from service_client import photo, upload

import dpveil
from dpveil.service import app
from dpveil.service.answers import (
    CHUNK,
    File,
    archive_size,
    archived,
    download,
)

ZIP = {"Accept": "application/zip"}


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _written(*files: tuple[str, tuple[bytes, ...]]) -> tuple[int, list[bytes]]:
    made = [File(name, sum(map(len, parts)), _parts(*parts)) for name, parts in files]

    async def all_of() -> list[bytes]:
        return [part async for part in archived(made)]

    return archive_size(made), asyncio.run(all_of())


def test_an_archive_has_the_size_that_was_told_and_arrives_part_by_part() -> None:
    parts = (bytes(CHUNK), b"\xff" * 3000, bytes(2 * CHUNK), b"")
    size, written = _written(("1.png", parts), ("1.png.certificate.json", (b"{}",)))
    assert len(b"".join(written)) == size
    assert [len(part) // CHUNK for part in written] == [1, 2, 0]  # none waits for another, but for small ones
    with ZipFile(io.BytesIO(b"".join(written))) as archive:
        assert archive.testzip() is None
        assert {each.filename: archive.read(each) for each in archive.infolist()} == {
            "1.png": b"".join(parts),
            "1.png.certificate.json": b"{}",
        }
        assert {(each.date_time, each.compress_type) for each in archive.infolist()} == {
            ((1980, 1, 1, 0, 0, 0), ZIP_STORED)
        }


@pytest.mark.parametrize("gone", [True, False])
def test_a_download_is_noted_once_all_of_it_was_taken(gone: bool) -> None:
    sent: list[Any] = []
    taken: list[bool] = []

    async def send(message: Any) -> None:
        sent.append(message)
        await asyncio.sleep(0)

    async def parts() -> AsyncIterator[bytes]:
        yield b"ab"
        while gone:
            await asyncio.sleep(0)
        yield b"c"

    async def receive() -> Any:
        while not gone or len(sent) < 2:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    answer = download(3, parts(), lambda: taken.append(True), "image/png", {})
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
    asyncio.run(answer(scope, receive, send))
    assert taken == ([] if gone else [True])
    assert b"".join(message.get("body", b"") for message in sent) == (b"ab" if gone else b"abc")
    assert (b"content-length", b"3") in sent[0]["headers"]


def test_one_request_gets_image_and_certificate(client: Any, tmp_path: Path) -> None:
    answer = client.post("/v1/releases", files=upload(photo()), headers=ZIP)
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/zip")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["content-disposition"] == 'attachment; filename="releases.zip"'
    with ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["1.png", "1.png.certificate.json"]
        archive.extractall(tmp_path)
    found = dpveil.verify(tmp_path / "1.png")
    assert (found.status, found.problems) == ("consistent", ())
    where = answer.headers["location"]
    assert client.get(f"{where}/image").content == (tmp_path / "1.png").read_bytes()


def test_several_photos_come_in_their_order(client: Any) -> None:
    photos = [photo(seed=seed) for seed in (4, 5)]
    (_, settings) = upload(photos[0]).items()
    files = [("photo", ("a.png", each, "image/png")) for each in photos] + [settings]
    key = {"Idempotency-Key": "several"}
    told = client.post("/v1/releases", files=files, headers=key).json()["photos"]
    answer = client.post("/v1/releases", files=files, headers=key | ZIP)
    assert "location" not in answer.headers
    with ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == [
            f"{number}.png{end}" for number in (1, 2) for end in ("", ".certificate.json")
        ]
        for number, each in enumerate(told, 1):
            assert archive.read(f"{number}.png") == client.get(each["release"]["image_url"]).content


def test_what_is_too_long_for_an_archive_is_fetched_alone(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST", 100)
    answer = client.post("/v1/releases", files=upload(photo()), headers=ZIP)
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/json")

"""The store by itself: whose image is read, what its file tells, and what it takes for its own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest
from service_client import photo, upload

import dpveil
from dpveil.cli import run
from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.service.answers import CHUNK, File, archive_size, download, stream_archive
from dpveil.service.keys import KeyFile, Keys, lock_keys
from dpveil.service.problems import Busy, NotFound
from dpveil.service.settings import Limits
from dpveil.service.store import DONE, FAILED, MEMORY, Store
from dpveil.service.uploads import MOST_NAMES, of_query, read_settings


@pytest.fixture(params=["memory", "file"])
def store(request: Any, tmp_path: Path) -> Iterator[Store]:
    made = Store(MEMORY if request.param == "memory" else tmp_path / "kept", Limits())
    yield made
    made.close()


def kept(store: Store, owner: str, image: bytes, *, show: bool = True) -> str:
    """Keep a release, and return its name."""
    made, _ = store.begin(owner, None, b"")
    store.keep(made.id, {"certificate": "{}", "notes": "[]", "format": "png", "sha256": "0"}, image)
    if show:
        store.show(made.id)
    return made.id


def test_a_download_ends_where_its_release_is_forgotten(store: Store) -> None:
    """The next release never takes the place of one whose image is being read."""
    first = kept(store, "alice", b"a" * 100)
    assert store.part("alice", first, 0, 50) == b"a" * 50
    row = store._image("alice", first)[0]
    store.delete(first)
    second = kept(store, "bob", b"b" * 100)
    for read in (
        lambda owner, id_: store.opening(owner, id_, 50),
        lambda owner, id_: store.part(owner, id_, 50, 50),
    ):
        with pytest.raises(NotFound):
            read("alice", first)
        with pytest.raises(NotFound):
            read("alice", second)
    assert store.part("bob", second, 50, 50) == b"b" * 50
    assert store._image("bob", second)[0] != row


def test_what_is_not_shown_is_not_read(store: Store) -> None:
    hidden: Any = kept(store, "alice", b"a", show=False)
    with pytest.raises(NotFound):
        store.part("alice", hidden, 0, 1)


def test_a_number_is_given_once_after_a_restart_too(tmp_path: Path) -> None:
    numbers = []
    for _ in range(2):
        store = Store(tmp_path / "results", Limits())
        id_ = kept(store, "alice", b"a")
        numbers.append(store._image("alice", id_)[0])
        store.delete(id_)
        store.close()
    assert numbers == [1, 2]


def test_the_file_does_not_tell_what_was_sent_without_a_key(tmp_path: Path) -> None:
    """Whoever has the file, with its secret, cannot confirm a guess of photo and settings."""
    store = Store(tmp_path / "results", Limits())
    for key in (None, None, "a"):
        store.begin("alice", key, b"digest")
    contents = [row[0] for row in store._base.execute("SELECT content FROM results ORDER BY number")]
    guesses = [store.mac("content", key, b"digest") for key in ("", "a")]
    assert len(set(contents)) == 3
    assert [content in guesses for content in contents] == [False, False, True]
    store.close()


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "results", Limits())
        kept(store, "alice", b"a")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"results", "results-wal"}
    assert set(modes.values()) == {0o600}
    store.close()


def test_what_failed_takes_no_room_and_shows_nothing(store: Store) -> None:
    """Also if it was kept before, or failed twice, or is done: then it stays."""
    held, done = kept(store, "alice", b"a" * 1000, show=False), kept(store, "alice", b"b" * 500)
    for _ in range(2):
        for id_ in (held, done, "none"):
            store.fail(id_, "problem")
    rows = store._base.execute("SELECT state, certificate, sha256, bytes FROM results ORDER BY number")
    assert rows.fetchall() == [(FAILED, None, None, 7), (DONE, "{}", "0", 504)]
    assert [store._images.size(store._numbers(id_)[0]) for id_ in (held, done)] == [None, 500]
    assert store.used == 7 + 504
    store._forget("1", [])
    assert store.used == 0


@pytest.mark.parametrize(("made", "again"), [("one", "other"), ("one", ""), ("", "one")])
def test_a_file_belongs_to_one_ledger(tmp_path: Path, made: str, again: str) -> None:
    """Another ledger, or none, does not know what was paid for: nothing is shown, nothing is forgotten."""
    store = Store(tmp_path / "results", Limits(), made)
    kept(store, "alice", b"a", show=False)
    store.close()
    with pytest.raises(OutputError, match="the file was made with another ledger"):
        Store(tmp_path / "results", Limits(), again)
    store = Store(tmp_path / "results", Limits(), made)
    assert len(store.unfinished_ids()) == 1
    store.close()


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE notes (text)",
        "CREATE TABLE version (kind, number); INSERT INTO version VALUES ('ledger', 1)",
        "CREATE TABLE version (kind, number); INSERT INTO version VALUES ('results', 2)",
        "CREATE TABLE version (kind, number)",
        "CREATE TABLE secret (value, ledger); PRAGMA user_version = 2",  # as before versions were a table
    ],
)
def test_another_database_is_left_as_it_is(tmp_path: Path, statements: str) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(statements)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="other tables than the results of this version of dpveil"):
        Store(path, Limits())
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("key", ["key", None])
def test_what_has_expired_is_made_anew_before_it_is_swept(store: Store, key: str | None) -> None:
    first, _ = store.begin("a", key, b"one")
    store.keep(first.id, {"certificate": "", "notes": "", "format": "png", "sha256": "0"}, b"image")
    store.show(first.id)
    assert store.begin("a", key, b"one")[1] == (key is None)
    store._base.execute("UPDATE results SET expires = 1")
    again, new = store.begin("a", key, b"other")
    assert new
    assert again.id != first.id
    assert (store.find("a", first.id), store.used) == (None, 0 if key else 5)
    store.sweep()
    assert store.used == 0


def test_results_that_expired_leave_room(store: Store) -> None:
    store.limits = Limits(results_bytes=100)
    kept(store, "a", b"i" * 80)
    store._base.execute("UPDATE results SET expires = 1")
    assert not store.has_room(50)
    store.make_room(50)
    assert store.has_room(50)


# Images apart from their results: each goes with its result, whatever becomes of it.


RELEASE = {"certificate": "{}", "notes": "[]", "format": "png", "sha256": "0"}
IMAGE = bytes(range(256))


@pytest.fixture(params=["memory", "file"])
def image_store(request: Any, tmp_path: Path) -> Iterator[Store]:
    made = Store(MEMORY if request.param == "memory" else tmp_path / "results", Limits())
    yield made
    made.close()


def test_what_was_deleted_while_it_was_drawn_is_not_kept(image_store: Store) -> None:
    id_ = image_store.begin("me", None, b"")[0].id
    number = image_store._numbers(id_)[0]
    image_store._forget("id = ?", [id_])
    image_store.keep(id_, RELEASE, IMAGE)
    assert image_store._images.size(number) is None


def test_an_image_and_its_result_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    image_store = Store(tmp_path / "results", Limits())
    id_ = image_store.begin("me", None, b"")[0].id
    image_store._base.execute(
        "CREATE TEMP TRIGGER full BEFORE UPDATE OF sha256 ON results BEGIN SELECT RAISE(FAIL, 'full'); END"
    )
    with pytest.raises(sqlite3.Error, match="full"):
        image_store.keep(id_, RELEASE, IMAGE)
    assert not image_store._base.in_transaction
    image_store.close()
    with closing(sqlite3.connect(tmp_path / "results")) as base:
        assert base.execute("SELECT count(*) FROM images").fetchone() == (0,)
        assert base.execute("SELECT state, bytes FROM results").fetchone() == ("working", 0)


# Answers that may be large: certificates, images part by part, and archives (`Accept:
# application/zip`).


ZIP = {"Accept": "application/zip"}


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _written(*files: tuple[str, tuple[bytes, ...]]) -> tuple[int, list[bytes]]:
    made = [File(name, sum(map(len, parts)), _parts(*parts)) for name, parts in files]

    async def all_of() -> list[bytes]:
        return [part async for part in stream_archive(made)]

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


# The file of API keys: changed by several at once, by hand, and by others than its owner.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one key, named shop."""
    keys, _ = Keys().new("shop", ["studio/shop"], 60)
    keys.write(tmp_path / "keys.json")
    return tmp_path / "keys.json"


def names(file: Path) -> set[str]:
    return {caller.name for caller in Keys.read(file).callers}


@pytest.mark.parametrize(
    ("command", "after"),
    [(["new", "other", "--subject", "album"], {"shop", "first", "other"}), (["remove", "shop"], {"first"})],
)
def test_no_change_is_lost_to_another(file: Path, command: list[str], after: set[str]) -> None:
    """A command waits for a change that was begun, and builds on it."""
    waits = threading.Thread(target=run, args=(["api-key", *command, "--keys", str(file)],))
    with lock_keys(file):
        known = Keys.read(file)
        waits.start()
        waits.join(1)  # without a lock it is done by then
        known.new("first", ["album"], 60)[0].write(file)
    waits.join()
    assert names(file) == after


def changed(file: Path, **entry: Any) -> None:
    """Append the first key once more, with other entries."""
    data = json.loads(file.read_text(encoding="utf-8"))
    data["keys"].append({**data["keys"][0], **entry})
    file.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    "subject", ["", "a//b", "/a", "a/", " a", "x" * 201, "a/" * 16 + "a", "a\u0301", 7, None]
)
def test_subjects_are_those_of_the_ledger(file: Path, subject: Any) -> None:
    if subject != "a\u0301":
        with pytest.raises(InvalidParameter, match="subject"):
            Keys().new("other", [subject], 60)
    changed(file, number="0123456789ab", subjects=[subject])
    with pytest.raises(UsageError, match="is no file of keys"):
        Keys.read(file)


def test_a_file_that_others_may_change_is_noticed_while_it_is_used(file: Path) -> None:
    keys, key = Keys().new("other", ["album"], 60)
    keys.write(file)
    used = KeyFile(file)
    assert used.caller(f"Bearer {key}").name == "other"
    file.chmod(0o666)
    with pytest.raises(Busy, match="the keys cannot be read"):
        used.caller(f"Bearer {key}")
    file.chmod(0o600)
    assert used.caller(f"Bearer {key}").name == "other"


# Settings as they arrive, without a server.


def settings(names: Sequence[str]) -> bytes:
    return b"{" + ",".join(f"{json.dumps(name)}: 0" for name in names).encode() + b"}"


def test_more_names_than_any_request_has_are_refused() -> None:
    most = [f"{number:x}" for number in range(MOST_NAMES)]
    assert len(read_settings(settings(most))) == len(of_query([(name, "") for name in most])) == MOST_NAMES
    for pairs in (settings([*most, "more"]), b'{"a": ' + settings([*most, "more"]) + b"}"):
        with pytest.raises(UsageError, match="an object has 201 settings"):
            read_settings(pairs)
    with pytest.raises(UsageError, match="an object has 201 settings"):
        of_query([(name, "") for name in [*most, "more"]])

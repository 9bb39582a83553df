"""The store by itself: whose image is read, what its file tells, and what it takes for its own."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.service.keys import Keys
from dpveil.service.limits import Limits
from dpveil.service.problems import ServiceError
from dpveil.service.store import DONE, FAILED, MEMORY, Store


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
    for id_ in (first, second):
        with pytest.raises(ServiceError, match="nothing of this name"):
            store.part("alice", id_, 50, 50)
    assert store.part("bob", second, 50, 50) == b"b" * 50
    assert store._image("bob", second)[0] != row


def test_what_is_not_shown_is_not_read(store: Store) -> None:
    hidden: Any = kept(store, "alice", b"a", show=False)
    with pytest.raises(ServiceError, match="nothing of this name"):
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
    assert store._base.execute("SELECT length(image) FROM images").fetchall() == [(500,)]
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
    image_store._forget("id = ?", [id_])
    image_store.keep(id_, RELEASE, IMAGE)
    assert image_store._base.execute("SELECT count(*) FROM images").fetchone() == (0,)
    assert image_store.used == 0


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


# The file of API keys: changed by several at once, by hand, and by others than its owner.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one key, named shop."""
    keys, _ = Keys().new("shop", ["studio/shop"], 60)
    keys.write(tmp_path / "keys.json")
    return tmp_path / "keys.json"


def changed(file: Path, **entry: Any) -> None:
    """Append the first key once more, with other entries."""
    data = json.loads(file.read_text(encoding="utf-8"))
    data["keys"].append({**data["keys"][0], **entry})
    file.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("subject", ["", "a//b", "/a", "a/", " a", "x" * 201, "a/" * 16 + "a", 7, None])
def test_subjects_are_those_of_the_ledger(file: Path, subject: Any) -> None:
    with pytest.raises(InvalidParameter, match="subject"):
        Keys().new("other", [subject], 60)
    changed(file, number="0123456789ab", subjects=[subject])
    with pytest.raises(UsageError, match="is no file of keys"):
        Keys.read(file)

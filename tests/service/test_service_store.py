"""The store by itself: whose image is read, what its file tells, and what it takes for its own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpveil.errors import OutputError
from dpveil.service.problems import NotFound
from dpveil.service.settings import Limits
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
    assert len(store.unfinished()) == 1
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

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
from dpveil.service.limits import Limits
from dpveil.service.problems import NotFound
from dpveil.service.spare import COPIES, SLACK, Spare
from dpveil.service.store import DONE, FAILED, MEMORY, Store
from dpveil.service.store_file import APPLICATION


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(MEMORY, Limits())
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


@pytest.mark.parametrize("size", [10, 300_000, 9_000_000])
def test_what_is_held_is_enough_for_a_release(tmp_path: Path, size: int) -> None:
    """The disk has what the database takes for it, even if it has a log of other changes yet."""
    store = Store(tmp_path / "results", Limits())
    for _ in range(200):
        store.begin("alice", None, b"")
    made, _ = store.begin("alice", None, b"")
    store.hold(made.id, size)
    held = os.fstat(store._spare._file.fileno()).st_blocks * 512  # type: ignore[union-attr]
    assert held >= 2 * size
    before = taken(tmp_path)
    store.keep(made.id, {"certificate": "", "notes": "", "format": "png", "sha256": "0"}, os.urandom(size))
    store.show(made.id)
    assert taken(tmp_path) - before <= held
    store.sweep()  # until then it is the next one's
    assert os.fstat(store._spare._file.fileno()).st_size == 0  # type: ignore[union-attr]
    assert len(store.part("alice", made.id, 0, size)) == size
    store.close()


def taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_what_failed_gives_its_room_on_the_disk_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "results", Limits())
    made, _ = store.begin("alice", None, b"")
    store.hold(made.id, 1000)
    store.fail(made.id, "problem")
    assert store._spare._held == {}
    store.close()


def test_room_is_held_for_each_and_given_back_once(tmp_path: Path) -> None:
    spare = Spare(tmp_path)
    for name in ("a", "b"):
        spare.hold(name, 1000)
    spare.free("a")
    spare.free("a")
    assert os.fstat(spare._file.fileno()).st_size == COPIES * 1000 + SLACK  # type: ignore[union-attr]
    spare.hold("c", 5)
    for name in ("b", "c", "none"):
        spare.free(name)
    assert os.fstat(spare._file.fileno()).st_size == 0  # type: ignore[union-attr]
    assert not [*tmp_path.iterdir()]
    spare.close()


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
    rows = store._base.execute("SELECT state, certificate, image, sha256, bytes FROM results ORDER BY number")
    assert rows.fetchall() == [(FAILED, None, None, None, 7), (DONE, "{}", b"b" * 500, "0", 504)]
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
        "CREATE TABLE notes (text); PRAGMA user_version = 1",
        "CREATE TABLE notes (text); PRAGMA user_version = 1; PRAGMA application_id = 1",
        f"CREATE TABLE notes (text); PRAGMA application_id = {APPLICATION}; PRAGMA user_version = 2",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 1",
    ],
)
def test_another_database_is_left_as_it_is(tmp_path: Path, statements: str) -> None:
    """Whatever its version: it says that it is a file of results, or it is empty."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(statements)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="the file is another database"):
        Store(path, Limits())
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_that_was_begun_is_still_taken(tmp_path: Path) -> None:
    """An empty file, and one whose process ended while it made the tables."""
    (tmp_path / "results").touch()
    for _ in range(2):
        Store(tmp_path / "results", Limits()).close()
    with closing(sqlite3.connect(tmp_path / "results")) as base:
        assert base.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        base.execute("DELETE FROM secret")
        base.commit()
    Store(tmp_path / "results", Limits()).close()


def test_a_system_that_sets_no_room_aside_releases_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    spare = Spare(tmp_path)
    spare.hold("one", 1 << 20)
    spare.free("one")
    spare.close()

"""The store by itself: whose image is read, what its file tells, and what it takes for its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpveil.service.limits import Limits
from dpveil.service.problems import NotFound
from dpveil.service.store import MEMORY, Store


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
    for read in (store.size, lambda owner, id_: store.part(owner, id_, 50, 50)):
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

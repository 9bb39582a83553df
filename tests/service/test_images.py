"""Images apart from their results: each goes with its result, whatever becomes of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpveil.service.settings import Limits
from dpveil.service.store import MEMORY, Store

RELEASE = {"certificate": "{}", "notes": "[]", "format": "png", "sha256": "0"}
IMAGE = bytes(range(256))


@pytest.fixture(params=["memory", "file"])
def store(request: Any, tmp_path: Path) -> Iterator[Store]:
    made = Store(MEMORY if request.param == "memory" else tmp_path / "results", Limits())
    yield made
    made.close()


def kept(store: Store, key: str | None = None, image: bytes = IMAGE) -> str:
    id_ = store.begin("me", key, b"")[0].id
    store.keep(id_, RELEASE, image)
    return id_


def test_a_part_is_what_was_asked_for(store: Store) -> None:
    id_ = kept(store)
    store.show(id_)
    assert store.opening("me", id_, 3) == (256, IMAGE[:3])
    assert store.opening("me", id_, 0) == (256, b"")
    assert store.opening("me", id_, 1000) == (256, IMAGE)
    assert store.part("me", id_, 7, 100) == IMAGE[7:107]


def test_an_image_goes_with_its_result(store: Store) -> None:
    """Deleted, expired, failed, made anew, in the way of others, or left by a crash: none is left behind."""
    forgets = {
        "delete": store.delete,
        "fail": lambda id_: store.fail(id_, "{}"),
        "sweep": lambda _: store.sweep(),
        "begin": lambda _: store.begin("me", "begin", b""),
        "make_room": lambda _: store.make_room(10**12),
        "recover": lambda _: store.recover(lambda _: False),
    }
    stays = kept(store, image=b"stays")
    for way, forget in forgets.items():
        id_ = kept(store, way)
        number = store._numbers(id_)[0]
        assert store._images.size(number) == 256
        if way not in ("fail", "recover"):
            store.show(id_)
        if way in ("sweep", "begin"):
            store._base.execute("UPDATE results SET expires = ? WHERE id = ?", [time.time() - 1, id_])
        if way == "make_room":
            store.fetched(id_)
        if way == "recover":
            store.show(stays)
        forget(id_)
        assert store._images.size(number) is None, way
        assert store._images.size(store._numbers(stays)[0]) == 5, way


def test_what_was_deleted_while_it_was_drawn_is_not_kept(store: Store) -> None:
    id_ = store.begin("me", None, b"")[0].id
    number = store._numbers(id_)[0]
    store._forget("id = ?", [id_])
    store.keep(id_, RELEASE, IMAGE)
    assert store._images.size(number) is None


def test_an_image_and_its_result_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "results", Limits())
    id_ = store.begin("me", None, b"")[0].id
    store._base.execute(
        "CREATE TEMP TRIGGER full BEFORE UPDATE OF sha256 ON results BEGIN SELECT RAISE(FAIL, 'full'); END"
    )
    with pytest.raises(sqlite3.Error, match="full"):
        store.keep(id_, RELEASE, IMAGE)
    assert not store._base.in_transaction
    store.close()
    with closing(sqlite3.connect(tmp_path / "results")) as base:
        assert base.execute("SELECT count(*) FROM images").fetchone() == (0,)
        assert base.execute("SELECT state, bytes FROM results").fetchone() == ("working", 0)


def test_a_number_whose_image_is_gone_is_not_found_again(store: Store) -> None:
    """As AUTOINCREMENT has it: what reads one image never gets the next."""
    first = kept(store)
    number = store._numbers(first)[0]
    store._forget("1", [])
    assert store._numbers(kept(store)) == [number + 1]

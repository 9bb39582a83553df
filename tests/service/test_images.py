"""Images apart from their results: each goes with its result, whatever becomes of it."""

from __future__ import annotations

import sqlite3
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

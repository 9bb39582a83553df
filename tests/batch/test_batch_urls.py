"""Photos and shards in fsspec's memory: what is listed, read, put, found again, and never put.

`tests/data_sets/test_s3.py` does the same with a server.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shards_made import counts, held, picture, shard

from dpveil.batch import Choices, Report, planned, release_all
from dpveil.core.urls import SCHEMES, Url, expanded, place
from dpveil.errors import DPVeilError, PhotoError, UsageError
from dpveil.io import urls
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

IN, OUT = "memory://bucket/in", "memory://bucket/out"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def store() -> Iterator[Any]:
    """Yield fsspec's memory, empty before and after."""
    fsspec = pytest.importorskip("fsspec", reason="make data-sets installs fsspec")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    yield memory
    memory.store.clear()


def released(source: str = IN, out: str = OUT, jobs: int = 1, **changes: Any) -> Report:
    settings: dict[str, Any] = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "max_pixels": 10_000,
    }
    if "ledger" in changes:
        settings["subject"] = "album"
    return release_all(planned([place(source)], place(out)), Choices(**settings | changes), jobs=jobs)


def names(store: Any, prefix: str = "/bucket/out") -> list[str]:
    return sorted(name.removeprefix(f"{prefix}/") for name in store.find(prefix))


def waiting(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "state").rglob("*") if path.is_file() and path.suffix != ".jsonl")


def put(store: Any, *photos: str) -> None:
    for number, name in enumerate(photos):
        store.pipe_file(f"/bucket/in/{name}", picture(8 + number))


# Places


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://key:marker@bucket/in", "has credentials in it"),
        ("s3://marker@bucket", "has credentials in it"),
        ("http://host/in", "is no place"),
        ("simplecache::s3://bucket/in", None),
        ("file://host/in", "is no place"),
        ("s3://bucket/../in", "is no plain URL"),
        ("s3://bucket//in", "is no plain URL"),
        ("s3://", "is no plain URL"),
        ("s3://bucket/a?versionId=3", "is no plain URL"),
        ("s3://bucket/a\n", "is no plain URL"),
    ],
)
def test_places_are_refused_in_a_line_without_secrets(text: str, problem: str | None) -> None:
    if problem is None:
        assert type(place(text)) is type(Path())
        return
    with pytest.raises(UsageError) as told:
        place(text)
    assert problem in told.value.message
    assert "marker" not in str(told.value)


def test_places_are_named_joined_and_sent() -> None:
    made = place("s3://bucket/in/a.tar")
    assert isinstance(made, Url)
    assert str(made / "x.png") == "s3://bucket/in/a.tar/x.png"
    assert str(made.relative_to(made.parent)) == "a.tar"
    assert str(pickle.loads(pickle.dumps(made))) == str(made)
    assert not made.exists()
    assert place("file:///photos/a.jpg") == Path("/photos/a.jpg")
    assert set(SCHEMES) == set(urls.SYSTEMS)


def test_numbers_in_braces_stand_for_names() -> None:
    found = expanded(place("s3://bucket/{1..2}/a-{08..10}.tar"))
    assert [str(each) for each in found[:3]] == [f"s3://bucket/1/a-{n}.tar" for n in ("08", "09", "10")]
    assert len(found) == 6
    for text in ("s3://bucket/{1..999999}/{1..999999}", "s3://bucket/{3..1}"):
        with pytest.raises(UsageError, match="stands for"):
            expanded(place(text))
    assert expanded(Path("{1..2}")) == [Path("{1..2}")]


# Photos


def test_a_prefix_is_released_beside_its_certificates_and_a_rerun_does_what_is_missing(store: Any, tmp_path: Path) -> None:
    put(store, "a.png", "deep/b.jpg", ".hidden.png", "words.txt")
    first = released()
    assert counts(first) == (2, 0, 0)
    wanted = ["a.png.png", "deep/b.jpg.png"]
    assert names(store) == sorted([*wanted, *(f"{name}.certificate.json" for name in wanted)])
    assert [str(entry.output) for entry in first.released] == [f"{OUT}/{name}" for name in wanted]
    before = {name: store.cat_file(f"/bucket/out/{name}") for name in names(store)}
    put(store, "a.png", "deep/b.jpg")
    store.pipe_file("/bucket/in/c.png", picture(12))
    assert waiting(tmp_path) == []
    for name in ("a.png", "deep/b.jpg"):  # memory tells no versions: written anew is replaced
        assert name
    again = released()
    assert counts(again)[0] == 1
    assert before.items() <= {name: store.cat_file(f"/bucket/out/{name}") for name in names(store)}.items()

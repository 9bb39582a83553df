"""Photos and shards in fsspec's memory: what is listed, read, put, found again, and never put.

`tests/data_sets/test_s3.py` does the same with a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shards_made import counts, held, picture, shard

from dpveil.batch.remote_output import plan_remote_tasks
from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.shards import Shards
from dpveil.batch.tasks import RunSettings
from dpveil.core.urls import Url, place
from dpveil.errors import DPVeilError, PhotoError, UsageError
from dpveil.io import urls
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

pytestmark = pytest.mark.usefixtures("elsewhere")

IN, OUT = "memory://bucket/in", "memory://bucket/out"


@pytest.fixture
def store() -> Iterator[Any]:
    """Yield fsspec's memory, empty before and after."""
    fsspec = pytest.importorskip("fsspec", reason="needs the extra remote")
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
    return release_all(
        plan_remote_tasks([place(source)], place(out)), RunSettings(**settings | changes), jobs=jobs
    )


def names(store: Any, prefix: str = "/bucket/out") -> list[str]:
    return sorted(name.removeprefix(f"{prefix}/") for name in store.find(prefix))


def waiting(tmp_path: Path) -> list[str]:
    found = (path for path in (tmp_path / "state/dpveil/urls").rglob("*") if path.is_file())
    return sorted(path.name for path in found)


def put(store: Any, *photos: str) -> None:
    for number, name in enumerate(photos):
        store.pipe_file(f"/bucket/in/{name}", picture(8 + number))


# Places


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://key:marker@bucket/in", "has credentials in it"),
        ("http://host/in", "is no place"),
        ("file://host/in", "is no place"),
        ("s3://bucket//in", "is no plain URL"),
        ("s3://bucket/a?versionId=3", "is no plain URL"),
        ("s3://bucket/a\\b", "is no plain URL"),
        ("\ts3://key:marker@bucket/in", "has credentials in it"),
        ("S3:///key:marker@bucket/in", "has credentials in it"),
        ("simplecache::s3://key:marker@bucket/in", "has credentials in it"),
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


# Photos


def test_a_prefix_is_released_beside_its_certificates_and_a_rerun_does_what_is_missing(
    store: Any, tmp_path: Path
) -> None:
    put(store, "a.png", "deep/b.jpg", ".hidden.png", "words.txt", "out.png")
    first = released()
    assert counts(first) == (3, 0, 0)
    wanted = ["a.png", "deep/b.jpg", "out.png"]
    assert names(store) == sorted([*wanted, *(f"{name}.certificate.json" for name in wanted)])
    assert [str(entry.output) for entry in first.released] == [f"{OUT}/{name}" for name in wanted]
    assert first.released[0].to_json()["certificate"] == f"{OUT}/a.png.certificate.json"
    before = everything(store)
    originals = {picture(8 + number) for number in range(5)}
    assert not originals & set(before.values())
    store.pipe_file("/bucket/in/c.png", picture(12))
    assert counts(released()) == (1, 3, 0)
    assert before.items() <= everything(store).items()
    assert waiting(tmp_path) == []


def everything(store: Any) -> dict[str, bytes]:
    return {name: store.cat_file(f"/bucket/out/{name}") for name in names(store)}


def test_what_exists_is_replaced_with_force_alone(store: Any) -> None:
    put(store, "a.png")
    store.pipe_file("/bucket/out/a.png", b"mine")
    (failed,) = released().failed
    assert failed.failure is not None
    assert failed.failure.message == f"{OUT}/a.png exists and is not a release with these settings"
    assert everything(store) == {"a.png": b"mine"}
    assert counts(released(force=True)) == (1, 0, 0)
    first = everything(store)
    assert counts(released(force=True)) == (1, 0, 0)
    assert not set(first.values()) & set(everything(store).values())


def test_an_object_is_replaced_where_that_is_wanted_alone(store: Any) -> None:
    target = place(f"{OUT}/a.png")
    assert isinstance(target, Url)
    urls.put(target, b"first", replace=False)
    with pytest.raises(FileExistsError):
        urls.put(target, b"other", replace=False)
    assert everything(store) == {"a.png": b"first"}
    urls.put(target, b"other", replace=True)
    assert everything(store) == {"a.png": b"other"}


def test_releases_are_no_photos_even_among_them(store: Any) -> None:
    put(store, "a.png", "b.png")
    for expected in ((2, 0, 0), (0, 2, 0)):
        assert counts(released(IN, f"{IN}/out")) == expected
    assert plan_remote_tasks([place(f"{IN}/out")], Path("home")) == []
    assert len(plan_remote_tasks([place(IN)], Path("home"))) == 2


def test_a_photo_that_changes_while_it_is_read_is_refused(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a.png")
    tasks = plan_remote_tasks([place(IN)], place(OUT))
    store.pipe_file("/bucket/in/a.png", picture(20))
    with pytest.raises(PhotoError, match="has changed since the run began"):
        tasks[0].read(10_000)
    (task,) = plan_remote_tasks([place(IN)], place(OUT))
    memory = pytest.importorskip("fsspec.implementations.memory")
    read = memory.MemoryFile.read

    def changing(self: Any, *given: Any) -> bytes:
        found: bytes = read(self, *given)
        store.pipe_file("/bucket/in/a.png", picture(30))
        return found

    monkeypatch.setattr(memory.MemoryFile, "read", changing)
    with pytest.raises(PhotoError, match="has changed since the run began"):
        task.read(10_000)


def ledger(tmp_path: Path) -> Any:
    made = Ledger(f"sqlite:///{tmp_path}/ledger.db", create=True)
    made.set_limit("album", Limit("pure", epsilon=99))
    return made


@pytest.mark.parametrize("after", range(4))
def test_a_release_that_could_not_be_put_waits_and_is_not_paid_for_again(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The bucket takes so many objects, and then no other: what was drawn is put by the next run."""
    put(store, "a.png", "b.png")
    left = [after]
    pipe = type(store).pipe_file

    def refusing(self: Any, path: str, value: bytes, **more: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise PermissionError("marker")
        pipe(self, path, value, **more)

    with ledger(tmp_path) as paying:
        with monkeypatch.context() as patch:
            patch.setattr(type(store), "pipe_file", refusing)
            first = released(ledger=paying)
        assert first.stopped
        assert "releases that could not be put wait in" in first.notes[-1]
        assert "is not allowed (403)" in str([entry.to_json() for entry in first.failed])
        assert "marker" not in str([entry.to_json() for entry in first.entries])
        put_already = everything(store)
        assert len(put_already) == after
        assert paying.check().debits in (1, 2)
        assert len(waiting(tmp_path)) in (2, 4)
        released(ledger=paying, dry=True)
        assert everything(store) == put_already
        again = released(ledger=paying)
        assert counts(again)[0] + counts(again)[1] == 2
        assert put_already.items() <= everything(store).items()
        assert len(everything(store)) == 4
        assert waiting(tmp_path) == []
        assert paying.check().debits == 2 + len(first.discarded) <= 3  # one was drawn while the first was put


@pytest.mark.parametrize("case", ["new", "removed", "grown"])
def test_a_shard_that_appears_meanwhile_stays(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    shard("in.tar", [("p.png", picture(9))])
    store.pipe_file("/bucket/in/s.tar", Path("in.tar").read_bytes())
    if case != "new":
        assert counts(released()) == (1, 0, 0)
        shard("in.tar", [("p.png", picture(9)), ("q.png", picture(10))])
        store.pipe_file("/bucket/in/s.tar", Path("in.tar").read_bytes())
    pack = Shards.pack

    def packing(self: Any, report: Report) -> None:
        if case == "removed":
            store.rm_file("/bucket/out/s.tar")
        elif case == "new":
            store.pipe_file("/bucket/out/s.tar", b"other")
        pack(self, report)

    with monkeypatch.context() as patch:
        patch.setattr(Shards, "pack", packing)
        report = released()
    if case != "new":
        assert counts(report) == (1, 1, 0)
        assert report.notes == []
        assert counts(released()) == (0, 2, 0)
        assert len(waiting(tmp_path)) == 0
        return
    assert report.stopped
    assert "exists already" in report.notes[-1]
    assert everything(store) == {"s.tar": b"other"}
    assert len(waiting(tmp_path)) >= 2
    store.rm_file("/bucket/out/s.tar")
    assert sum(counts(released())) == counts(report)[0] + counts(report)[1]
    assert waiting(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError("marker"), "is not allowed (403)"),
        (RuntimeError("marker"), "cannot be read or written (RuntimeError)"),
    ],
)
def test_a_list_that_is_refused_or_cut_off_releases_nothing(
    store: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    put(store, "a.png", "b.png")

    def cut_off(*given: Any, **more: Any) -> Any:
        raise error

    monkeypatch.setattr(type(store), "find", cut_off)
    for out in (place(OUT), Path("out")):
        with pytest.raises(DPVeilError) as raised:
            plan_remote_tasks([place(IN)], out)
        assert raised.value.exit_code == 4
    assert told in raised.value.message
    assert "marker" not in str(raised.value)


def test_a_run_that_prices_its_photos_puts_nothing(store: Any, tmp_path: Path) -> None:
    put(store, "a.png")
    assert len(released(dry=True).priced) == 1
    assert names(store) == []
    assert not (tmp_path / "state").exists()
    released()
    assert len(released(dry=True).skipped) == 1


def test_folders_and_urls_go_both_ways_and_shards_with_them(store: Any) -> None:
    Path("in").mkdir()
    Path("in/a.png").write_bytes(picture())
    shard("in/s.tar", [("p.png", picture(9)), ("q.png", picture(10))])
    assert counts(released("in")) == (3, 0, 0)
    assert names(store) == ["a.png", "a.png.certificate.json", "s.tar"]
    assert counts(released("in")) == (0, 3, 0)
    store.pipe_file("/bucket/in/s.tar", Path("in/s.tar").read_bytes())
    assert counts(released(f"{IN}/", "home")) == (2, 0, 0)
    assert sorted(held("home/s.tar")) == sorted(
        [f"{name}.png{suffix}" for name in "pq" for suffix in ("", ".certificate.json")]
    )
    assert counts(released(f"{IN}/s.tar", f"{OUT}/one.tar")) == (2, 0, 0)


def test_wrong_calls_are_refused_before_anything_is_read(store: Any) -> None:
    put(store, "a.png", "b.png", "a.png.png")
    for source, out, told in (
        (IN, IN, "is the input"),
        (IN, f"{OUT}/a.png", "the name of one picture"),
        (IN, f"{OUT}/a.tar", "the name of one shard"),
        (f"{IN}/a.png", IN, "is one of the inputs"),
    ):
        with pytest.raises(UsageError, match=told):
            plan_remote_tasks([place(source)], place(out))
    with pytest.raises(UsageError, match="that of one process"):
        released(jobs=2)
    (failed,) = released(f"{IN}/missing.png").failed
    assert failed.failure is not None
    assert failed.failure.message == f"{IN}/missing.png does not exist"


def test_a_photo_that_was_replaced_is_refused(store: Any) -> None:
    put(store, "a.png")
    released()
    store.pipe_file("/bucket/in/a.png", picture(20))
    (failed,) = released().failed
    assert failed.failure is not None
    assert "is a release of another photo, or of" in failed.failure.message
    assert f"{OUT}/a.png" in failed.failure.message

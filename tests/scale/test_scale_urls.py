"""Objects by URL for workers, without a cluster and without fsspec: keys, versions, refusals and reruns.

`test_scale_s3.py` does the same with Ray and a server.
"""

from __future__ import annotations

import json
import pickle
import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scale_made import PIX, png, releases

from dpveil.batch.tasks import photos_in
from dpveil.cli import run
from dpveil.core.urls import Status, Url, place, rebuild_url
from dpveil.io import urls
from dpveil.scale import files, release_files
from dpveil.scale.files import Setup, Worker


class Opened(BytesIO):
    """An object as fsspec opens it."""

    details: Any


class Bucket:
    """What is asked of s3fs: a list, a look, and an open object. `opened` are the objects that were read."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.opened: list[str] = []

    def _found(self, key: str) -> dict[str, Any]:
        data = self.objects[key]
        return {"type": "file", "size": len(data), "ETag": f'"{sha256(data).hexdigest()}"'}

    def info(self, name: str) -> dict[str, Any]:
        key = name.removeprefix("bucket/")
        if key not in self.objects:
            raise FileNotFoundError
        return self._found(key)

    def find(self, prefix: str, detail: bool) -> dict[str, Any]:
        prefix = prefix.removeprefix("bucket/") + "/"
        return {f"bucket/{key}": self._found(key) for key in self.objects if key.startswith(prefix)}

    def open(self, name: str, _: str, **more: Any) -> Opened:
        key = name.removeprefix("bucket/")
        self.opened.append(key)
        if key not in self.objects:
            raise FileNotFoundError
        file = Opened(self.objects[key])
        file.details = self._found(key)
        return file


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket()
    made.objects = {f"in/{number}.png": png(number) for number in range(3)}
    monkeypatch.setattr(urls, "_system", lambda scheme: made)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker in this process in the place of Ray's."""

    def rows(setup: Setup, todo: Any, workers: int) -> Any:
        worker = Worker(pickle.loads(pickle.dumps(setup)))  # noqa: S301
        for each in todo:
            [row] = worker([(each.key, each.stamp, each.key)])
            yield {"status": row.status, "problem": row.problem}

    errors = SimpleNamespace(RayError=ChildProcessError)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(exceptions=errors))
    monkeypatch.setitem(sys.modules, "ray.exceptions", errors)
    monkeypatch.setattr(files, "connect_ray", lambda: None)
    monkeypatch.setattr(files, "check_shared", lambda setup: None)
    monkeypatch.setattr(files, "_rows", rows)


def listed(text: str = "s3://bucket/in/") -> list[Path]:
    return photos_in([place(text)])


def released(*photos: Path) -> Any:
    return release_files(photos, **PIX, store="store", workers=1)


def statuses(report: Any) -> list[str]:
    return [entry.status for entry in report.entries]


def test_the_key_is_the_url_and_the_stamp_what_was_listed(bucket: Bucket) -> None:
    first = [files._Input.of(path) for path in listed()]
    assert [each.key for each in first] == [f"s3://bucket/in/{number}.png" for number in range(3)]
    for each in first:
        assert isinstance(each.path, Url)
        assert each.path.listed is not None
        assert Status(*map(int, each.stamp.split())) == each.path.listed
        assert each.refusal is None
    bucket.objects["in/1.png"] = bytes(len(bucket.objects["in/1.png"]))  # of the same size
    second = [files._Input.of(path) for path in listed()]
    assert [one.name == other.name for one, other in zip(first, second, strict=True)] == [True, False, True]
    assert bucket.opened == []


def test_what_no_worker_gets_is_a_row(bucket: Bucket) -> None:
    bad = rebuild_url("s3://bucket/in/#1", None, False, ("has no plain name", "rename it"))
    for path, told in ((bad, "#1 has no plain name"), (Url("s3://bucket/in/0.png"), "was not listed")):
        row = files._Input.of(path).refusal
        assert row is not None
        assert (row.status, row.error) == ("failed", "PhotoError")
        assert told in row.problem
    row = files._Input.of(Path("/in/\udc80.png")).refusal
    assert row is not None
    assert "no UTF-8" in row.problem


def test_a_rerun_reads_nothing_that_is_finished(bucket: Bucket, alone: None, tmp_path: Path) -> None:
    bucket.objects["in/bad.png"] = b"no photo"
    (tmp_path / "here.png").write_bytes(png(9))
    given = [tmp_path / "here.png", *listed()]
    first = released(*given)
    assert statuses(first) == ["released"] * 4 + ["failed"]
    assert "s3://bucket/in/bad.png" in first.entries[-1].failure.message
    assert len(releases(tmp_path / "store")) == 4
    told = [json.loads(line) for line in (tmp_path / "store" / "failed.jsonl").read_text().splitlines()]
    assert [row["key"] for row in told] == ["s3://bucket/in/bad.png"]
    contents = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not set(bucket.objects.values()) & set(contents)
    bucket.opened.clear()
    assert statuses(released(*given)) == ["skipped"] * 4 + ["failed"]
    assert bucket.opened == ["in/bad.png"]
    bucket.objects["in/1.png"] = png(20)
    bucket.opened.clear()
    assert statuses(released(*listed())) == ["skipped", "released", "skipped", "failed"]
    assert bucket.opened == ["in/1.png", "in/bad.png"]


def test_an_object_that_is_another_than_was_listed_fails(bucket: Bucket, alone: None, tmp_path: Path) -> None:
    photos = listed()
    bucket.objects["in/0.png"] = png(30)
    del bucket.objects["in/1.png"]
    report = released(*photos)
    assert statuses(report) == ["failed", "failed", "released"]
    assert "s3://bucket/in/0.png has changed since the run began" in report.entries[0].failure.message
    assert "does not exist (404)" in report.entries[1].failure.message
    assert len(releases(tmp_path / "store")) == 1
    assert statuses(released(*listed())) == ["released", "skipped"]


def test_a_store_by_url_is_refused_in_a_line(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["obfuscate", "s3://bucket/in/", "--engine", "ray", "--method", "dp-pix", "--epsilon", "1"]
    assert run([*call, "--block", "8", "--out", "s3://bucket/out/"]) == 2
    assert capsys.readouterr().err == (
        "dpveil: --out s3://bucket/out has no locks, which a store of --engine ray needs: name a folder that"
        " all machines see, and copy its releases later\n"
    )
    assert not list(tmp_path.iterdir())

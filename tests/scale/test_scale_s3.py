"""A bucket of a server of S3 on this machine, released by Ray through the command line."""

from __future__ import annotations

import json
import os
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from budgets import made, url_of
from scale_made import PIX, paid, png, releases

from dpveil.batch.tasks import photos_in
from dpveil.cli import run
from dpveil.core.urls import place
from dpveil.io import urls
from dpveil.scale import release_files
from s3_made import MARKERS, SETTINGS, served

pytestmark = pytest.mark.filterwarnings("ignore")

METHOD = ("--method", "dp-pix", "--epsilon", "1", "--block", "8")
PHOTOS = 8


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the log of a server."""
    for name in ("boto3", "moto", "s3fs"):  # seconds, if every process that collects tests imported them
        pytest.importorskip(name)
    path = tmp_path_factory.mktemp("server") / "log"
    with served(path) as address, pytest.MonkeyPatch.context() as patched:
        for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": address}.items():
            patched.setenv(name, value)
        yield path
    urls._system.cache_clear()


@pytest.fixture(scope="module")
def cluster(log: Path) -> Iterator[None]:
    """A cluster of two cores whose workers reach the server."""
    ray = pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def client(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    reset = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset"
    urllib.request.urlopen(urllib.request.Request(reset, method="POST"))  # noqa: S310
    found = pytest.importorskip("boto3").client("s3")
    found.create_bucket(Bucket="bucket")
    for number in range(PHOTOS):
        found.put_object(Bucket="bucket", Key=f"in/{number}.png", Body=png(number))
    return found


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, int], str]]:
    """Runs the command line into a store: its exit code, how many photos of each kind, and stderr."""
    ledger = ("--ledger", url_of(tmp_path / "budget.db"), "--subject", "album")

    def call(source: str, out: str = "store") -> tuple[int, dict[str, int], str]:
        code = run(["obfuscate", source, "--out", out, "--engine", "ray", *METHOD, *ledger, "--json"])
        said = capsys.readouterr()
        assert not any(marker in said.out + said.err for marker in MARKERS)
        told = json.loads(said.out)
        for kind in ("notes", "error", "hint"):
            told.pop(kind, None)
        rows = {kind: len(found) for kind, found in told.items() if found}
        return code, rows, said.err

    return call


def read(log: Path, since: int) -> set[str]:
    """Return the objects that were read since the log had so many bytes."""
    lines = log.read_bytes()[since:].decode().splitlines()
    return {line.split("GET /bucket/")[1].split(" ")[0] for line in lines if "GET /bucket/in/" in line}


@pytest.mark.usefixtures("cluster")
def test_a_prefix_is_released_and_a_rerun_reads_nothing_that_is_finished(
    client: Any, log: Path, shell: Any, tmp_path: Path
) -> None:
    ledger = made(tmp_path / "budget.db", limit=99)
    client.put_object(Bucket="bucket", Key="in/deep/bad.jpg", Body=b"no photo")
    client.put_object(Bucket="bucket", Key="in/words.txt", Body=b"words")
    code, counts, _ = shell("s3://bucket/in/")
    assert (code, counts) == (1, {"released": PHOTOS, "failed": 1})
    assert len(releases(tmp_path / "store")) == PHOTOS
    everything = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not {png(number) for number in range(PHOTOS)} & set(everything)
    assert not any(marker.encode() in each for marker in MARKERS for each in everything)
    [failed] = (tmp_path / "store" / "failed.jsonl").read_text().splitlines()
    assert json.loads(failed)["key"] == "s3://bucket/in/deep/bad.jpg"
    assert len(read(log, 0)) == PHOTOS + 1
    client.put_object(Bucket="bucket", Key="in/3.png", Body=png(300))
    client.delete_object(Bucket="bucket", Key="in/deep/bad.jpg")
    since = log.stat().st_size
    assert shell("s3://bucket/in/")[:2] == (0, {"released": 1, "skipped": PHOTOS - 1})
    assert read(log, since) == {"in/3.png"}
    assert paid(ledger) == (PHOTOS + 1, 0)


@pytest.mark.usefixtures("cluster")
def test_an_object_that_changed_since_it_was_listed_is_not_paid_for(client: Any, tmp_path: Path) -> None:
    ledger = made(tmp_path / "budget.db", limit=99)
    photos = photos_in([place("s3://bucket/in/")])
    client.put_object(Bucket="bucket", Key="in/0.png", Body=png(100))
    client.delete_object(Bucket="bucket", Key="in/1.png")
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    report = release_files(photos, **PIX, store=tmp_path / "store", **paying)
    told = [entry.failure.message for entry in report.entries if entry.failure is not None]
    assert told == [
        "s3://bucket/in/0.png has changed since the run began",
        "s3://bucket/in/1.png does not exist (404)",
    ]
    assert len(releases(tmp_path / "store")) == PHOTOS - 2
    assert paid(ledger) == (PHOTOS - 2, 0)


def test_what_cannot_be_done_is_a_line(client: Any, shell: Any, tmp_path: Path) -> None:
    """All of it is noticed before there is a cluster."""
    ray = pytest.importorskip("ray")
    ledger = made(tmp_path / "budget.db", limit=99)
    for source, out, code, problem in (
        ("s3://nothing/in/", "store", 4, "s3://nothing/in does not exist (404)"),
        ("s3://bucket/in/", "s3://bucket/out/", 2, "has no locks"),
        ("s3://key-marker@bucket/in/", "store", 2, "has credentials in it"),
    ):
        found, counts, told = shell(source, out)
        assert (found, counts, told.count("\n")) == (code, {}, 1)
        assert problem in told
        assert not ray.is_initialized()
        assert not (tmp_path / "store").exists()
    assert paid(ledger) == (0, 0)

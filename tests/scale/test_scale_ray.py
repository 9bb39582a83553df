"""Ray Data on this machine: rows, files, the command line, and settings that a cluster cannot have."""

import json
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from budgets import made, url_of
from scale_made import PIX, Endless, plain, png, releases

from dpveil.cli import run
from dpveil.errors import UsageError
from dpveil.scale.files import Setup, connect_ray, release_files


def test_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"dpveil\[scale\]"):
        release_files([], **PIX, store=tmp_path)


@pytest.mark.parametrize(("given", "address"), [(None, "local"), ("", "local"), ("head:6379", "head:6379")])
def test_only_the_cluster_that_is_named_is_joined(monkeypatch, given, address):
    told = []
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda where, **_: told.append(where))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", ray)
    monkeypatch.setenv("RAY_ADDRESS", given) if given is not None else monkeypatch.delenv(
        "RAY_ADDRESS", False
    )
    connect_ray()
    assert told == [address]


@pytest.fixture(scope="module")
def cluster():
    """Return Ray, with a cluster of two cores."""
    found = pytest.importorskip("ray")
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        patched.setenv("PYTHONPATH", paths)  # workers have the finders of tests, too
        found.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield found
    found.shutdown()


pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_photo_that_never_ends_fails_and_the_others_are_released(cluster, tmp_path):
    photos = [tmp_path / f"p{number}.png" for number in range(3)]
    for path, data in zip(photos, (plain(255), png(1), png(2)), strict=True):
        path.write_bytes(data)
    report = release_files(photos, **PIX, regions=[Endless()], store=tmp_path / "store", seconds=2)
    assert [entry.status for entry in report.entries] == ["failed", "released", "released"]
    assert "out of time" in report.entries[0].failure.message


def test_the_command_line_skips_what_is_finished_without_reading_it(cluster, tmp_path, capsys):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(3):
        (photos / f"{number}.png").write_bytes(png(number))
    (photos / "bad.png").write_bytes(b"no photo")
    call = [
        "obfuscate",
        str(photos),
        "--out",
        str(tmp_path / "store"),
        "--engine",
        "ray",
        "--method",
        "dp-pix",
    ]
    call += ["--epsilon", "1", "--block", "8", "--jobs", "1", "--json"]

    def counts():
        code = run(call)
        told = json.loads(capsys.readouterr().out)
        return code, {name: len(rows) for name, rows in told.items() if rows}

    assert counts() == (1, {"released": 3, "failed": 1})
    assert len(releases(tmp_path / "store")) == 3
    failed = (tmp_path / "store" / "failed.jsonl").read_text().splitlines()
    assert [json.loads(line)["key"] for line in failed] == [str(photos / "bad.png")]
    (photos / "0.png").write_bytes(png(7))
    (photos / "bad.png").unlink()
    status = (photos / "1.png").stat()
    (photos / "1.png").write_bytes(bytes(status.st_size))  # no photo any more, and nothing looks at it
    os.utime(photos / "1.png", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert counts() == (0, {"released": 1, "skipped": 2})
    assert len(releases(tmp_path / "store")) == 4
    for more in (["--seed", "1"], ["--force"], ["--names", "number"], ["--if-none", "copy"]):
        assert run(call + more) == 2
    assert run([word.replace("ray", "rya") if word == "ray" else word for word in call]) == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert run([*call[:2], "--out", str(tmp_path / "other"), *call[4:]]) == 2


def test_a_ledger_in_a_file_is_for_one_machine(cluster, tmp_path, monkeypatch):
    made(tmp_path / "budget.db")
    machines = [{"Alive": True, "NodeManagerAddress": name} for name in ("10.0.0.1", "10.0.0.2")]
    monkeypatch.setattr(cluster, "nodes", lambda: machines)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    with pytest.raises(UsageError, match="is for one machine"):
        release_files([], **PIX, store=tmp_path / "store", **paying)


def test_without_the_store_on_a_worker_a_run_stops(cluster, tmp_path, monkeypatch):
    photo = tmp_path / "photo.png"
    photo.write_bytes(png(0))
    ready = Setup.of

    def moved(*given, **more):
        setup = ready(*given, **more)
        (tmp_path / "store" / "key").write_bytes(bytes(32))
        return setup

    monkeypatch.setattr(Setup, "of", moved)
    report = release_files([photo], **PIX, store=tmp_path / "store")
    assert [entry.status for entry in report.entries] == ["untried"]
    assert report.stopped
    assert not list((tmp_path / "store").rglob("*.png"))

"""Ray Data on this machine: rows, files, the command line, and settings that a cluster cannot have."""

import json
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from budgets import made, url_of
from scale_made import PIX, Dark, Endless, paid, plain, png, releases

from dpveil.cli import run
from dpveil.errors import InvalidParameter, UsageError
from dpveil.scale import Setup, release, release_files
from dpveil.scale.files import connect_ray


def test_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for call in (release, release_files):
        with pytest.raises(UsageError, match=r"dpveil\[scale\]"):
            call([], **PIX, store=tmp_path)


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


def data(ray, contents, **more):
    pyarrow = pytest.importorskip("pyarrow")
    names = [f"p{number}" for number in range(len(contents))]
    columns = {"bytes": pyarrow.array(contents, pyarrow.binary()), "path": names}
    return ray.data.from_arrow(pyarrow.table({**columns, **more}))


def test_every_row_is_released_or_told_and_another_run_draws_nothing(cluster, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    given = [png(0), plain(0), b"no photo", png(1), None, png(0)]
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album", "store": tmp_path / "store"}
    dataset = data(cluster, given, label=list(range(6)))
    first, again = (
        sorted(
            release(dataset, **PIX, regions=[Dark()], keep=["label"], **paying).take_all(),
            key=lambda row: row["label"],
        )
        for _ in range(2)
    )
    assert first == again
    assert [row["status"] for row in first] == [
        "released",
        "no_region",
        "failed",
        "released",
        "failed",
        "released",
    ]
    assert [row["path"] for row in first] == [f"p{number}" for number in range(6)]
    assert set(first[0]) == {"path", "label", "release", "status", "problem"}
    assert releases(tmp_path / "store") == {row["release"] for row in first if row["release"]}
    assert [bool(row["problem"]) for row in first] == [row["status"] != "released" for row in first]
    assert paid(ledger) == (3, 0)


def test_a_photo_that_never_ends_fails_and_the_others_are_released(cluster, tmp_path):
    dataset = data(cluster, [plain(255), png(1), png(2)])
    rows = release(dataset, **PIX, regions=[Endless()], store=tmp_path / "store", seconds=2).take_all()
    found = {row["path"]: (row["status"], row["problem"]) for row in rows}
    assert [found[f"p{number}"][0] for number in range(3)] == ["failed", "released", "released"]
    assert "out of time" in found["p0"][1]


def test_no_column_that_could_hold_an_original_is_kept(cluster, tmp_path):
    dataset = data(cluster, [png(0)], raw=[b"x"], many=[[1]], status=["x"])
    for keep in (["raw"], ["many"], ["bytes"], ["status"], ["nothing"], "path"):
        with pytest.raises(InvalidParameter):
            release(dataset, **PIX, store=tmp_path / "store", keep=keep)
    for names in ({"column": "path"}, {"key": "raw"}, {"key": "bytes"}):
        with pytest.raises(InvalidParameter):
            release(dataset, **PIX, store=tmp_path / "store", **names)
    with pytest.raises(InvalidParameter, match="is no data set of Ray"):
        release([png(0)], **PIX, store=tmp_path / "store")


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
    call += ["--epsilon", "1", "--block", "8", "--json"]

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


def test_a_column_of_daft(tmp_path):
    daft = pytest.importorskip("daft")
    pyarrow = pytest.importorskip("pyarrow")
    from dpveil.scale import Mapper

    text = daft.DataType.string()
    mapper = Mapper(Setup.of(**PIX, store=tmp_path / "store"))

    @daft.udf(
        return_dtype=daft.DataType.struct({"path": text, "release": text, "status": text, "problem": text})
    )
    def released(path, photo):
        rows = mapper(pyarrow.table({"path": path.to_arrow(), "bytes": photo.to_arrow()}))
        return rows.to_struct_array()

    frame = daft.from_pydict({"path": ["a", "b", "c"], "bytes": [png(0), b"no photo", png(1)]})
    rows = frame.select(released(frame["path"], frame["bytes"]).alias("row")).to_pydict()["row"]
    assert [row["status"] for row in rows] == ["released", "failed", "released"]
    assert releases(tmp_path / "store") == {row["release"] for row in rows if row["release"]}

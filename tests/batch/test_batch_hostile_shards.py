"""Shards that somebody made to harm, or that change under a run; and what is gathered for them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from shards_made import counts, held, link, picture, released, shard

from dpveil.batch import away
from dpveil.batch import shards as batch_shards
from dpveil.batch.releasing import release_all
from dpveil.batch.task import Choices
from dpveil.batch.tasks import plan_tasks
from dpveil.errors import OutputError, UsageError
from dpveil.io.refused import Refused
from dpveil.io.tar import Member, members
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

KINDS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
END = bytes(1024)
LONG = "/".join(["a" * 60, "ü" * 20, "b" * 60, "0.png"])
"""A name that takes an extended header, or a prefix."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def told(name: str, size: int = 0, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size = size
    for key, value in more.items():
        setattr(made, key, value)
    return made


def listed(contents: bytes) -> list[Member]:
    Path("listed.tar").write_bytes(contents)
    with Path("listed.tar").open("rb") as file:
        return list(members(file, len(contents)))


def reasons(report: object) -> str:
    return " ".join(str(entry.to_json()) for entry in report.failed)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_those_that_python_finds(kind: int) -> None:
    made = io.BytesIO()
    name = LONG.replace("ü", "u") if kind == tarfile.USTAR_FORMAT else LONG
    with tarfile.open(fileobj=made, mode="w", format=kind) as file:
        for each, size, time in ((name, 700, 5), ("c", 0, 8**11 - 1), ("d" * 100, 512, 1), ("e/", 0, 2)):
            file.addfile(told(each, size, mtime=time), io.BytesIO(bytes(size)))
        file.addfile(link("f", tarfile.SYMTYPE)[1])
    found = listed(made.getvalue())
    made.seek(0)
    with tarfile.open(fileobj=made) as file:
        expected = [(each.name, each.size, each.mtime, each.isreg()) for each in file]
        starts = [each.offset_data for each in file if each.size]
    assert [(each.name, each.size, each.time) for each in found] == [e[:3] for e in expected]
    assert [each.plain for each in found[:3]] == [each[3] for each in expected[:3]]
    assert not any(each.plain for each in found[4:])
    assert [each.start for each in found if each.size] == starts


def test_headers_are_bounded() -> None:
    """Also those that pile up before one member, and those of all members."""
    one = told("0.png", 1).tobuf(tarfile.USTAR_FORMAT) + bytes(512)
    record = b"16384 comment=" + b"v" * (16384 - 15) + b"\n"
    assert len(listed(told("x", 1 << 14, type=b"x").tobuf(tarfile.USTAR_FORMAT) + record + one + END)) == 1
    for kind in (b"x", b"L", b"g", b"K"):
        head = told("x", 1 << 17, type=kind).tobuf(tarfile.USTAR_FORMAT)
        with pytest.raises(Refused, match="a header of 131,072 bytes"):
            listed(head + bytes(1 << 17) + one + END)
    many = b"".join(b"%d k%03d=%s\n" % (20, n, b"v" * 11) for n in range(100))
    for kind, count, words in ((b"g", 1, "all its members"), (b"x", 5000, "is damaged")):
        head = told("x", len(many), type=kind).tobuf(tarfile.USTAR_FORMAT) + many.ljust(2048, b"\0")
        with pytest.raises(Refused, match=words):
            listed(head * count + one + END)
    long = told("x", 9000, type=b"L").tobuf(tarfile.USTAR_FORMAT) + (b"n" * 9000).ljust(9216, b"\0")
    found = listed((long + one) * 100 + END)
    assert (len(found), {len(each.name) for each in found}) == (100, {1024})


def test_a_shard_that_changes_under_a_run_is_paid_for_no_more() -> None:
    for change in ("replaced", "removed", "a folder"):
        shard("a.tar", [("0.png", picture()), ("1.png", picture(9))])
        with Ledger(f"sqlite:///{change[0]}.db", create=True) as ledger:
            ledger.set_limit("album", Limit("pure", epsilon=9))
            tasks = plan_tasks([Path("a.tar")], Path("out"))
            if change == "replaced":
                shard("b.tar", [("0.png", picture(level=0)), ("1.png", picture(9))])
                Path("b.tar").replace("a.tar")
            else:
                Path("a.tar").unlink()
            if change == "a folder":
                Path("a.tar").mkdir()
            method = DPPix(epsilon=1, block=4, neighbourhood=4)
            given = Choices(method=method, regions=[parse("whole")], ledger=ledger, subject="album")
            report = release_all(tasks, given)
            assert (counts(report), ledger.check().debits, Path("out").exists()) == ((0, 0, 2), 0, True)
            assert {"replaced": "changed since", "removed": "No such file"}.get(change, "") in reasons(report)
            assert not list(Path("out").iterdir())


def test_a_rerun_without_new_releases_leaves_the_file_alone() -> None:
    shard("a.tar", [("0.png", picture()), ("1.png", picture(9))])
    released("a.tar")
    before = Path("out/a.tar").stat()
    assert counts(released("a.tar")) == (0, 2, 0)
    after = Path("out/a.tar").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert [path.name for path in Path("out").iterdir()] == ["a.tar"]
    assert counts(released("a.tar", force=True)) == (2, 0, 0)
    assert Path("out/a.tar").stat().st_ino != before.st_ino


def test_what_cannot_be_unpacked_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """With force, too, where the release of a photo that is no longer in the shard is kept out of it."""
    shard("a.tar", [("0.png", picture()), ("1.png", picture(9))])
    released("a.tar")
    before = Path("out/a.tar").read_bytes()
    shard("a.tar", [("0.png", picture())])
    with monkeypatch.context() as patch:
        patch.setattr(away, "write", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
        for force in (False, True):
            with pytest.raises(OutputError, match="the disk is full"):
                released("a.tar", force=force)
    assert Path("out/a.tar").read_bytes() == before
    assert counts(released("a.tar", force=True)) == (1, 0, 0)
    assert [name for name in held() if name.endswith("png")] == ["0.png"]
    assert len(list(Path("out/.dpveil-shards").rglob("*.png"))) == 1


def test_a_certificate_that_is_gone_where_releases_wait_is_taken_from_the_shard() -> None:
    shard("a.tar", [("0.png", picture())])
    released("a.tar")
    before = held()
    folder = plan_tasks([Path("a.tar")], Path("out"))[0].output.parent
    folder.mkdir(parents=True)
    plan_tasks([Path("a.tar")], Path("out"))[0].output.write_bytes(b"left")
    assert counts(released("a.tar")) == (0, 1, 0)
    assert held() == before


def test_each_photo_has_noise_of_its_own() -> None:
    shard("in/a.tar", [("0.png", picture()), ("1.png", picture())])
    shard("in/b.tar", [("0.png", picture())])
    report = released("in", seed=1)
    assert counts(report) == (3, 0, 0)
    assert all("it is a copy of in/a.tar/0.png" in str(entry.warnings) for entry in report.entries[1:])
    made = [*held("out/a.tar").values(), *held("out/b.tar").values()]
    assert len(set(made)) == 6


def test_a_ledger_is_not_opened_as_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database loses its locks when another file of this process on it is closed."""
    shard("a.tar", [("0.png", picture())])
    Path("out").mkdir()
    with Ledger("sqlite:///out/a.tar", create=True) as ledger:
        monkeypatch.setattr(batch_shards, "opened", pytest.fail)
        with pytest.raises(UsageError, match=r"out/a\.tar belongs to the ledger"):
            released("a.tar", ledger=ledger)

"""Runs over WebDataset shards: releases and payments as for folders, and nothing in a shard is trusted."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from shards_made import Given, counts, held, link, picture, released, shard
from workers_made import Everything

import dpveil
from dpveil.batch import inside, releasing
from dpveil.batch.jobs import usual_jobs
from dpveil.batch.releasing import release_all
from dpveil.batch.task import Choices
from dpveil.batch.tasks import plan_tasks
from dpveil.cli.run_report import exit_code
from dpveil.errors import OutputError, UsageError
from dpveil.io.locking import alone
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

TIMES = Path("times")
END = 1024
"""Bytes of zeros at the end of a .tar."""


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shard of four photos, 8 to 11 pixels wide, with captions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    members: Given = []
    for number in range(4):
        members += [(f"{number}.jpg", picture(8 + number)), (f"{number}.json", b'{"caption": "Ann"}')]
    shard("in/a.tar", members)
    return tmp_path


@pytest.fixture
def ledger(photos: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setattr(releasing, "is_priced", lambda *_: False)
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened


def test_a_shard_of_releases_holds_them_with_their_certificates_and_nothing_else(photos: Path) -> None:
    first = released(seed=5)
    assert counts(first) == (4, 0, 0)
    assert [str(entry.source) for entry in first.entries] == [f"in/a.tar/{n}.jpg" for n in range(4)]
    assert first.entries[0].to_json()["certificate"] == "out/a.tar/0.png.certificate.json"
    made = held()
    assert list(made) == [f"{n}.png{end}" for n in range(4) for end in ("", ".certificate.json")]
    assert [path.name for path in Path("out").iterdir()] == ["a.tar"]
    Path("unpacked").mkdir()
    for name, contents in made.items():
        Path("unpacked", name).write_bytes(contents)
    assert dpveil.verify("unpacked/3.png").status == "consistent"
    before = Path("out/a.tar").read_bytes()
    assert counts(released(seed=5)) == (0, 4, 0)
    assert Path("out/a.tar").read_bytes() == before
    assert counts(released(out="by-two", jobs=2, seed=5)) == (4, 0, 0)
    assert held("by-two/a.tar") == made
    assert counts(released("in/a.tar", "one.tar", seed=5)) == (4, 0, 0)
    assert plan_tasks([Path("out")], Path("again")) == []
    assert usual_jobs(plan_tasks([Path("in")], Path("out"))) == 1


def test_a_rerun_pays_for_what_is_missing_alone(photos: Path, ledger: Ledger) -> None:
    """One photo has nobody in it at first; then one is added to the shard."""
    first = released(ledger=ledger, regions=[Everything(TIMES, empty=9)])
    assert (counts(first), len(first.no_region), ledger.check().debits) == ((3, 0, 0), 1, 3)
    assert counts(released(ledger=ledger)) == (1, 3, 0)
    assert (ledger.check().debits, len(held())) == (4, 8)
    with tarfile.open("in/a.tar", "a") as more:
        told = tarfile.TarInfo("4.jpg")
        told.size = len(picture(15))
        more.addfile(told, io.BytesIO(picture(15)))
    assert counts(released(ledger=ledger)) == (1, 4, 0)
    assert (ledger.check().debits, len(held())) == (5, 10)


def test_what_an_ended_run_has_drawn_is_not_drawn_again(
    photos: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run cannot write its shard, or is interrupted: releases wait, and another run takes them."""
    with monkeypatch.context() as patch:
        patch.setattr(inside, "write_tar", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        full = released(ledger=ledger)
    assert (counts(full), exit_code(full), Path("out/a.tar").exists()) == ((4, 0, 0), 4, False)
    assert ".dpveil-shards" in full.notes[0]
    assert (counts(released(ledger=ledger)), ledger.check().debits) == ((0, 4, 0), 4)

    def interrupt() -> None:
        raise KeyboardInterrupt

    given = Choices(method=DPPix(epsilon=1, block=4, neighbourhood=4), regions=[parse("whole")], seed=1)
    ended = release_all(plan_tasks([Path("in")], Path("two")), given, step=interrupt)
    assert ended.untried
    assert not Path("two/a.tar").exists()
    again = release_all(plan_tasks([Path("in")], Path("two")), given)
    assert counts(again) == (4 - len(ended.released), len(ended.released), 0)
    assert len(held("two/a.tar")) == 8


def test_one_run_at_a_time_writes_shards_to_a_folder(photos: Path) -> None:
    with alone(Path("out/.dpveil-shards/lock")), pytest.raises(OutputError, match="another process"):
        released()
    assert counts(released()) == (4, 0, 0)


def test_a_photo_that_was_replaced_in_its_shard_is_refused(photos: Path) -> None:
    released()
    shard("in/a.tar", [("0.jpg", picture(99))])
    report = released()
    assert counts(report) == (0, 0, 1)
    assert "in/a.tar/0.jpg was replaced" in report.entries[0].to_json()["error"]
    assert "out/a.tar/0.png" in report.entries[0].to_json()["error"]
    assert len(held()) == 8
    assert counts(released(force=True)) == (1, 0, 0)


def test_one_bad_member_is_one_failure_and_no_name_becomes_a_path(photos: Path) -> None:
    bad = ["../up.png", "/abs.png", "a\\b.png", "a\nb.png", "x/../../y.png", "é" * 130 + ".png"]
    members: Given = [(name, picture()) for name in bad]
    members += [link("soft.png", tarfile.SYMTYPE), link("hard.png", tarfile.LNKTYPE)]
    members += [link("device.png", tarfile.CHRTYPE), ("same.png", picture()), ("same.png", picture(9))]
    members += [("huge.png", bytes(1 << 27)), ("no.png", b"no photo"), ("._same.png", b"hidden")]
    members += [("released.png", picture()), ("released.png.certificate.json", b"{}")]
    members += [("sub/b.jpg", picture(10)), ("sub/b.png", picture(11)), ("c.left.jpg", picture(12))]
    shard("in/a.tar", members)
    before = set(photos.rglob("*"))
    report = released()
    assert counts(report) == (4, 0, len(bad) + 3 + 1 + 2)
    images = [name for name in held() if name.endswith(".png")]
    assert images == ["same.png", "sub/b.jpg.png", "sub/b.png.png", "c.left.png"]
    new = {path.relative_to(photos).parts[0] for path in photos.rglob("*") if path not in before}
    assert new == {"out", "state"}
    told = " ".join(str(entry.to_json()) for entry in report.failed)
    assert "unexpected" not in told
    assert "has 134,217,728 bytes, more than any photo" in told
    assert "\n" not in told


@pytest.mark.parametrize("cut", [1, 700, END])
def test_a_shard_that_ends_early_gives_what_precedes(photos: Path, cut: int) -> None:
    shard("in/a.tar", [("0.jpg", picture()), ("1.jpg", picture(9))])
    whole = Path("in/a.tar").read_bytes()
    end = 4 * 512 if cut == END else 3 * 512 + min(cut, 50)
    Path("in/a.tar").write_bytes(whole[:end])
    report = released()
    assert len(report.failed) == 1
    assert "ends early" in str(report.failed[0].to_json())
    assert len(report.released) == (2 if cut == END else 1)


@pytest.mark.parametrize("damage", ["text", "checksum", "negative", "longest", "records"])
def test_damaged_headers_are_one_failure(photos: Path, damage: str) -> None:
    told = tarfile.TarInfo("0.jpg")
    told.size = 8
    head = bytearray(told.tobuf(tarfile.USTAR_FORMAT))
    if damage == "negative":
        head[124:136] = b"\xff" * 12
    if damage in ("longest", "records"):
        head[156:157], size = b"x", 1 << 17 if damage == "longest" else 8
        head[124:136] = b"%011o\0" % size
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + sum(head[156:]) + 256 + (damage == "checksum"))
    body = b"0 a=bbb\n" if damage == "records" else bytes(1 << 17)
    Path("in/a.tar").write_bytes(b"text" if damage == "text" else bytes(head) + body.ljust(1 << 10, b"\0"))
    report = released()
    assert (counts(report), exit_code(report)) == ((0, 0, 1), 4)
    assert str(report.failed[0].source) == "in/a.tar"
    assert "unexpected" not in str(report.failed[0].to_json())


def test_what_is_no_shard_of_releases_is_not_replaced(photos: Path) -> None:
    for contents in ([("x.png", picture())], [("x.txt", b"")], [link("x.png", tarfile.SYMTYPE)]):
        shard("out/a.tar", contents)  # type: ignore[arg-type]
        with pytest.raises(OutputError, match="no shard of releases"):
            released()
    assert counts(released(force=True)) == (4, 0, 0)
    assert len(held()) == 8


def test_shards_have_targets_of_their_own(photos: Path) -> None:
    Path("b").mkdir()
    Path("b/a.tar").write_bytes(Path("in/a.tar").read_bytes())
    shard("c/a.tar", [("other.png", picture())])
    with pytest.raises(UsageError, match=r"in/a\.tar and c/a\.tar would both be written"):
        plan_tasks([Path("in/a.tar"), Path("c/a.tar")], Path("out"))
    with pytest.raises(UsageError, match="would both be written"):
        plan_tasks([Path("in/a.tar"), Path("b/a.tar")], Path("out"))
    with pytest.raises(UsageError, match="one of the inputs"):
        plan_tasks([Path("in/a.tar")], Path("in"))
    with pytest.raises(UsageError, match="names"):
        plan_tasks([Path("in")], Path("out"), names="number")
    with pytest.raises(UsageError, match="one shard"):
        plan_tasks([Path("in")], Path("x.tar"))
    copied = [Path("in/a.tar"), Path("in")]
    assert len(plan_tasks(copied, Path("out"))) == 4


def test_a_dry_run_makes_no_folder(photos: Path) -> None:
    assert counts(released(dry=True)) == (0, 0, 0)
    assert not Path("out").exists()
    Path("out").mkdir()
    released(dry=True)
    assert list(Path("out").iterdir()) == []

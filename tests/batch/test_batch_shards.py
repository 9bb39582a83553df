"""Runs over WebDataset shards: releases and payments as for folders, and nothing in a shard is trusted."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from shards_made import Given, counts, held, link, picture, released, shard
from workers_made import Everything

import dpveil
from dpveil.batch import archive_inputs, shards
from dpveil.batch import shards as batch_shards
from dpveil.batch.released_pdf import verify_inside
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.batch.workers import usual_jobs
from dpveil.cli import run
from dpveil.cli.run_report import exit_code
from dpveil.core.envelope import MOST_BYTES
from dpveil.errors import OutputError, UnknownName, UsageError
from dpveil.io.locking import hold_lock
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse
from dpveil.release.keys import SigningKey

pytestmark = pytest.mark.usefixtures("elsewhere")

TIMES = Path("times")
END = 1024
"""Bytes of zeros at the end of a .tar."""


@pytest.fixture
def photos(elsewhere: Path) -> Path:
    """A shard of four photos, 8 to 11 pixels wide, with captions."""
    members: Given = []
    for number in range(4):
        members += [(f"{number}.jpg", picture(8 + number)), (f"{number}.json", b'{"caption": "Ann"}')]
    shard("in/a.tar", members)
    return elsewhere


def test_a_shard_of_releases_holds_them_with_their_certificates_and_nothing_else(photos: Path) -> None:
    first = released(seed=5)
    assert counts(first) == (4, 0, 0)
    assert [str(entry.source) for entry in first.entries] == [f"in/a.tar/{n}.jpg" for n in range(4)]
    assert first.entries[0].to_json()["certificate"] == "out/a.tar/0.jpg.certificate.json"
    made = held()
    assert list(made) == [f"{n}.jpg{end}" for n in range(4) for end in ("", ".certificate.json")]
    assert [path.name for path in Path("out").iterdir()] == ["a.tar"]
    Path("unpacked").mkdir()
    for name, contents in made.items():
        Path("unpacked", name).write_bytes(contents)
    assert dpveil.verify("unpacked/3.jpg").status == "consistent"
    before = Path("out/a.tar").read_bytes()
    assert counts(released(seed=5)) == (0, 4, 0)
    assert Path("out/a.tar").read_bytes() == before
    assert counts(released(out="by-two", jobs=2, seed=5)) == (4, 0, 0)
    assert held("by-two/a.tar") == made
    assert counts(released("in/a.tar", "one.tar", seed=5)) == (4, 0, 0)
    assert plan_tasks([Path("out")], Path("again")) == []
    assert usual_jobs(plan_tasks([Path("in")], Path("out")), DPPix(epsilon=1, block=8)) == 1


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

    def disk_is_full(*_: Any, **__: Any) -> None:
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(archive_inputs.Tar, "write", disk_is_full)
        full = released(ledger=ledger)
    assert (counts(full), exit_code(full), Path("out/a.tar").exists()) == ((4, 0, 0), 4, False)
    assert ".dpveil-shards" in full.notes[0]
    assert (counts(released(ledger=ledger)), ledger.check().debits) == ((0, 4, 0), 4)

    def interrupt() -> None:
        raise KeyboardInterrupt

    given = RunSettings(method=DPPix(epsilon=1, block=4, neighbourhood=4), regions=[parse("whole")], seed=1)
    ended = release_all(plan_tasks([Path("in")], Path("two")), given, step=interrupt)
    assert ended.untried
    assert not Path("two/a.tar").exists()
    again = release_all(plan_tasks([Path("in")], Path("two")), given)
    assert counts(again) == (4 - len(ended.released), len(ended.released), 0)
    assert len(held("two/a.tar")) == 8


def test_one_run_at_a_time_writes_shards_to_a_folder(photos: Path) -> None:
    with hold_lock(Path("out/.dpveil-shards/lock")), pytest.raises(OutputError, match="another process"):
        released()
    assert counts(released()) == (4, 0, 0)


def test_a_photo_that_was_replaced_in_its_shard_is_refused(photos: Path) -> None:
    released()
    shard("in/a.tar", [("0.jpg", picture(99))])
    report = released()
    assert counts(report) == (0, 0, 1)
    assert "in/a.tar/0.jpg before it changed" in report.entries[0].to_json()["error"]
    assert "out/a.tar/0.jpg" in report.entries[0].to_json()["error"]
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
    images = [name for name in held() if name.endswith((".png", ".jpg"))]
    assert images == ["same.png", "sub/b.jpg", "sub/b.png", "c.left.jpg"]
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


# Shards that somebody made to harm, or that change under a run; and what is gathered for them.


def reasons(report: object) -> str:
    return " ".join(str(entry.to_json()) for entry in report.failed)  # type: ignore[attr-defined]


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
            given = RunSettings(method=method, regions=[parse("whole")], ledger=ledger, subject="album")
            report = release_all(tasks, given)
            assert (counts(report), ledger.check().debits, Path("out").exists()) == ((0, 0, 2), 0, True)
            assert {"replaced": "changed since", "removed": "does not exist"}.get(change, "") in reasons(
                report
            )
            assert not list(Path("out").iterdir())


def test_what_cannot_be_unpacked_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    shard("a.tar", [("0.png", picture()), ("1.png", picture(9))])
    released("a.tar")
    before = Path("out/a.tar").read_bytes()
    shard("a.tar", [("0.png", picture())])
    with monkeypatch.context() as patch:
        patch.setattr(shards, "write", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OutputError, match="the disk is full"):
            released("a.tar")
    assert Path("out/a.tar").read_bytes() == before
    assert counts(released("a.tar", force=True)) == (1, 0, 0)


def test_each_photo_has_noise_of_its_own() -> None:
    shard("in/a.tar", [("0.png", picture()), ("1.png", picture())])
    shard("in/b.tar", [("0.png", picture())])
    report = released("in", seed=1)
    assert counts(report) == (3, 0, 0)
    made = [*held("out/a.tar").values(), *held("out/b.tar").values()]
    assert len(set(made)) == 6


def test_a_ledger_is_not_opened_as_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database loses its locks when another file of this process on it is closed."""
    shard("a.tar", [("0.png", picture())])
    Path("out").mkdir()
    with Ledger("sqlite:///out/a.tar", create=True) as ledger:
        monkeypatch.setattr(batch_shards, "open_untrusted", pytest.fail)
        with pytest.raises(UsageError, match=r"out/a\.tar belongs to the ledger"):
            released("a.tar", ledger=ledger)


# What a written shard holds: releases of the run, and of before only those that are proven and paid
# for.


CERTIFICATE = ".certificate.json"


def put_photos(*levels: int) -> None:
    """Put photos 0.png, 1.png and so on into the shard in/a.tar."""
    shard("in/a.tar", [(f"{number}.png", picture(8 + number, level)) for number, level in enumerate(levels)])


def images(path: str = "out/a.tar") -> list[str]:
    return [name for name in held(path) if not name.endswith(CERTIFICATE)]


def waiting() -> list[Path]:
    return sorted(Path("out").rglob(".dpveil-shards/*/*.png"))


class Killed(BaseException):
    """The process has ended."""


def killed(monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    """Run until its shards would be packed."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(shards.Shards, "pack", die)
        released(**how)


def test_an_original_where_releases_wait_is_never_packed() -> None:
    put_photos(1, 2)
    place = plan_tasks([Path("in")], Path("out"))[0].output
    place.parent.mkdir(parents=True)
    place.write_bytes(picture(8, 1))
    Path(f"{place}{CERTIFICATE}").write_bytes(b"{}")
    report = released()
    assert (counts(report), images(), waiting()) == ((1, 0, 1), ["1.png"], [place])
    assert place.read_bytes() == picture(8, 1)


def test_releases_of_photos_that_fail_or_have_left_stay_unless_forced(ledger: Ledger) -> None:
    put_photos(1, 2)
    released(ledger=ledger)
    before = held()
    shard("in/a.tar", [("0.png", b"broken"), ("2.png", picture(9))])
    report = released(ledger=ledger)
    assert (counts(report), report.notes, waiting()) == ((1, 0, 1), [], [])
    assert before.items() <= held().items()
    assert sorted(images()) == ["0.png", "1.png", "2.png"]
    assert counts(released(ledger=ledger, force=True)) == (1, 0, 1)
    assert sorted(images()) == ["0.png", "1.png", "2.png"]
    assert waiting()
    shard("in/a.tar", [("2.png", picture(9))])
    assert counts(released(ledger=ledger, force=True)) == (1, 0, 0)
    assert (images(), waiting()) == (["2.png"], [])


def test_a_shard_that_was_put_in_place_of_another_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    put_photos(1, 2)
    released()
    put_photos(1, 2, 3)
    killed(monkeypatch)
    assert len(waiting()) == 3
    put_photos(1, 2)
    released(out="newest")
    Path("newest/a.tar").replace("out/a.tar")
    newest = held()
    with pytest.raises(OutputError, match=r"holds another 0\.png than what waits for it"):
        released()
    assert (held(), len(waiting())) == (newest, 3)


# Runs over a shard that end at any step: no release is lost, and no file is half written.


class Dead(BaseException):
    """The process has ended."""


def dying(patch: pytest.MonkeyPatch, after: int) -> list[int]:
    """Let files be renamed and removed so many times; then nothing is, as when a process is killed."""
    left = [after]
    for name in ("replace", "unlink", "rmdir"):

        def step(path: Path, *given: object, of: object = getattr(Path, name), **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Dead
            return of(path, *given, **more)  # type: ignore[operator]

        patch.setattr(Path, name, step)
    return left


def test_a_run_that_is_killed_at_any_step_loses_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """One photo is new in the shard; the other's release is never drawn again, and the file never half."""
    for after in range(100):
        source, out = f"{after}.tar", f"out{after}"
        shard(source, [("0.png", picture())])
        released(source, out)
        first = held(f"{out}/{source}")
        shard(source, [("0.png", picture()), ("1.png", picture(9))])
        with monkeypatch.context() as patch:
            left = dying(patch, after)
            with suppress(Dead):
                released(source, out)
        between = held(f"{out}/{source}")
        assert between == first or (len(between) == 4 and first.items() <= between.items())
        again = released(source, out)
        made = held(f"{out}/{source}")
        assert not again.failed
        assert [path.name for path in Path(out).iterdir()] == [source]
        assert first.items() <= made.items()
        assert between.items() <= made.items()
        assert len(made) == 4
        if left[0] >= 0:
            break
    assert 12 < after < 99


# Shards in `verify`: each release by the checks of files, and nothing in a shard goes unseen.


Members = dict[str, bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Members, SigningKey]]:
    """Return what is in a shard of three releases, and the key that signed them."""
    key = SigningKey.generate()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("made"))
        patch.setenv("XDG_STATE_HOME", str(Path("state").absolute()))
        shard("in/a.tar", [(f"{number}.png", picture(8 + number)) for number in range(3)])
        released(sign=key)
        yield held(), key


@pytest.fixture
def good(whole: tuple[Members, SigningKey]) -> Members:
    return dict(whole[0])


def pack(contents: Members, *more: tuple[str, Any], path: str = "out/a.tar") -> None:
    given: Given = [*contents.items(), *more]
    shard(path, given)


def found(path: str = "out/a.tar", **how: Any) -> dict[str, tuple[str, str]]:
    """Return name, status and first problem of all that is in a shard."""
    results = list(verify_inside(Path(path), **how))
    assert all(each.inside == Path(path) for each in results)
    return {
        os.path.relpath(each.path, path): (each.status, next(iter(each.problems), "")) for each in results
    }


def cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["verify", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_releases_verify_as_files_do(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    pack(good)
    code, out, err = cli(capsys, "out")
    assert (code, out.count("\n"), out.split(":")[0]) == (0, 1, "unmodified    out/a.tar  3 releases")
    assert "ε = 1 about any 4 pixels" in out
    assert err.startswith("3 unmodified; ")
    for name, contents in good.items():
        Path(name).write_bytes(contents)
    inside = json.loads(cli(capsys, "out/a.tar", "--json")[1])["verified"]
    files = json.loads(cli(capsys, "0.png", "1.png", "2.png", "--json")[1])["verified"]
    assert {each.pop("inside") for each in inside} == {"out/a.tar"}
    prefix = {name: f"out/a.tar/{files[0][name]}" for name in ("output", "certificate")}
    assert inside[0] == {**files[0], **prefix}
    assert [each["sha256"] for each in inside] == [each["sha256"] for each in files]


@pytest.mark.parametrize("name", ["1.png", f"1.png{CERTIFICATE}"])
def test_a_changed_byte_is_found(good: Members, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed = bytearray(good[name])
    changed[-100] ^= 1
    pack(good | {name: bytes(changed)})
    code, out, err = cli(capsys, "out")
    assert code == 1
    assert out.startswith("INCONSISTENT  out/a.tar/1.png  ")
    assert (name != "1.png") or "its SHA-256 is not the one in the certificate" in out
    assert "unmodified    out/a.tar  2 releases" in out
    assert err.startswith("2 unmodified, 1 failed; ")


def test_whatever_has_no_certificate_fails(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"3.png": picture(), "0.txt": b"Ann", ".4.png": picture(), "5.jpg.json": b"{}"}
    alone = {f"6.png{CERTIFICATE}": good[f"0.png{CERTIFICATE}"]}
    pack(good | more | alone)
    results = found()
    assert {name for name, each in results.items() if each[0] == "missing"} == set(more)
    assert results["6.png"] == ("inconsistent", "the image is missing")
    code, out, err = cli(capsys, "out")
    assert (code, out.count("UNCERTIFIED")) == (1, 4)
    assert "4 without a certificate, 1 failed" in err
    assert "without a certificate: out/a.tar/3.png and 3 more: they may be originals" in err


def test_names_links_and_copies_are_refused(good: Members) -> None:
    pair = [("0.png", picture()), (f"0.png{CERTIFICATE}", good[f"0.png{CERTIFICATE}"])]
    outside = [("../x.png", picture()), ("/x.png", picture()), ("a\nb.png", picture())]
    links = [link("l.png", kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)]
    pipe = link("p/", tarfile.SYMTYPE)
    pack(good, *pair, *outside, *links[:1], *links[1:2], *links[2:], pipe)
    results = list(verify_inside(Path("out/a.tar")))
    bad = [(each.path.name, each.problems[0]) for each in results if each.status != "consistent"]
    assert sum(each.status == "consistent" for each in results) == 3
    assert [name for name, _ in bad] == [
        "0.png",
        f"0.png{CERTIFICATE}",
        "x.png",
        "x.png",
        *[bad[4][0]],
        *["l.png"] * 3,
        "p",
    ]
    assert [text for _, text in bad[:2]] == ["it has the name of another before it"] * 2
    assert all("leads elsewhere" in text for _, text in bad[2:4])
    assert "no plain name" in bad[4][1]
    assert "is a link, a device or sparse" in bad[5][1]


def test_damage_and_what_is_no_shard_are_one_line(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    pack(good)
    data = Path("out/a.tar").read_bytes()
    Path("cut.tar").write_bytes(data[: len(data) // 2])
    Path("text.tar").write_bytes(b"x" * 2000)
    Path("empty.tar").write_bytes(bytes(1024))
    Path("link.tar").symlink_to("out/a.tar")
    os.mkfifo("pipe.tar")
    for name in ("cut", "text", "empty", "link", "pipe", "gone"):
        code, out, err = cli(capsys, f"{name}.tar")
        assert (code, "Traceback" in err) == (1, False), name
        assert out.startswith(("INCONSISTENT", "UNCERTIFIED")), (name, out)
    assert found("empty.tar") == {".": ("missing", "it holds no release")}
    assert found("cut.tar")["."][1].startswith("it ends early, and what follows in it was not verified")
    with pytest.raises(UnknownName, match="choose from"):
        list(verify_inside(Path("a.zip")))


def test_a_large_image_or_certificate_is_not_read(good: Members) -> None:
    large = {f"0.png{CERTIFICATE}": MOST_BYTES + 1, "1.png": 65 << 20}
    with Path("a.tar").open("wb") as file:  # of which most is no block on the disk
        for name, data in good.items():
            told = tarfile.TarInfo(name)
            told.size = large.get(name, len(data))
            file.write(told.tobuf(tarfile.USTAR_FORMAT) + (b"" if name in large else data))
            file.truncate(file.seek(-(-file.seek((told.size if name in large else 0), 1) // 512) * 512))
        file.truncate(file.seek(1024, 1))
    tracemalloc.start()
    results = found("a.tar", max_pixels=10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each[0] for each in results.values()] == ["inconsistent"] * 2 + ["consistent"]
    assert "bytes, and at most" in results["0.png"][1]
    assert peak < 1 << 23


def test_trust_and_strength_are_asked_of_each(
    whole: tuple[Members, SigningKey],
    good: Members,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("state").absolute()))
    pack(good)
    own, foreign = (
        key.write(name) for key, name in ((whole[1], "own.key"), (SigningKey.generate(), "foreign.key"))
    )
    assert cli(capsys, "out/a.tar", "--trust", str(own), "--at-least", "strong")[0] == 0
    code, out, _ = cli(capsys, "out/a.tar", "--trust", str(foreign))
    assert (code, out.count("UNTRUSTED     out/a.tar/")) == (1, 3)
    shard("a.tar", [("0.png", picture())])
    released("a.tar", "weak", method=DPPix(epsilon=8, block=4, neighbourhood=4))
    assert [cli(capsys, "weak", "--at-least", least)[0] for least in ("weak", "strong")] == [0, 1]
    assert cli(capsys, "weak", "--at-least", "strong")[1].startswith("TOO WEAK      weak/a.tar/0.png")


def test_a_ledger_looks_up_every_release_in_a_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], good: Members
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shard("in/a.tar", [("0.png", picture()), ("1.png", picture(9))])
    with Ledger("sqlite:///budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=9))
        released(ledger=ledger)
    call = ["ledger", "check", "out", "--ledger", "sqlite:///budget.db"]
    assert run(call) == 0
    assert capsys.readouterr().out.splitlines()[1] == "out/a.tar: paid by album (2 releases)"
    pack(good | {f"7{name}": data for name, data in held().items()} | {"8.png": picture()})
    assert run([*call, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["output"] for each in told["paid"]] == ["out/a.tar/70.png", "out/a.tar/71.png"]
    reasons = [each["error"] for each in told["failed"]]
    assert reasons == ["nobody paid for it from this ledger"] * 3 + ["it has no certificate"]
    assert run(["card", "out", "--out", "out/card.json"]) == 1
    assert "out/a.tar holds several releases in one file, which a card cannot list" in capsys.readouterr().err

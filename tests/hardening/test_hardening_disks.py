"""Disks that are full, read-only or gone, and files that change or vanish while a run is at work.

Each comes twice: simulated, which runs everywhere, and on a real disk in memory where mounting is allowed.
"""

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hardening_runs import finished, obfuscate, originals, pairs, snapshot

import dpveil
from dpveil.batch import run as batch
from dpveil.cli import run

COUNT = 8
AHEAD = {photo: range(photo, photo + 5) for photo in (2, 3)}
"""How many photos a run may have read when one of this number is written: up to four are read ahead."""
GONE = "was removed or replaced since the run began"


@pytest.fixture
def photos(tmp_path):
    return originals(tmp_path / "in", COUNT)


@pytest.fixture
def call(capsys):
    """Run a command line in this process; every failure must be one clear line."""

    def called(*arguments):
        code = run(arguments)
        out, err = capsys.readouterr()
        report = json.loads(out)
        failed = report["failed"] + report.get("untried", [])
        for entry in failed:
            line = f"{entry['error']}: {entry['hint']}"
            assert entry["hint"]
            assert line.isprintable()
            assert "unexpected" not in line
        assert "Traceback" not in err
        return code, {name: len(entries) for name, entries in report.items() if entries}, failed

    return called


def mount(disk, *options):
    return subprocess.run(
        ["mount", "-t", "tmpfs", *options, "dpveil-test", str(disk)], capture_output=True, check=False
    )


@pytest.fixture
def disk(tmp_path):
    """A real disk of 80 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not shutil.which("mount") or mount(folder, "-o", "size=80k").returncode:
        pytest.skip("needs the right to mount a disk; the simulated variants run everywhere")
    yield folder
    while folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)


def meanwhile(monkeypatch, number, happens):
    """Let something happen before the photo `number` is written: it is read, and its noise is drawn."""
    real, calls = batch.Run._write, []

    def write(*arguments):
        calls.append(1)
        if len(calls) == number:
            happens()
        real(*arguments)

    monkeypatch.setattr(batch.Run, "_write", write)


# Real disks


def test_a_full_disk(call, disk, tmp_path):
    photos = originals(tmp_path / "in", 3 * COUNT)
    code, counts, failed = call(*obfuscate(photos, disk))
    assert code == 4
    assert 0 < counts["released"] < 3 * COUNT
    assert "the disk is full" in failed[0]["error"]
    assert failed[1]["error"] == "not tried, because the output cannot be written"
    whole = pairs(disk, photos, dpveil.verify)
    assert (len(whole), len(snapshot(disk))) == (counts["released"], 2 * counts["released"])
    mount(disk, "-o", "remount,size=8m")
    assert call(*obfuscate(photos, disk))[0] == 0
    assert whole.items() <= finished(disk, photos, dpveil.verify).items()


def test_a_full_disk_brings_back_what_was_to_be_replaced(call, disk, tmp_path, photos):
    assert call(*obfuscate(photos, disk, epsilon=1))[0] == 0
    before = snapshot(disk)
    filler = disk / "filler"
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
        file.writelines(itertools.repeat(bytes(1024)))
    code, counts, failed = call(*obfuscate(photos, disk, "--force"))
    assert (code, counts) == (4, {"failed": 1, "untried": COUNT - 1})
    assert "the disk is full" in failed[0]["error"]
    filler.unlink()
    assert snapshot(disk) == before


def test_a_read_only_disk(call, disk, photos):
    assert call(*obfuscate(photos, disk / "done"))[0] == 0
    mount(disk, "-o", "remount,ro")
    assert call(*obfuscate(photos, disk / "done"))[:2] == (0, {"skipped": COUNT})
    for out in (disk, disk / "new"):
        code, counts, failed = call(*obfuscate(photos, out))
        assert (code, counts) == (4, {"failed": 1, "untried": COUNT - 1})
        assert "the disk is read-only: choose" in f"{failed[0]['error']}: {failed[0]['hint']}"


def test_a_disk_that_becomes_read_only(call, disk, photos, monkeypatch):
    meanwhile(monkeypatch, 3, lambda: mount(disk, "-o", "remount,ro"))
    code, counts, failed = call(*obfuscate(photos, disk))
    assert (code, counts) == (4, {"released": 2, "failed": 1, "untried": COUNT - 3})
    assert "read-only" in failed[0]["error"]
    assert len(pairs(disk, photos, dpveil.verify)) == 2
    assert len(snapshot(disk)) == 4


def test_an_output_disk_that_vanishes(call, disk, photos, monkeypatch):
    """Nothing is written to the folder that was under it."""
    meanwhile(monkeypatch, 3, lambda: subprocess.run(["umount", "-l", str(disk)], check=True))
    code, counts, failed = call(*obfuscate(photos, disk))
    assert (code, counts) == (4, {"released": 2, "failed": 1, "untried": COUNT - 3})
    assert GONE in failed[0]["error"]
    assert snapshot(disk) == {}


def test_an_input_disk_that_vanishes(call, disk, photos, tmp_path, monkeypatch):
    for path in photos.iterdir():
        shutil.copy(path, disk)
    meanwhile(monkeypatch, 3, lambda: subprocess.run(["umount", "-l", str(disk)], check=True))
    code, counts, failed = call(*obfuscate(disk, tmp_path / "out"))
    assert (code, sum(counts.values())) == (1, COUNT)
    assert counts["released"] in AHEAD[3]
    assert all("does not exist" in entry["error"] for entry in failed)
    assert len(pairs(tmp_path / "out", photos, dpveil.verify)) == counts["released"]


# The same, simulated


@pytest.mark.parametrize("step", ["open", "fsync"])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "the disk does not answer"),
        (errno.ENODEV, "the disk is gone"),
        (errno.ESTALE, "the network disk is gone"),
    ],
)
def test_a_disk_that_fails_in_the_middle_of_a_run(call, tmp_path, photos, monkeypatch, step, number, words):
    real, bad = getattr(os, step), []

    def failing(what, *more, **options):
        if bad and not (step == "open" and not more[0] & os.O_CREAT):
            raise OSError(number, os.strerror(number))
        return real(what, *more, **options)

    monkeypatch.setattr(os, step, failing)
    meanwhile(monkeypatch, 3, lambda: bad.append(1))
    out = tmp_path / "out"
    code, counts, failed = call(*obfuscate(photos, out))
    assert (code, counts) == (4, {"released": 2, "failed": 1, "untried": COUNT - 3})
    assert words in failed[0]["error"]
    assert len(pairs(out, photos, dpveil.verify)) == 2
    assert len(snapshot(out)) == 4
    bad.clear()
    assert call(*obfuscate(photos, out))[:2] == (0, {"released": COUNT - 2, "skipped": 2})
    finished(out, photos, dpveil.verify)


# Folders and files that vanish or change


@pytest.mark.parametrize("again", [False, True], ids=["removed", "replaced"])
def test_an_output_folder_that_vanishes(call, tmp_path, photos, monkeypatch, again):
    out = tmp_path / "out"

    def vanish():
        out.rename(tmp_path / "elsewhere")
        if again:
            out.mkdir()

    meanwhile(monkeypatch, 3, vanish)
    code, counts, failed = call(*obfuscate(photos, out))
    assert (code, counts) == (4, {"released": 2, "failed": 1, "untried": COUNT - 3})
    assert GONE in failed[0]["error"]
    assert snapshot(out) == {}
    assert out.exists() == again
    assert len(pairs(tmp_path / "elsewhere", photos, dpveil.verify)) == 2
    assert call(*obfuscate(photos, out))[:2] == (0, {"released": COUNT})


def test_an_output_folder_that_vanishes_while_a_pair_is_written(call, tmp_path, photos, monkeypatch):
    out, real = tmp_path / "out", os.link

    def link(source, target, **options):
        if str(target).endswith("02.png"):
            shutil.rmtree(out)
        real(source, target, **options)

    monkeypatch.setattr(os, "link", link)
    code, counts, failed = call(*obfuscate(photos, out))
    assert (code, counts) == (4, {"released": 2, "failed": 1, "untried": COUNT - 3})
    assert "no such folder" in failed[0]["error"]
    assert not out.exists()


def test_an_input_folder_that_vanishes(call, tmp_path, photos, monkeypatch):
    out = tmp_path / "out"
    meanwhile(monkeypatch, 2, lambda: photos.rename(tmp_path / "elsewhere"))
    code, counts, failed = call(*obfuscate(photos, out))
    assert (code, sum(counts.values())) == (1, COUNT)
    assert counts["released"] in AHEAD[2]
    assert all("does not exist" in entry["error"] for entry in failed)
    assert call(*obfuscate(photos, out))[:2] == (4, {"failed": 1})
    assert len(pairs(out, tmp_path / "elsewhere", dpveil.verify)) == counts["released"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.symlink_to(path), "cannot be opened"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50), "damaged"),
        (lambda path: path.symlink_to("/proc/self/mem"), "cannot be read (Input/output error)"),
    ],
    ids=["removed", "folder", "loop", "pipe", "empty", "torn", "unreadable"],
)
def test_an_input_that_changes(call, tmp_path, photos, monkeypatch, change, words):
    """Its neighbours are released, and it is released by the next run, if it is a photo again."""
    changing, out = photos / "07.png", tmp_path / "out"
    contents = changing.read_bytes()
    if words.startswith("cannot be read") and not Path("/proc/self/mem").exists():
        pytest.skip("this system has no file that cannot be read")

    def happens():
        changing.unlink()
        change(changing)

    meanwhile(monkeypatch, 2, happens)
    code, counts, failed = call(*obfuscate(photos, out))
    assert (code, counts) == (1, {"released": COUNT - 1, "failed": 1})
    assert words in failed[0]["error"]
    assert "07.png" not in snapshot(out)
    changing.rmdir() if changing.is_dir() else changing.unlink(missing_ok=True)
    changing.write_bytes(contents)
    assert call(*obfuscate(photos, out))[:2] == (0, {"released": 1, "skipped": COUNT - 1})
    finished(out, photos, dpveil.verify)


def test_an_interrupt_during_a_failing_save_is_not_forgotten(call, tmp_path, photos, monkeypatch):
    out, real = tmp_path / "out", batch.Run._save

    def save(this, task, *rest):
        task.output.write_bytes(b"somebody else's")
        signal.raise_signal(signal.SIGTERM)
        real(this, task, *rest)

    monkeypatch.setattr(batch.Run, "_save", save)
    code, counts, _ = call(*obfuscate(photos, out))
    assert (code, counts) == (130, {"untried": COUNT})
    assert snapshot(out) == {"00.png": b"somebody else's"}

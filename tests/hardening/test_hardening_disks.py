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

import pytest
from hardening_runs import finished, obfuscate, originals, pairs, snapshot

import dpveil
from dpveil.batch import photo_release as batch
from dpveil.cli import run

COUNT = 8
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
    real, calls = batch.PhotoReleaser._write, []

    def write(*arguments):
        calls.append(1)
        if len(calls) == number:
            happens()
        real(*arguments)

    monkeypatch.setattr(batch.PhotoReleaser, "_write", write)


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


# The same, simulated


@pytest.mark.parametrize("step", ["open", "fsync"])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
        (errno.ENODEV, "No such device"),
        (errno.ESTALE, "Stale file handle"),
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


def test_an_interrupt_during_a_failing_save_is_not_forgotten(call, tmp_path, photos, monkeypatch):
    out, real = tmp_path / "out", batch.PhotoReleaser._save

    def save(this, task, *rest):
        task.output.write_bytes(b"somebody else's")
        signal.raise_signal(signal.SIGINT)
        real(this, task, *rest)

    monkeypatch.setattr(batch.PhotoReleaser, "_save", save)
    code, counts, _ = call(*obfuscate(photos, out))
    assert (code, counts) == (130, {"failed": 1, "untried": COUNT - 1})
    assert snapshot(out) == {"00.png": b"somebody else's"}

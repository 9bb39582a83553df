"""Files appear together or not at all, whatever fails and whenever."""

import errno
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.errors import OutputError
from dpveil.io import locking, writing
from dpveil.io.folders import private_digest
from dpveil.release.saving import remove_leftovers

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  only new folders of our own


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def pair(folder: Path) -> list[tuple[Path, bytes]]:
    return [(folder / "a.json", b"certificate"), (folder / "a.png", b"image")]


def refused(files, *, replace: bool = False) -> str:
    with pytest.raises(OutputError) as caught:
        writing.write_together(files, replace=replace)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_a_longer_old_file_leaves_no_tail(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x" * 10_000)
    writing.write_together(pair(tmp_path), replace=True)
    assert listing(tmp_path) == {"a.json": b"certificate", "a.png": b"image"}


def test_a_target_that_appears_meanwhile_stays(tmp_path, monkeypatch):
    real = os.link

    def late(source, target, **options):
        if Path(target).name == "a.png":
            Path(target).write_bytes(b"somebody else's")
        real(source, target, **options)

    monkeypatch.setattr(os, "link", late)
    assert "exists already" in refused(pair(tmp_path))
    assert listing(tmp_path) == {"a.png": b"somebody else's"}


@pytest.mark.parametrize("replace", [False, True])
def test_a_link_is_never_written_through(tmp_path, replace):
    private = tmp_path / "elsewhere.txt"
    private.write_bytes(b"private")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.png").symlink_to(private)
    (folder / "a.json").symlink_to(tmp_path / "dangling")
    if replace:
        writing.write_together(pair(folder), replace=True)
        assert not (folder / "a.png").is_symlink()
        assert listing(folder) == {"a.json": b"certificate", "a.png": b"image"}
    else:
        assert "exists already" in refused(pair(folder))
        assert (folder / "a.json").is_symlink()
    assert private.read_bytes() == b"private"
    assert not (tmp_path / "dangling").exists()


def test_a_failed_replacement_brings_links_and_files_back(tmp_path, monkeypatch):
    (tmp_path / "a.json").symlink_to("nowhere")
    (tmp_path / "a.png").write_bytes(b"old")
    fail_at(monkeypatch, "replace", 2, OSError(errno.EIO, "Input/output error"))
    refused(pair(tmp_path), replace=True)
    assert (tmp_path / "a.json").readlink() == Path("nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


@pytest.mark.parametrize("replace", [False, True])
def test_impossible_targets(tmp_path, replace):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "plain").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.png")
    for name, problem in {
        "folder.png": "it is a folder",
        "missing/a.png": "no such folder",
        "plain/a.png": "a file is where its folder would be",
        "n" * 300 + ".png": "name too long",
        "a\0b.png": "not a valid file name",
        "pipe.png": "not a regular file" if replace else "exists already",
    }.items():
        files = [(tmp_path / "first.json", b"1"), (tmp_path / name, b"2")]
        assert problem in refused(files, replace=replace)
        assert not (tmp_path / "first.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.png", "pipe.png", "plain"]
    same = tmp_path / "a.png"
    assert "named twice" in refused([(same, b"1"), (same, b"2")], replace=replace)


def fail_at(monkeypatch, step: str, count: int, error: BaseException) -> None:
    """Make the `count`-th call of a step fail, before or (for an interrupt) after it took effect."""
    owner = Path if step in ("replace", "unlink") else os
    real = getattr(owner, step)
    left = [count]

    def failing(*arguments, **options):
        if step == "open" and Path(arguments[0]).is_dir():  # to lock or flush it
            return real(*arguments, **options)
        left[0] -= 1
        if left[0] != 0:
            return real(*arguments, **options)
        if not isinstance(error, OSError) and error.args:
            real(*arguments, **options)
        raise error

    monkeypatch.setattr(owner, step, failing)


class Killed(BaseException):
    """The process ends here: nothing is undone."""


FAULTS = [
    (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
    (OSError(errno.EACCES, "Permission denied"), "permission denied"),
    (OSError(errno.EROFS, "Read-only file system"), "read-only"),
    (OSError(errno.EDQUOT, "Quota exceeded"), "quota"),
    *((kind(*when), "") for kind in (KeyboardInterrupt, Killed) for when in ((), ("after",)) * 2),
]
NAMES = ("a.json", "a.png", "b.png")
STEPS = [("open", 3), ("fsync", 3), ("link", 6), ("replace", 3), ("unlink", 2)]
"""Calls of each step until three files have their names; later ones only tidy up."""


@settings(max_examples=250)
@given(
    st.integers(1, 3),
    st.just(set(NAMES)) | st.sets(st.sampled_from(NAMES)),
    st.booleans(),
    st.sampled_from([(step, count + 1) for step, most in STEPS for count in range(most)]),
    st.sampled_from(FAULTS),
)
def test_a_failure_at_any_step_leaves_what_was_there(many, old, replace, at, fault):
    """Disk full, refusals, interrupts and kills, before and after a step took effect, over any old files."""
    files, (error, message) = NAMES[:many], fault
    with tempfile.TemporaryDirectory(dir=MEMORY) as place, pytest.MonkeyPatch.context() as patch:
        folder = Path(place)
        for name in old:
            (folder / name).write_bytes(b"old")
        before = listing(folder)
        if isinstance(error, Killed):
            patch.setattr("dpveil.io.writing._undo", lambda placed, backups: None)
        fail_at(patch, *at, error)
        outcome: BaseException | None = None
        try:
            writing.write_together([(folder / name, b"new") for name in files], replace=replace)
        except (OutputError, KeyboardInterrupt, Killed) as caught:
            outcome = caught
        after = listing(folder)
    written = before | dict.fromkeys(files, b"new")
    left = {name: held for name, held in after.items() if not name.endswith(".tmp")}
    if isinstance(outcome, Killed):  # later files may be missing, and none is old beside a new one
        held = [left.get(name) for name in files]
        new = held.count(b"new")
        assert held[:new] == [b"new"] * new
        assert b"old" not in held[new:] or new == 0
        assert dict.fromkeys(old.difference(files), b"old").items() <= left.items()
    elif outcome is None:
        assert replace or old.isdisjoint(files)
        assert left == written
    elif isinstance(outcome, KeyboardInterrupt):
        assert after == before or left == written  # all is there already while tidying up
    else:
        assert after == before
        refused_as_they_exist = not replace and not old.isdisjoint(files)
        assert message in str(outcome) or refused_as_they_exist


def test_writers_do_not_wait_for_each_others_disk_and_none_is_taken_for_dead(tmp_path, monkeypatch):
    """While one writer flushes, another writes, and whoever tidies up leaves its files alone."""
    flushing, goes_on = threading.Event(), threading.Event()
    flush = os.fsync

    def slow(handle: int) -> None:
        if threading.current_thread().name == "slow":
            flushing.set()
            assert goes_on.wait(60)
        flush(handle)

    monkeypatch.setattr(os, "fsync", slow)
    first = [(tmp_path / "b.json", b"certificate"), (tmp_path / "b.png", b"image")]
    writer = threading.Thread(
        target=writing.write_together, args=(first,), kwargs={"replace": False}, name="slow"
    )
    writer.start()
    try:
        assert flushing.wait(60)
        monkeypatch.setattr(locking, "PATIENCE", 1.0)
        writing.write_together(pair(tmp_path), replace=False)
        dead = tmp_path / f".dpveil-{'0' * 16}.tmp"
        dead.write_bytes(b"of a killed process")
        assert locking.leftovers(tmp_path) == [dead]
        remove_leftovers(tmp_path)
    finally:
        goes_on.set()
        writer.join(60)
    expected = {"a.json": b"certificate", "a.png": b"image", "b.json": b"certificate", "b.png": b"image"}
    assert listing(tmp_path) == expected


def test_a_target_that_appears_while_files_are_flushed_is_not_replaced(tmp_path, monkeypatch):
    flush, noted = os.fsync, []

    def late(handle: int) -> None:
        flush(handle)
        (tmp_path / "a.png").write_bytes(b"another's")

    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(OutputError, match="exists already"):
        writing.write_together(pair(tmp_path), replace=False, before=lambda: noted.append(1))
    assert (listing(tmp_path), noted) == ({"a.png": b"another's"}, [])


def test_a_disk_without_hard_links(tmp_path, monkeypatch):
    def unsupported(*arguments, **options):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    writing.write_together(pair(tmp_path), replace=False)
    assert listing(tmp_path) == {"a.json": b"certificate", "a.png": b"image"}
    assert "exists already" in refused(pair(tmp_path))
    writing.write_together([(path, data * 2) for path, data in pair(tmp_path)], replace=True)
    assert listing(tmp_path) == {"a.json": b"certificate" * 2, "a.png": b"image" * 2}
    fail_at(monkeypatch, "replace", 2, OSError(errno.EIO, "Input/output error"))
    refused(pair(tmp_path), replace=True)
    assert listing(tmp_path) == {"a.json": b"certificate" * 2, "a.png": b"image" * 2}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_for_real(tmp_path, monkeypatch):
    real = os.open

    def full(path, flags, mode=0o777, **options):
        return real("/dev/full" if str(path).endswith(".tmp") else path, flags & ~os.O_EXCL, mode, **options)

    monkeypatch.setattr(os, "open", full)
    assert "the disk is full: make room" in refused(pair(tmp_path)[:1])  # two files would be one here
    assert listing(tmp_path) == {}


def test_folders(tmp_path, monkeypatch):
    writing.make_folder(tmp_path / "a" / "b")
    writing.make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "plain").write_bytes(b"")
    wrong = {"plain": "is not a folder", "plain/x": "a file is where", "n" * 300: "too long"}
    for name, problem in wrong.items():
        with pytest.raises(OutputError, match=problem):
            writing.make_folder(tmp_path / name)
    with pytest.raises(OutputError, match="not a valid file name"):
        writing.make_folder("a\0b")


def test_a_secret_digest_keeps_one_key_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, again, other = (private_digest(data) for data in (b"a", b"a", b"b"))
    assert first == again != other
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["digest.key"]

"""Several runs over one folder at once: nothing is torn, paid for twice or lost."""

import errno
import itertools
import json
import shutil
import signal
from pathlib import Path

import pytest
from hardening_runs import TEMPORARY, Order, finished, obfuscate, originals, pairs, snapshot

import dpveil
from dpveil.cli import run
from dpveil.errors import OutputError
from dpveil.io import locking, sole_writer, write_together
from dpveil.release.plan import Plan
from dpveil.release.saving import certificate_path, tidy

COUNT = 12
ROUNDS = 4


@pytest.fixture
def photos(tmp_path):
    return originals(tmp_path / "in", COUNT)


def inputs(end, outcome):
    return sorted(Path(entry["input"]).name for entry in end.report[outcome])


def test_the_same_settings_release_each_photo_once(runs, tmp_path, photos):
    for number in range(ROUNDS):
        out = tmp_path / f"out-{number}"
        ends = runs.together(*[Order(obfuscate(photos, out))] * 3)
        assert [end.code for end in ends] == [0, 0, 0], ends
        released = sorted(name for end in ends for name in inputs(end, "released"))
        assert released == sorted(path.name for path in photos.iterdir())
        assert all(len(inputs(end, "released") + inputs(end, "skipped")) == COUNT for end in ends)
        finished(out, photos, dpveil.verify)


def test_other_settings_never_replace_and_say_so(runs, tmp_path, photos):
    for number in range(ROUNDS):
        out = tmp_path / f"out-{number}"
        ends = runs.together(*[Order(obfuscate(photos, out, epsilon=epsilon)) for epsilon in (1, 2)])
        assert all(end.code == bool(end.report["failed"]) for end in ends)
        released = sorted(name for end in ends for name in inputs(end, "released"))
        assert released == sorted(path.name for path in photos.iterdir())
        for entry in ends[0].report["failed"] + ends[1].report["failed"]:
            assert "exists" in entry["error"]
            assert "--force" in entry["hint"]
        finished(out, photos, dpveil.verify)


def test_forced_runs_replace_whole_pairs_and_others_skip_them(runs, tmp_path, photos):
    out = tmp_path / "out"
    assert runs(*obfuscate(photos, out)).code == 0
    forced, plain = Order(obfuscate(photos, out, "--force")), Order(obfuscate(photos, out))
    for _ in range(ROUNDS):
        ends = runs.together(forced, plain, forced)
        assert [end.code for end in ends] == [0, 0, 0], ends
        assert [end.counts for end in ends] == [{"released": COUNT}, {"skipped": COUNT}, {"released": COUNT}]
        finished(out, photos, dpveil.verify)


def test_a_run_beside_one_that_dies_finishes_its_work(runs, tmp_path):
    """How many steps the dying one gets to depends on how much the other leaves it to do."""
    photos, out, deaths = originals(tmp_path / "in", 2), tmp_path / "out", 0
    for at in range(1, 20):
        shutil.rmtree(out, ignore_errors=True)
        dying, living = runs.together(Order(obfuscate(photos, out), at=at), Order(obfuscate(photos, out)))
        assert dying.code in (0, -signal.SIGKILL)
        deaths += dying.code != 0
        assert (living.code, living.err.count("Traceback")) == (0, 0), (at, living)
        assert set(pairs(out, photos, dpveil.verify)) == {"00.png", "01.png"}
        assert runs(*obfuscate(photos, out)).counts == {"skipped": 2}
        finished(out, photos, dpveil.verify)
    assert deaths


def torn_release(runs, tmp_path, photos):
    """A folder with a certificate whose image a killed run left under its temporary name."""
    for at in itertools.count(1):
        torn = tmp_path / f"torn-{at}"
        runs(*obfuscate(photos, torn), at=at)
        if certificate_path("00.png").name in snapshot(torn):
            assert "00.png" not in snapshot(torn)
            return torn
    raise AssertionError


def test_what_a_run_left_that_died_after_ours_began_is_finished_too(runs, tmp_path, monkeypatch, capsys):
    photos, out = originals(tmp_path / "in", 1), tmp_path / "out"
    torn, real = torn_release(runs, tmp_path, photos), Plan.release

    def late(*arguments, **more):
        shutil.copytree(torn, out, dirs_exist_ok=True)
        return real(*arguments, **more)

    monkeypatch.setattr(Plan, "release", late)
    assert run(obfuscate(photos, out)) == 0
    assert [len(e) for e in json.loads(capsys.readouterr().out).values()] == [0, 0, 1, 0, 0]
    finished(out, photos, dpveil.verify)


@pytest.mark.parametrize("locks", [True, False])
def test_temporary_files_of_a_run_that_is_still_writing_are_left_alone(tmp_path, monkeypatch, locks):
    monkeypatch.setattr(locking, "PATIENCE", 0.05)
    monkeypatch.setattr(locking, "LOCKS", locks)
    theirs = tmp_path / f"{TEMPORARY}{'0' * 16}.tmp"
    theirs.write_bytes(b"half")
    with sole_writer([tmp_path]) as alone:
        assert alone == locks
        tidy(tmp_path)
        assert theirs.exists()
    tidy(tmp_path)
    assert theirs.exists() != locks  # where nobody can know whether it is in use, it stays


def test_a_writer_that_does_not_come_to_an_end_is_a_refusal_and_no_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "PATIENCE", 0.05)
    files = [(tmp_path / "a.json", b"1"), (tmp_path / "a.png", b"2")]
    with (
        sole_writer([tmp_path]),
        pytest.raises(OutputError, match="another process is writing there") as caught,
    ):
        write_together(files, replace=False)
    assert caught.value.__cause__.errno == errno.EBUSY
    assert snapshot(tmp_path) == {}
    write_together(files, replace=False)
    assert len(snapshot(tmp_path)) == 2

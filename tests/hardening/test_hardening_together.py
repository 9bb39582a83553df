"""Several runs over one folder at once: nothing is torn, paid for twice or lost."""

import shutil
import signal
from pathlib import Path

import pytest
from hardening_runs import Order, finished, obfuscate, originals, pairs

import dpveil

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

"""kill -9, power failures and polite signals at every step of a folder run."""

import itertools
import shutil
import signal

import pytest
from hardening_runs import TEMPORARY, finished, obfuscate, originals, pairs, snapshot

import dpveil
from dpveil.release.saving import certificate_path, remove_leftovers

PHOTOS = 2


@pytest.fixture
def photos(tmp_path):
    return originals(tmp_path / "in", PHOTOS)


def deaths(runs, arguments, prepare, **how):
    """Yield after each death of a run that dies one step later than the one before, until one survives."""
    for at in itertools.count(1):
        prepare()
        end = runs(*arguments, at=at, **how)
        if end.code == 0:
            assert at > 9 * PHOTOS, "the run took fewer steps than writing does: nothing was tested"
            return
        yield at, end


@pytest.mark.parametrize("cut", [False, True], ids=["kill", "power"])
def test_a_new_release_survives_death_at_every_step(runs, tmp_path, photos, cut):
    out = tmp_path / "out"
    torn = 0
    for at, end in deaths(runs, obfuscate(photos, out), lambda: shutil.rmtree(out, True), cut=cut):
        assert end.code == -signal.SIGKILL
        before = pairs(out, photos, dpveil.verify)
        torn += any(name.startswith(TEMPORARY) for name in snapshot(out))
        again = runs(*obfuscate(photos, out))
        assert again.code == 0, (at, again)
        assert again.counts.get("released", 0) + again.counts.get("skipped", 0) == PHOTOS
        after = finished(out, photos, dpveil.verify)
        assert before.items() <= after.items(), f"step {at}: released twice"
    assert torn > 4 * PHOTOS


@pytest.mark.parametrize("cut", [pytest.param(False, marks=pytest.mark.slow), True], ids=["kill", "power"])
def test_a_forced_release_survives_death_at_every_step(runs, tmp_path, photos, cut):
    """Never an old image beside a new certificate; the next run finds every photo's old pair, or the new."""
    earlier, out = tmp_path / "earlier", tmp_path / "out"
    assert runs(*obfuscate(photos, earlier, epsilon=1)).code == 0
    old = finished(earlier, photos, dpveil.verify)

    def prepare():
        shutil.rmtree(out, True)
        shutil.copytree(earlier, out)

    forced = obfuscate(photos, out, "--force")
    mixtures = 0
    for at, _ in deaths(runs, forced, prepare, cut=cut):
        pairs(out, photos, dpveil.verify)
        remove_leftovers(out)
        now = finished(out, photos, dpveil.verify)
        mixtures += 0 < len(old.items() & now.items()) < PHOTOS
        again = runs(*forced)
        assert (again.code, again.counts) == (0, {"released": PHOTOS}), (at, again)
        assert not old.items() & finished(out, photos, dpveil.verify).items()
    assert mixtures


def test_a_certificate_whose_image_was_not_placed_gets_that_image_even_if_the_next_run_dies(runs, tmp_path):
    photos, out, torn = originals(tmp_path / "in", 1), tmp_path / "out", tmp_path / "torn"
    beside = certificate_path("00.png").name
    for at in itertools.count(1):
        shutil.rmtree(torn, True)
        assert runs(*obfuscate(photos, torn), at=at).code == -signal.SIGKILL
        if beside in snapshot(torn):
            break
    assert "00.png" not in snapshot(torn)
    certificate = snapshot(torn)[beside]
    for again in itertools.count(1):
        shutil.rmtree(out, True)
        shutil.copytree(torn, out)
        end = runs(*obfuscate(photos, out), at=again)
        pairs(out, photos, dpveil.verify)
        assert runs(*obfuscate(photos, out)).counts == {"skipped": 1}
        finished(out, photos, dpveil.verify)
        assert snapshot(out)[beside] == certificate
        if end.code == 0:
            break
    assert again > 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_at_every_step_ends_with_130_and_whole_pairs_only(runs, tmp_path, photos, number):
    out = tmp_path / "out"
    released = set()
    arguments = obfuscate(photos, out)
    for _, end in deaths(runs, arguments, lambda: shutil.rmtree(out, True), signal=number):
        assert end.code == 130
        assert end.err.count("interrupted; finished outputs are complete") == 1
        assert "Traceback" not in end.err
        assert sum(end.counts.values()) == PHOTOS
        whole = pairs(out, photos, dpveil.verify)
        assert len(whole) == end.counts.get("released", 0)
        assert len(snapshot(out)) == 2 * len(whole)
        released.add(len(whole))
    assert PHOTOS in released  # the first one is drawn before anything is written, and others may be
    assert released <= {*range(1, PHOTOS + 1)}

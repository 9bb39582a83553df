"""Attacks made of others: reversal, averaging, composition, sums; and the labels that name them."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from crowd import part, sides, view
from test_attacks import rate

from dpveil import SeededBits
from dpveil.attacks import super_resolution as module
from dpveil.attacks.base import Attack, Scores
from dpveil.attacks.joint import Joint, attack, fit_weights, usable
from dpveil.attacks.matching import Averaged, Composed, matching
from dpveil.attacks.measures import identification, standard
from dpveil.attacks.networks import NetworkParrot
from dpveil.attacks.preprocessing import ResidualParrot, Wrapped, fill_commonest
from dpveil.attacks.super_resolution import SIDE, Inverse, Restored, _corners
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.synthetic_photos import DrawnEye
from dpveil.errors import InvalidParameter, UnknownName, UsageError
from dpveil.mechanisms.pixel import Blur, DPPix, Fill, Mosaic, Snow


def test_more_releases_of_a_photo_tell_more():
    method = DPPix(epsilon=1, block=4, neighbourhood=8)
    one = rate("pixels", method, times=9, probes=8).value
    several = rate("averaged(pixels)", method, times=9, probes=8).value
    summed = rate("composed(pixels)", method, times=9, probes=8).value
    assert several >= one + 0.2
    assert summed >= one + 0.1


def test_one_release_alone_is_attacked_as_it_is():
    background, shown, _ = sides(Blur(sigma=4), people=3)
    plain = PixelDiscriminant().fit(background).score(shown).likeness
    assert np.array_equal(Averaged().fit(background).score(shown).likeness, plain)
    composed = Composed().fit(background).score(shown)
    assert np.allclose(composed.likeness, standard(Scores(plain, composed.names)))


def test_a_second_release_by_another_method_is_composed():
    """The first shows nothing, the second everything: each needs an attacker of its own."""
    blank, shown, people = sides(Fill())
    clear, clearly, _ = sides(None)
    both = tuple(replace(one, more=(two,)) for one, two in zip(blank.released, clear.released, strict=True))
    probes = [replace(one, more=(two,)) for one, two in zip(shown, clearly, strict=True)]
    background = replace(blank, released=both)
    assert identification(Composed().fit(background).score(probes), people).value >= 0.8
    assert identification(PixelDiscriminant().fit(background).score(probes), people).value == 1 / 8


def test_the_inverse_undoes_what_is_linear():
    random = np.random.default_rng(1)
    clean, mix = random.normal(size=(200, 6)), random.normal(size=(6, 6))
    inverse = Inverse.of(clean @ mix + 3, clean)
    new = random.normal(size=(50, 6))
    assert np.abs(inverse.undo(new @ mix + 3) - new).mean() < 0.3 * np.abs(new).mean()


def test_enrolled_releases_are_undone_also_where_they_stand_for_clean_photos():
    """Verification of releases against releases gives releases for clean photos."""
    background, shown, people = sides(None, people=3)
    negative = [replace(one, image=255 - one.image, certificate={}) for one in background.clean]
    gallery = replace(background, clean=tuple(negative), released=tuple(negative))
    fitted = Negative(attack("eigenfaces")).fit(background).enrol(gallery)
    shown = [replace(one, image=255 - one.image) for one in shown]
    assert identification(fitted.score(shown), people).value >= 0.9


def test_own_releases_are_restored_by_inverses_of_other_photos():
    """An inverse knows what it learnt from: the inner attack would learn from pictures that are too good."""
    background, _, _ = sides(DPPix(epsilon=1, block=8, neighbourhood=64), people=6)
    wrapper = Restored()
    undo = wrapper.undo(background)
    known = np.stack([one.image for one in undo(background.released)]).astype(float)
    held = np.stack([one.image for one in wrapper.held_out(background, undo)]).astype(float)
    clean = np.stack([one.image for one in background.clean]).astype(float)
    assert np.square(known - clean).mean() < 0.7 * np.square(held - clean).mean()
    inner = Told(0.0)
    inner.fit = lambda given: np.stack([one.image for one in given.released])
    assert np.array_equal(Restored(inner).fit(background).inner, held)


def test_the_denoiser_runs_before_the_attack():
    background, shown, _ = sides(DPPix(epsilon=1, block=4, neighbourhood=8), people=3)
    label = "denoised:median:3(pixels)"
    found = attack(label).fit(background).score(shown)
    assert attack(label).label == label
    assert attack(label).extras == ()
    assert attack("denoised(pixels)").extras == ("models",)
    assert not np.allclose(found.likeness, attack("pixels").fit(background).score(shown).likeness)
    with pytest.raises(UnknownName, match="unknown post-processing step 'magic'"):
        attack("denoised:magic").fit(background)


class Negative(Wrapped):
    """Turns the levels of releases round."""

    name, summary = "negative", ""

    def __init__(self, inner):
        object.__setattr__(self, "inner", inner)

    def undo(self, background):
        return lambda views: tuple(replace(one, image=255 - one.image) for one in views)


class Told(Attack):
    """An attacker who is told the photo's number, with some certainty, or says nothing."""

    name, summary, sees = "told", "", ()

    def __init__(self, sure):
        self.sure = sure

    def fit(self, background):
        sure, names = self.sure, background.names

        class Fitted:
            def score(self, releases):
                random = np.random.default_rng(len(releases))
                true = np.array([one.size for one in releases])
                likeness = random.normal(size=(len(releases), len(names)))
                likeness[np.arange(len(true)), true] += sure
                return Scores(likeness if sure is not None else np.full_like(likeness, np.nan), names)

        return Fitted()


def test_who_says_nothing_adds_nothing_and_all_together_fail():
    background, shown, people = sides(None, people=3)
    silent = Told(0.0)
    silent.fit = lambda background: _Silent(background.names)
    scores = Joint((PixelDiscriminant(), silent)).fit(background).score(shown)
    assert identification(scores, people).failures == 0
    assert identification(Joint((silent,)).fit(background).score(shown), people).failures == len(shown)


class _Silent:
    def __init__(self, names):
        self.names = names

    def score(self, releases):
        return Scores(np.full((len(releases), len(self.names)), np.nan), self.names)


def test_weights_favour_who_is_right():
    random = np.random.default_rng(2)
    scores = random.normal(size=(2, 60, 5))
    owners = random.integers(0, 5, 60)
    scores[0, np.arange(60), owners] += 4
    weights = fit_weights(scores, owners)
    assert weights[0] > 5 * weights[1]


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("pixels", "pixels"),
        ("restored", "restored(pixels)"),
        ("joint", "placement+context"),
        ("context + restored( pixels )", "context+restored(pixels)"),
        ("averaged(restored(pixels)+context)", "averaged(restored(pixels)+context)"),
        ("embedding:/tmp/arcface.onnx", "embedding:arcface"),
        ("denoised:denoiser:/tmp/mine.safetensors(pixels)", "denoised:denoiser:mine(pixels)"),
    ],
)
def test_labels_say_what_attacks_are_made_of(label, told):
    assert attack(label).label == told
    assert attack(attack(label).label).label == told


@pytest.mark.parametrize(
    "label", ["", "pixels(context)", "restored(pixels", "pixels:3", "restored:(pixels)", "a" * 300]
)
def test_other_labels_are_refused(label):
    with pytest.raises((InvalidParameter, UnknownName)):
        attack(label)


def test_only_attacks_whose_extras_are_there_are_usable(monkeypatch):
    monkeypatch.setattr("dpveil.attacks.base.find_spec", lambda name: None)
    assert [one.label for one in usable(["pixels", "network", "restored(embedding)"])] == ["pixels"]
    monkeypatch.undo()
    assert {"pixels", "joint"} <= {type(one).name for one in usable()}


# Painted pixels are filled from those that are shown, and nothing else changes.


@pytest.mark.parametrize("delta", ["0.1", "0.5", "0.85"])
def test_snow_is_filled_from_what_it_shows(delta: str) -> None:
    photo = DrawnEye.of(3, 0).read().image
    release = Snow(delta=delta).release(photo, bits=SeededBits(1))
    found = fill_commonest(release)
    shown = release != 127
    assert (found[shown] == photo[shown]).all(), "what is shown stays"
    wrong, left = (np.abs(one.astype(int) - photo)[~shown].mean() for one in (release, found))
    assert left < wrong / 3


# Matching all releases to all people at once.


def test_the_whole_is_likeliest_of_all_ways_to_give_releases_out() -> None:
    random = np.random.default_rng(2)
    owners = np.repeat(np.arange(3), 2)
    for seed in range(20):
        logs = -random.exponential(size=(6, 3))
        found = matching(logs, np.array([2, 2, 2]), seed)
        given = np.argmax(found, axis=1)
        assert np.bincount(given).tolist() == [2, 2, 2]
        best = max(logs[np.arange(6), owners[list(way)]].sum() for way in permutations(range(6)))
        assert logs[np.arange(6), given].sum() == pytest.approx(best)


# Networks trained on releases: deterministic, on one thread, and without torch one line.


KINDS = [NetworkParrot, ResidualParrot]


@pytest.mark.parametrize("kind", KINDS)
def test_networks_name_people_in_mosaics(kind):
    pytest.importorskip("torch", reason="needs the extra attacks")
    background, shown, people = sides(Mosaic(block=4))
    assert identification(kind().fit(background).score(shown), people).value >= 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_one_attacker_and_global_state_stays(kind):
    torch = pytest.importorskip("torch", reason="needs the extra attacks")
    background, shown, _ = sides(Mosaic(block=8), people=3)
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = kind(seed=1, epochs=2).fit(background).score(shown).likeness
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(6)
    assert np.array_equal(kind(seed=1, epochs=2).fit(background).score(shown).likeness, first)
    assert not np.array_equal(kind(seed=2, epochs=2).fit(background).score(shown).likeness, first)
    assert np.allclose(np.exp(first).sum(axis=1), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_who_was_not_learnt_from_is_enrolled_by_what_the_last_layer_reads(kind):
    pytest.importorskip("torch", reason="needs the extra attacks")
    background, shown, people = sides(Mosaic(block=4), people=12)
    learnt, gallery = (part(background, lambda name, of=of: (name >= "p06") is of) for of in (False, True))
    fitted = kind(epochs=12).fit(learnt)
    before = fitted.score(shown).likeness
    enrolled = fitted.enrol(gallery)
    probes = [one for one, name in zip(shown, people, strict=True) if name >= "p06"]
    scores = enrolled.score(probes)
    assert scores.names == gallery.names
    assert identification(scores, [name for name in people if name >= "p06"]).value >= 0.75
    assert (np.abs(scores.likeness) <= 2).all()
    assert np.array_equal(fitted.score(shown).likeness, before), "nothing is learnt anew"
    grey = replace(gallery, clean=tuple(view(np.full_like(one.image, 9)) for one in gallery.clean))
    assert np.array_equal(fitted.enrol(grey).score(probes).likeness, scores.likeness), "releases are enrolled"
    assert enrolled.score([]).likeness.shape == (0, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_without_torch_one_line_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    background, _, _ = sides(Mosaic(block=8), people=3)
    with pytest.raises(UsageError, match="needs torch, which is not installed"):
        kind().fit(background)


# Super-resolution from others' clean patches: what it gives, and that it never sees its own answer.


def test_patches_cover_every_pixel_to_the_edge() -> None:
    for side in (*SIDE, 8, 9, 21):
        covered = np.zeros(side, np.int64)
        for corner in _corners(side):
            covered[corner : corner + 8] += 1
        assert covered.min() >= 1
        assert _corners(side)[-1] + 8 == side


def test_the_inner_attack_never_learns_from_a_photo_that_restored_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bug to fear: own releases come back perfect, and others' do not look like them."""
    background, *_ = sides(Mosaic(block=8))
    given = []

    def watched(one: np.ndarray, seen: np.ndarray, clean: np.ndarray) -> np.ndarray:
        given.append((one, seen))
        return one

    monkeypatch.setattr(module, "hallucinate", watched)
    attack("hallucinated").fit(background)
    assert sum(len(one) for one, _ in given) == len(background.people)
    for one, seen in given:
        assert not (one[:, None] == seen[None]).all(axis=(2, 3)).any()

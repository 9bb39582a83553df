"""Attacks made of others: reversal, averaging, composition, sums; and the labels that name them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from crowd import sides
from test_attacks import rate

from dpveil.attacks.base import Attack, Scores
from dpveil.attacks.combined import Joint, attack, fit_weights, usable
from dpveil.attacks.measures import identification
from dpveil.attacks.networks import NetworkParrot, ResidualParrot
from dpveil.attacks.preprocessing import Averaged
from dpveil.attacks.restoration import Inverse, Restored
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.errors import InvalidParameter, UnknownName, UsageError
from dpveil.mechanisms.pixel import Blur, DPPix, Mosaic


def test_more_releases_of_a_photo_tell_more():
    method = DPPix(epsilon=1, block=4, neighbourhood=8)
    one = rate("pixels", method, times=9, probes=8).value
    several = rate("averaged(pixels)", method, times=9, probes=8).value
    assert several >= one + 0.2


def test_one_release_alone_is_attacked_as_it_is():
    background, shown, _ = sides(Blur(sigma=4), people=3)
    plain = PixelDiscriminant().fit(background).score(shown).likeness
    assert np.array_equal(Averaged().fit(background).score(shown).likeness, plain)


def test_the_inverse_undoes_what_is_linear():
    random = np.random.default_rng(1)
    clean, mix = random.normal(size=(200, 6)), random.normal(size=(6, 6))
    inverse = Inverse.of(clean @ mix + 3, clean)
    new = random.normal(size=(50, 6))
    assert np.abs(inverse.undo(new @ mix + 3) - new).mean() < 0.3 * np.abs(new).mean()


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
def test_without_torch_one_line_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    background, _, _ = sides(Mosaic(block=8), people=3)
    with pytest.raises(UsageError, match="needs torch, which is not installed"):
        kind().fit(background)

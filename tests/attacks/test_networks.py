"""Networks trained on releases: deterministic, on one thread, and without torch one line."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from crowd import part, sides, view

from dpveil.attacks.measures import identification
from dpveil.attacks.networks import NetworkParrot
from dpveil.attacks.wrapped import ResidualParrot
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import Mosaic

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

"""Networks trained on releases: deterministic, on one thread, and without torch one line."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from crowd import sides

from dpveil.attacks.measures import identification
from dpveil.attacks.network import NetworkParrot
from dpveil.attacks.residual import ResidualParrot
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import Fill, Mosaic

KINDS = [NetworkParrot, ResidualParrot]


@pytest.mark.parametrize("kind", KINDS)
def test_networks_name_people_in_mosaics(kind):
    pytest.importorskip("torch", reason="needs the extra train")
    background, shown, people = sides(Mosaic(block=4))
    assert identification(kind().fit(background).score(shown), people).value >= 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_one_attacker_and_global_state_stays(kind):
    torch = pytest.importorskip("torch", reason="needs the extra train")
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


def test_releases_that_are_all_alike_are_no_error():
    pytest.importorskip("torch", reason="needs the extra train")
    background, shown, people = sides(Fill(), people=3)
    found = NetworkParrot(epochs=1).fit(background).score(shown)
    assert identification(found, people).value <= 2 / 3
    assert NetworkParrot(epochs=1).fit(background).score([]).likeness.shape == (0, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_without_torch_one_line_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    background, _, _ = sides(Mosaic(block=8), people=3)
    with pytest.raises(UsageError, match="needs torch, which is not installed"):
        kind().fit(background)

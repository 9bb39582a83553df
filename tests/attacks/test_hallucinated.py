"""Super-resolution from others' clean patches: what it gives, and that it never sees its own answer."""

from __future__ import annotations

import numpy as np
import pytest
from crowd import sides

from dpveil.attacks import attack, named
from dpveil.attacks import hallucinated as module
from dpveil.attacks.hallucinated import SIDE, _combined, _corners, hallucinated
from dpveil.mechanisms.pixel import Mosaic

RNG = np.random.default_rng(0)


def test_patches_cover_every_pixel_to_the_edge() -> None:
    for side in (*SIDE, 8, 9, 21):
        covered = np.zeros(side, np.int64)
        for corner in _corners(side):
            covered[corner : corner + 8] += 1
        assert covered.min() >= 1
        assert _corners(side)[-1] + 8 == side


def test_a_patch_that_is_a_mixture_becomes_the_mixture_of_the_clean_ones() -> None:
    seen, clean = RNG.normal(size=(10, 64)), RNG.normal(size=(10, 64))
    shares = np.array([0.5, 0.3, 0.2])
    found = _combined((shares @ seen[:3])[None], seen, clean)[0]
    assert np.abs(found - shares @ clean[:3]).max() < 0.1
    lighter = _combined((shares @ seen[:3])[None] + 7, seen + 7, clean + 5)[0]
    assert lighter == pytest.approx(found + 5, abs=1e-6), "the weights add up to one"


def test_pictures_that_the_attacker_has_come_back_clean() -> None:
    clean = RNG.uniform(size=(30, 56, 46))
    seen = clean + RNG.normal(scale=0.2, size=clean.shape)
    assert np.abs(hallucinated(seen[:4], seen, clean) - clean[:4]).max() < 0.05


def test_the_inner_attack_never_learns_from_a_photo_that_restored_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bug to fear: own releases come back perfect, and others' do not look like them."""
    background, *_ = sides(Mosaic(block=8))
    given = []

    def watched(one: np.ndarray, seen: np.ndarray, clean: np.ndarray) -> np.ndarray:
        given.append((one, seen))
        return one

    monkeypatch.setattr(module, "hallucinated", watched)
    attack("hallucinated").fit(background)
    assert sum(len(one) for one, _ in given) == len(background.people)
    for one, seen in given:
        assert not (one[:, None] == seen[None]).all(axis=(2, 3)).any()


def test_mosaics_are_undone_before_recognition() -> None:
    background, probes, people = sides(Mosaic(block=8))
    fitted = attack("hallucinated(eigenfaces)").fit(background)
    naive = attack("eigenfaces").fit(background)
    rates = [named(one.score(probes), people).mean() for one in (naive, fitted)]
    assert rates[1] >= max(0.8, rates[0])

"""Training of the denoiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from network_made import crops

from dpveil.assets.model_cards import Card
from dpveil_train.denoiser import METHODS, TINY, Draws, Trainer, cut, random_release


def test_releases_are_of_every_method_and_at_many_budgets() -> None:
    draws = Draws(0, "test")
    face = cut(crops(side=32)[0], 32, draws)
    names = [type(make(draws)).__name__ for make in METHODS]
    assert set(names) == {"DPPix", "DPPixGaussian", "Snow", "MSEExponential"}
    errors = np.array([np.abs(random_release(face, draws).astype(int) - face).mean() for _ in range(120)])
    assert errors.min() < 15 < 60 < errors.max()


def test_a_cut_shows_a_part_of_the_crop_mirrored_or_not() -> None:
    ramp = np.tile(np.linspace(0, 255, 64, dtype=np.uint8)[None, :, None], (64, 1, 3))
    cuts = [cut(ramp, 32, Draws(seed, "test")) for seed in range(40)]
    rising = [int(np.sign(int(one[5, -1, 0]) - int(one[5, 0, 0]))) for one in cuts]
    assert set(rising) == {-1, 1}
    spans = [abs(int(one[5, -1, 0]) - int(one[5, 0, 0])) for one in cuts]
    assert min(spans) > 0.6 * 255 * 31 / 32
    assert max(spans) <= 255


def test_it_learns_to_take_noise_away() -> None:
    """On faces of one colour each, the loss falls: to 0.87 of the first steps' when this was written."""
    flat = np.tile(np.random.default_rng(1).integers(40, 216, (60, 1, 1, 3), np.uint8), (1, 32, 32, 1))
    made = Trainer(replace(TINY, steps=200, batch=4), flat)
    losses = [made.step()["level"] for _ in range(120)]
    assert np.mean(losses[-40:]) < 0.94 * np.mean(losses[:40])


def test_the_exported_network_is_the_network() -> None:
    made = Trainer(TINY, crops(side=32))
    made.step()
    model = made.model(Card("denoiser", "made by a test", "any", 0))
    face = crops(side=32)[3]
    with torch.no_grad():
        planes = torch.from_numpy(face).permute(2, 0, 1)[None].float() / 127.5 - 1
        wanted = ((made.mean[0](planes)[0].permute(1, 2, 0) + 1) * 127.5).round().clamp(0, 255).numpy()
    assert np.abs(model(face).astype(int) - wanted).max() <= 1

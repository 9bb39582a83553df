"""Cuts are found, and flashes, fades, pans and noise are none."""

import numpy as np
import pytest
from moving_world import smooth

from dpveil.video.tracks.looking import Shots

WIDE = [smooth(180, 600, seed, 20)[..., 0] for seed in (1, 2)]


def view(shot=0, at=0, gain=1.0, plus=0.0, noise=0.0):
    rng = np.random.default_rng(at)
    picture = WIDE[shot][:, at : at + 320] * gain + plus + rng.normal(0, 1, (180, 320)) * noise
    return np.clip(picture, 0, 255).astype(np.uint8)


def begins(pictures):
    shots = Shots()
    return [n for n, picture in enumerate(pictures) if shots.begins(picture)]


def test_a_cut_is_where_another_shot_begins():
    assert begins([view(0, n) for n in range(10)] + [view(1, n) for n in range(10)]) == [10]
    assert begins([view(0)] * 5 + [view(1)] * 5 + [view(0)] * 5) == [5, 10]


@pytest.mark.parametrize("gain", [0.3, 1.6, 3.0])
def test_flashes_are_no_cuts(gain):
    assert begins([view(0, n, gain if n in (7, 8) else 1) for n in range(20)]) == []
    blank = np.full((180, 320), 255, np.uint8)
    assert begins([blank if n in (7, 8) else view(0, n) for n in range(20)]) == []


def test_fades_cut_only_if_something_else_comes():
    fade = [view(0, 0, gain) for gain in (1, 0.8, 0.6, 0.4, 0.2, 0.1, 0.02, 0, 0)]
    assert begins(fade + fade[::-1]) == []
    assert begins(fade + [view(1, 0, gain) for gain in (0, 0.1, 0.5, 1)]) == [10]


def test_pans_and_noise_are_no_cuts():
    assert begins([view(0, 10 * n, noise=20) for n in range(28)]) == []
    assert begins([np.zeros((180, 320), np.uint8)] * 4) == []
    assert begins([view()[:1, :1]] * 4 + [view()[:2, :5]]) == []


def test_where_all_frames_differ_there_are_few_cuts():
    pictures = [smooth(180, 320, seed, 20)[..., 0] for seed in range(30)]
    assert len(begins(pictures)) <= 3
    assert begins([pictures[n // 8] for n in range(48)]) == [8, 16, 24, 32, 40]

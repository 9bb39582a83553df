"""Cuts are found, and flashes, fades, pans and noise are none."""

import numpy as np
import pytest
from moving_world import Knowing, clip, facts, of, smooth

from dpveil.core.region_origin import FACE
from dpveil.regions.finder import Seen
from dpveil.video.tracks.frame_search import DARK, DARKEST, LAMPS, LIGHT, Shots, lighten
from dpveil.video.tracks.tracker import find_tracks

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


# Faces in dark frames are searched in brighter copies.


def dark(share, noise=0.0):
    picture = smooth(120, 160, 4, 24) * share
    return (picture + np.random.default_rng(1).normal(0, noise, picture.shape)).clip(0, 255).astype(np.uint8)


def test_dark_frames_get_brighter_and_less_noisy():
    light, noisy = lighten(dark(0.08)), lighten(dark(0.08, noise=5))
    assert abs(np.percentile(noisy, 100 - LAMPS) - LIGHT) < 12
    own = dark(0.08, noise=5).astype(float) * LIGHT / np.percentile(dark(0.08), 100 - LAMPS)
    assert np.abs(noisy.astype(float) - light).mean() < 0.6 * np.abs(own - light).mean()
    assert np.corrcoef(light.ravel(), dark(1).ravel())[0, 1] > 0.95


def test_frames_with_light_stay_as_they_are_and_black_ones_stay_black():
    for image in (dark(1), dark(0.2), np.full((9, 9, 3), DARK, np.uint8)):
        assert lighten(image) is image
    lamp = np.zeros((100, 100, 3), np.uint8)
    assert not lighten(lamp).any()
    assert lighten(lamp + np.uint8(1)).max() == LIGHT // DARKEST
    lamp[:3, :3] = 255
    assert lighten(lamp + np.uint8(9)) is not lamp
    one = np.zeros((1, 1, 3), np.uint8)
    assert lighten(one).shape == one.shape


@pytest.mark.parametrize(("kind", "brighter"), [(FACE, True), ("text", False)])
def test_faces_alone_are_searched_in_brighter_frames(kind, brighter):
    """In a clip of one shot, whose frames are searched by a finder that tells the brightest level."""
    seen = []

    class Bright(Knowing):
        def find_in_frame(self, photo):
            seen.append(int(photo.image.max()))
            return [Seen(kind, (50.0, 50.0, 30.0, 40.0), 0.9, True)]

    Bright.kind = kind
    frames = [type(one)(one.index, one.time, one.image // 12) for one in clip(9, [])]
    find_tracks(frames, facts(9), [Bright(of([]))])
    assert seen
    assert all((level > 200) == brighter for level in seen)

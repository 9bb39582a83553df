"""Faces in dark frames are searched in brighter copies."""

import numpy as np
import pytest
from moving_world import Knowing, clip, facts, of, smooth

from dpveil.core.origin import FACE
from dpveil.regions.finder import Seen
from dpveil.video.tracks.finding import find_tracks
from dpveil.video.tracks.looking import DARK, LAMPS, LEAST, LIGHT, lighten


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
    assert lighten(lamp + np.uint8(1)).max() == LIGHT // LEAST
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

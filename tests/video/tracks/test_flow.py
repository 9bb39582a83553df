"""Boxes are followed where their texture goes, and it is known where it is not seen."""

import numpy as np
import pytest
from moving_world import HEIGHT, WIDTH, drawn, smooth

from dpveil.video.tracks.following import follow, small


def grey(place, seed=1, background=9):
    image = smooth(HEIGHT, WIDTH, background).copy()
    if place is not None:
        drawn(image, place, seed)
    return small(image)[0]


def edges(place):
    x, y, w, h = place
    return np.array([[x, y, x + w, y + h]], np.float64)


@pytest.mark.parametrize("place", [(60, 50, 40, 48), (47, 42, 40, 48), (54, 46, 42, 50), (53, 47, 38, 46)])
def test_a_box_moves_and_grows_with_its_texture(place):
    before = 54, 48, 40, 48
    moved, sure, _ = follow(grey(before), grey(place), edges(before))
    assert sure.tolist() == [True]
    assert np.abs(moved - edges(place)).max() < 1.6


@pytest.mark.parametrize("motion", [(14, 0), (18, 4), (22, -6), (26, 8)])
def test_small_objects_that_are_fast_are_followed(motion):
    before, after = (100, 60, 36, 44), (100 + motion[0], 60 + motion[1], 36, 44)
    moved, sure, _ = follow(grey(before, 0, 1000), grey(after, 0, 1000), edges(before))
    assert sure.tolist() == [True]
    assert np.abs(moved - edges(after)).max() < 1


def test_what_disappears_or_is_covered_is_not_followed():
    before = 54, 48, 40, 48
    for other in (grey(None), grey(before, seed=2), np.full((HEIGHT, WIDTH), 90, np.uint8)):
        moved, sure, _ = follow(grey(before), other, edges(before))
        assert sure.tolist() == [False]
        assert (moved == edges(before)).all()


@pytest.mark.parametrize("turn", [-9, 3, 10])
def test_a_box_stays_upright_and_tells_how_its_texture_was_turned(turn):
    import cv2

    before, middle = smooth(HEIGHT, WIDTH, 5, 8), (110.0, 80.0)
    after = cv2.warpAffine(before, cv2.getRotationMatrix2D(middle, -turn, 1.0), (WIDTH, HEIGHT))
    box = edges((86, 52, 48, 56))
    moved, sure, turns = follow(small(before)[0], small(after)[0], box)
    assert sure.tolist() == [True]
    assert abs(turns[0] - turn) < 0.5
    assert np.abs(moved - box).max() < 1
    gone = follow(small(before)[0], np.full((HEIGHT, WIDTH), 90, np.uint8), box)
    assert gone[2].tolist() == [0.0]

"""Detections go to the tracks that they fit best, all together."""

import numpy as np

from dpveil.video.tracks.following import FASTER, LONGEST, REACH, matches


def boxes(*lefts, size=20.0, top=0.0):
    return np.array([(x, top, x + size, top + size) for x in lefts]).reshape(-1, 4)


ALONE = np.zeros(2)


def test_the_sum_of_distances_counts_and_not_the_first_track():
    held = boxes(0, 8)
    assert matches(held, held, ALONE, boxes(7, 15)) == [(0, 0), (1, 1)]


def test_what_is_too_far_or_of_another_size_is_another_object():
    held = boxes(0)
    assert matches(held, held, ALONE[:1], boxes(REACH * 20 - 0.1)) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(REACH * 20 + 0.1)) == []
    assert matches(held, held, ALONE[:1], boxes(-7.5, size=35, top=-7.5)) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(-8.5, size=37, top=-8.5)) == []
    assert matches(held, held, ALONE[:1], boxes(5.5, size=9, top=5.5)) == []
    assert matches(held, held, ALONE[:1], boxes(), narrow=True) == []
    assert matches(boxes(), boxes(), ALONE[:0], held) == []


def test_what_was_not_followed_may_be_farther_and_doubtful_ones_nearer():
    held, far = boxes(0), boxes((REACH + FASTER / 10) * 20 - 0.1)
    assert matches(held, held, np.array([0.1]), far) == [(0, 0)]
    assert matches(held, held, np.array([0.09]), far) == []
    assert matches(held, held, np.array([99.0]), boxes(LONGEST * 20 + 0.1)) == []
    assert matches(held, held, ALONE[:1], boxes(REACH * 10 - 0.1), narrow=True) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(REACH * 10 + 0.1), narrow=True) == []

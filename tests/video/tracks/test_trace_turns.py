"""What a track knows of a head's roll between landmarks, and what is shown of one that swings."""

import math
from fractions import Fraction

import numpy as np

from dpveil.video.facts import Key
from dpveil.video.places import Course
from dpveil.video.tracks.trace import TURN_LASTS, Place, Trace

BOX = np.array([10.0, 10, 50, 60])


def followed(trace, first, count, turn):
    for n in range(first, first + count):
        trace.follow(n, Fraction(n, 25), BOX, turn, sure=True)


def test_a_head_rolls_as_it_is_followed_from_its_landmarks_on():
    trace = Trace.begin("face", "faces", Place(0, Fraction(0), BOX, True), [], 0.9)
    followed(trace, 1, 4, 5.0)
    assert trace.roll is None
    trace.find(BOX, 0.9)
    trace.turn((30.0, 0.0))
    assert not trace.turn_is_due
    followed(trace, 5, 4, 5.0)
    assert trace.roll == 50.0
    assert trace.turn_is_due
    lasts = int(TURN_LASTS * 25)
    followed(trace, 9, 2 * lasts, 0.1)
    assert abs(trace.roll - (50 + 0.1 * (lasts - 4))) < 1e-6
    trace.follow(400, Fraction(16), BOX, 40.0, sure=False)
    assert abs(trace.roll - (50 + 0.1 * (lasts - 4))) < 1e-6


def test_a_head_that_swings_is_shown_as_far_as_its_cells_turn():
    rolls = [round(90 * math.sin(n / 2)) for n in range(40)]
    keys = [Key(3 * n, 100, 100, 60, 80, roll) for n, roll in enumerate(rolls)]
    course = Course.of(keys, "head")
    off = [(math.degrees(-course.shown(k.frame).angle) - k.roll + 180) % 360 - 180 for k in keys]
    assert np.sqrt(np.mean(np.square(off))) < 4.5

"""Walls and clothes of heads around which nothing of the photo is seen."""

from __future__ import annotations

import numpy as np

from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.layout import CLASSES, CLOTHES
from dpveil.faces.geometry.studio import BLACK, DYES, WALLS, dyed, seen_below, wall

SIDE = 64
WORN = np.zeros((CLASSES, SIDE, SIDE), np.float32)
WORN[CLOTHES, 40:] = 1


def test_walls_are_lit_in_the_middle_and_differ() -> None:
    middles = set()
    for number in range(len(WALLS)):
        made = wall(number, 61, 81)
        middles.add(tuple(made[30, 40]))
        assert made.shape == (61, 81, 3)
        assert (made[30, 40].astype(int) - made[0, 0] > 10).all()
    assert middles == set(WALLS)
    assert (wall(len(WALLS), 5, 5) == wall(0, 5, 5)).all()


def test_dark_clothes_are_dyed_and_collars_and_heads_stay() -> None:
    levels = np.full((SIDE, SIDE, 3), 30, np.float32)
    levels[40:, :10] = 220
    found = set()
    for number in range(0, len(WALLS) * len(DYES), len(WALLS)):
        out = dyed(levels, WORN, number, None)
        assert (out[:40] == 30).all()
        assert (out[:, :10] == levels[:, :10]).all()
        found.add(tuple(out[50, 40].round(3)))
    assert len(found) == len(DYES)


def test_clothes_have_the_colour_that_is_seen_below() -> None:
    levels = np.full((SIDE, SIDE, 3), BLACK, np.float32)
    out = dyed(levels, WORN, 3, np.array([20, 90, 60], np.float32))[50, 50]
    assert out[0] == BLACK
    assert 60 < out[1] < 90
    assert out[1] - out[2] > 15


def test_the_nearest_rows_below_count_and_hidden_ones_do_not() -> None:
    photo = np.zeros((200, SIDE, 3), np.uint8)
    hidden = np.zeros((200, SIDE), np.bool_)
    hidden[:90] = True
    photo[:90] = 255
    photo[90:110], photo[110:] = (10, 200, 60), (250, 0, 0)
    pose = Similarity(1.0, 0.0, 0.0, 0.0)
    below = seen_below(np.where(hidden[..., None], np.uint8(0), photo), hidden, pose, SIDE)
    assert below is not None
    assert below.tolist() == [10, 200, 60]
    assert seen_below(photo * 0, np.ones_like(hidden), pose, SIDE) is None

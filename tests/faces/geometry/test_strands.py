"""Strands are drawn on hair and nowhere else, along how it lies, where the photo is fine enough."""

from __future__ import annotations

import numpy as np

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN
from dpveil.faces.geometry.painted import Combing, combed

SIDE, PHOTO = 96, 384
FINE = Similarity(SIDE / PHOTO, 0.0, 0.0, 0.0)
BOX = Box(0, 0, PHOTO, PHOTO)


def layout(hairline: float, low: float = 0.0) -> np.ndarray:
    """Return skin below a hairline, and hair above it and down to the row `low` at both sides."""
    out = np.zeros((CLASSES, SIDE, SIDE), np.float32)
    out[SKIN] = 1
    out[:, : round(hairline * SIDE)] = 0
    out[:, : round(low * SIDE), : SIDE // 4] = out[:, : round(low * SIDE), 3 * SIDE // 4 :] = 0
    out[HAIR] = 1 - out[SKIN]
    return out


def flat(level: int) -> np.ndarray:
    return np.full((PHOTO, PHOTO, 3), level, np.uint8)


TOP = layout(0.5)


def test_strands_lie_on_the_head_and_not_in_the_box_of_the_region() -> None:
    hair = Combing.of(TOP, 1)
    whole = combed(flat(60), hair, FINE, BOX)
    part = combed(flat(60)[50:150, 100:250], hair, FINE, Box(100, 50, 150, 100))
    assert (part == whole[50:150, 100:250]).mean() > 0.99


def test_the_same_number_lies_the_same_way_and_another_does_not() -> None:
    one, again, other = (combed(flat(60), Combing.of(TOP, number), FINE, BOX) for number in (1, 1, 2))
    assert (one == again).all()
    assert (one[60:180] != other[60:180]).mean() > 0.5


def test_no_hair_no_strands() -> None:
    levels, none = flat(60), Combing.of(layout(0.0), 1)
    assert combed(levels, none, FINE, BOX) is levels
    assert combed(levels[:10], Combing.of(TOP, 1), FINE, Box(0, 374, PHOTO, 10)).shape == (10, PHOTO, 3)

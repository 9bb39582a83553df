"""Strands are drawn on hair and nowhere else, along lines from the crown, where the photo is fine enough."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.strands import CROWN, STRONG, combed

SIDE, PHOTO = 96, 384
FINE = Similarity(SIDE / PHOTO, 0.0, 0.0, 0.0)
BOX = Box(0, 0, PHOTO, PHOTO)
TOP = np.zeros((SIDE, SIDE), np.float32)
TOP[:48] = 1


def flat(level: int) -> np.ndarray:
    return np.full((PHOTO, PHOTO, 3), level, np.uint8)


def test_hair_gets_strands_and_the_rest_stays() -> None:
    out = combed(flat(60), TOP, FINE, BOX)
    assert out[40:180].std() > 4
    assert (out[200:] == 60).all()
    assert abs(out[40:180].mean() - 60) < 2


def test_strands_run_from_the_crown() -> None:
    """Beside the crown along a row, below it along a column."""
    out = combed(flat(60), np.ones((SIDE, SIDE), np.float32), FINE, BOX).mean(axis=2)
    row, column = (round(PHOTO * part) for part in reversed(CROWN))
    beside, below = out[row - 8 : row + 8, 20:120], out[row + 70 : row + 170, column - 8 : column + 8]
    for part, along in ((beside, 1), (below, 0)):
        rough = [float(np.abs(np.diff(part, axis=axis)).mean()) for axis in (along, 1 - along)]
        assert rough[1] > 1.6 * rough[0]


@pytest.mark.parametrize("level", [0, 60, 160, 255])
def test_light_hair_is_not_striped(level: int) -> None:
    out = combed(flat(level), TOP, FINE, BOX).astype(int)
    most = min(STRONG[0] * (level + STRONG[1]), STRONG[2])
    assert 0 < np.abs(out - level)[40:180].std() < most


def test_where_the_photo_is_coarser_than_the_frame_there_are_none() -> None:
    levels = flat(60)
    assert combed(levels, TOP, Similarity(1.0, 0.0, 0.0, 0.0), BOX) is levels
    half = combed(levels, TOP, Similarity(0.75, 0.0, 0.0, 0.0), Box(0, 0, 128, 128))[10:50]
    full = combed(levels, TOP, Similarity(0.5, 0.0, 0.0, 0.0), Box(0, 0, 192, 192))[10:80]
    assert 0.35 < half.std() / full.std() < 0.65


def test_strands_lie_on_the_head_and_not_in_the_box_of_the_region() -> None:
    whole = combed(flat(60), TOP, FINE, BOX)
    part = combed(flat(60)[50:150, 100:250], TOP, FINE, Box(100, 50, 150, 100))
    assert (part == whole[50:150, 100:250]).mean() > 0.999


def test_no_hair_no_strands() -> None:
    levels = flat(60)
    assert combed(levels, np.zeros_like(TOP), FINE, BOX) is levels
    assert combed(levels[:10], TOP, FINE, Box(0, 374, PHOTO, 10)).shape == (10, PHOTO, 3)

"""Strands are drawn on hair and nowhere else, along how it lies, where the photo is fine enough."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN
from dpveil.faces.geometry.strands import BACK, COARSE, FRINGE, NEAR, PARTED, STRONG, Combing, combed

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


def origin(of: np.ndarray, number: int) -> tuple[float, float]:
    """Return where the distances along strands start."""
    row, column = np.unravel_index(np.argmin(Combing.of(of, number).along), (SIDE, SIDE))
    return column / SIDE, row / SIDE


TOP = layout(0.5)


def test_hair_gets_strands_and_the_rest_stays() -> None:
    out = combed(flat(60), Combing.of(TOP, 1), FINE, BOX)
    assert out[60:180].std() > 4
    assert (out[200:] == 60).all()
    assert abs(out[60:180].mean() - 60) < 5


@pytest.mark.parametrize("number", range(6))
def test_hair_falls_over_the_brow_where_the_hairline_is_low_and_lies_in_several_ways_where_not(
    number: int,
) -> None:
    assert abs(origin(layout(0.4), number)[1] - FRINGE[1]) < 0.03
    assert abs(origin(layout(0.25, low=0.9), number)[1] - PARTED[1]) < 0.03, "long hair is not combed back"


def test_hair_is_combed_back_or_parted_at_either_side() -> None:
    found = [origin(layout(0.25), number) for number in range(40)]
    back = [one for one in found if abs(one[1] - BACK[1]) < 0.03]
    parted = [one for one in found if abs(one[1] - PARTED[1]) < 0.03]
    assert len(back) + len(parted) == 40
    assert min(len(back), len(parted)) >= 5
    assert {across < 0.5 for across, _ in parted} == {True, False}


def test_strands_run_away_from_their_origin() -> None:
    """Under a fringe: downwards in the middle of the brow."""
    out = combed(flat(60), Combing.of(layout(0.4), 2), FINE, BOX).mean(axis=2)
    part = out[80:140, PHOTO // 2 - 30 : PHOTO // 2 + 30]
    across, down = (float(np.abs(np.diff(part, axis=axis)).mean()) for axis in (1, 0))
    assert across > 2 * down


def test_strands_fade_where_they_meet() -> None:
    combing = Combing.of(layout(0.4), 2)
    assert (combing.share[combing.along < NEAR[0]] == 0).all()
    assert (combing.share[combing.along > NEAR[1]] == layout(0.4)[HAIR][combing.along > NEAR[1]]).all()


@pytest.mark.parametrize("level", [0, 60, 160, 255])
def test_light_hair_is_not_striped(level: int) -> None:
    out = combed(flat(level), Combing.of(TOP, 1), FINE, BOX).astype(int)
    most = min(STRONG[0] * (level + STRONG[1]), STRONG[2])
    assert 0 < np.abs(out - level)[60:180].std() < most


def test_where_the_photo_is_coarser_than_the_frame_there_are_none() -> None:
    levels, hair = flat(60), Combing.of(TOP, 1)
    assert combed(levels, hair, Similarity(COARSE, 0.0, 0.0, 0.0), BOX) is levels
    half = combed(levels, hair, Similarity(0.75, 0.0, 0.0, 0.0), Box(0, 0, 128, 128))[20:60]
    full = combed(levels, hair, Similarity(0.5, 0.0, 0.0, 0.0), Box(0, 0, 192, 192))[30:90]
    assert 0.35 < half.std() / full.std() < 0.65


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

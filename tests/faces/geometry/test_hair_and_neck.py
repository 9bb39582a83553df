"""Hair and neck of tight crops: where they are, and of which colours."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_made import placed

from dpveil.core.region import Box
from dpveil.faces.geometry import Frame, recombine
from dpveil.faces.geometry.hair_and_neck import HIGH, LIGHTEST, SHADE, WEIGHTS, with_hair_and_neck

OWN, WIDE = Frame(96), Frame(192, 0.5)
SKIN = np.array([210, 160, 130], np.uint8)


def crop_of(corner):
    """A face of one skin, with the upper corners in another colour."""
    crop = np.tile(SKIN, (96, 96, 1))
    crop[: int(HIGH * 96) + 2, :16] = crop[: int(HIGH * 96) + 2, 80:] = corner
    return crop


def drawn(crop):
    return with_hair_and_neck(np.full((192, 192, 3), 99, np.float32), WIDE, crop, OWN)


def at(picture, x, y):
    """The level of a picture of the wide frame at a place in parts of the crop."""
    column, row = np.rint(WIDE.pixels(np.array([[x, y]]))[0]).astype(int)
    return picture[row, column]


def test_hair_is_above_the_forehead_and_the_face_stays():
    brown = (90, 60, 40)
    out = drawn(crop_of(brown))
    for x, y in ((0.5, -0.15), (0.2, -0.1), (0.02, 0.1), (0.97, 0.1)):
        assert at(out, x, y) == pytest.approx(brown, abs=12)
    for x, y in ((0.5, 0.12), (0.3, 0.3), (0.7, 0.3), (0.5, 0.6), (0.5, 0.9), (0.05, 0.6)):
        assert (at(out, x, y) == 99).all()


def test_neck_is_below_the_chin_in_the_skins_shade():
    out = drawn(crop_of((90, 60, 40)))
    assert at(out, 0.493, 1.2) == pytest.approx(SHADE * SKIN, abs=3)
    assert (at(out, 0.493, 0.94) == 99).all()
    assert (at(out, 0.1, 1.2) == 99).all()


def test_a_light_wall_is_no_hair_and_darker_pixels_are():
    white = at(drawn(crop_of((255, 255, 255))), 0.5, -0.15)
    assert white @ WEIGHTS <= LIGHTEST * (SKIN @ WEIGHTS) + 1
    crop = crop_of((250, 250, 250))
    crop[:12, :16] = crop[:12, 80:] = (40, 30, 20)  # 40 % of the corners
    assert at(drawn(crop), 0.5, -0.15) == pytest.approx((40, 30, 20), abs=12)


def test_crops_that_hold_a_head_are_not_dressed():
    """A flat crop stays flat where it has the margin of a head, and gets hair and neck where it has none."""
    image = np.full((160, 200, 3), 200, np.uint8)
    box = Box(20, 10, 160, 140)
    wide, tight = (placed(box, unit=70.0, frame=Frame(96, margin)) for margin in (0.5, 0.0))
    flat = np.full((96, 96, 3), 200, np.uint8)
    assert recombine(image, [wide], [flat]).min() >= 199
    assert recombine(image, [tight], [flat]).min() <= 0.8 * 200


def test_positions_do_not_depend_on_the_size_of_the_crop():
    """The same head in crops of two sizes: what is drawn on is the same, to a pixel of the smaller."""
    large = np.repeat(np.repeat(crop_of((90, 60, 40)), 2, axis=0), 2, axis=1)
    small, big = (
        drawn(crop_of((90, 60, 40))),
        with_hair_and_neck(np.full((384, 384, 3), 99, np.float32), Frame(384, 0.5), large, Frame(192)),
    )
    assert np.abs(big.reshape(192, 2, 192, 2, 3).mean(axis=(1, 3)) - small).max() < 4

import sys
from types import ModuleType

import numpy as np
import pytest

from dpveil.core.origin import Origin
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter


def test_a_photo_is_a_read_only_copy_with_channels_last():
    levels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    photo = Photo(levels)
    levels[:] = 0
    assert photo.image[:, :, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (photo.height, photo.width, photo.channels) == (2, 3, 1)
    with pytest.raises(ValueError, match="read-only"):
        photo.image[0, 0, 0] = 9


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((2, 2)),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((0, 2), np.uint8),
        np.zeros(4, np.uint8),
        [[1]],
        None,
        np.zeros((2, 2, 2), np.uint8),
        np.zeros((1, 2, 2, 3), np.uint8),
    ],
)
def test_other_arrays_are_refused(image):
    with pytest.raises(InvalidParameter, match="image"):
        Photo(image)


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": -3},
        {"width": 0},
        {"height": -8},
        {"width": 8.0},
        {"x0": 0.5},
        {"y0": True},
        {"margin": None},
    ],
)
def test_impossible_grids_are_refused(wrong):
    """A margin below 0 made regions smaller than what was asked for."""
    with pytest.raises(InvalidParameter, match=f"grid {next(iter(wrong))}"):
        Grid(**{"width": 16, "height": 16, **wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 48},
        {"margin": 0},
        {"codec": "WebP"},
        {"margin": 80, "codec": "HEIC"},
        {"width": 170, "codec": "X"},
    ],
)
def test_grids_are_those_of_their_format(wrong):
    """Certificates say how far regions grew, and verify knows how far they can have."""
    with pytest.raises(InvalidParameter, match="is not of the blocks of"):
        Grid(**{"width": 16, "height": 16, **wrong})


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 1), (0, 0, 1, -1), (0.5, 0, 1, 1), (True, 0, 1, 1), ("0", 0, 1, 1)]
)
def test_impossible_boxes_are_refused(box):
    with pytest.raises(InvalidParameter, match="box"):
        Box(*box)


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ((0, 0, 5, 4), True),
        ((1, 0, 5, 4), False),
        ((0, 1, 5, 4), False),
        ((-1, 0, 2, 2), False),
        ((4, 3, 1, 1), True),
    ],
)
def test_a_box_is_inside_up_to_the_last_pixel(box, inside):
    assert Box(*box).inside(5, 4) is inside


def test_paste_replaces_only_what_the_mask_covers():
    image = np.arange(20, dtype=np.uint8).reshape(4, 5, 1)
    before = image.copy()
    mask = np.array([[True, False], [False, True]])
    region = Region(Box(2, 1, 2, 2), mask, Origin("mask"))
    region.paste(image, np.full((2, 2, 1), 99, np.uint8))
    changed = np.argwhere(image[:, :, 0] != before[:, :, 0]).tolist()
    assert changed == [[1, 2], [2, 3]]
    assert region.pixels == 2
    assert region.record.in_words() == "mask: 2×2 pixels at 2,1, of which 2 are replaced"


def test_crop_is_a_copy():
    image = np.zeros((4, 5, 3), np.uint8)
    crop = Region(Box(1, 2, 3, 2)).crop(image)
    crop[:] = 1
    assert crop.shape == (2, 3, 3)
    assert image.sum() == 0


@pytest.mark.parametrize("mask", [np.ones((3, 2), bool), np.zeros((2, 2), bool), np.ones((2, 2), np.uint8)])
def test_masks_that_do_not_fit_are_refused(mask):
    with pytest.raises(InvalidParameter, match="mask"):
        Region(Box(0, 0, 2, 2), mask)


def test_an_array_is_taken_while_another_thread_imports_masked_ones(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))
    assert Photo(np.zeros((2, 3), np.uint8)).width == 3

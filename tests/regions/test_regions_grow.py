"""Growth: checked pixel by pixel against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil import regions
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.regions import tiling

QUICK = settings(derandomize=True, max_examples=80, deadline=None)


def by_definition(inside: np.ndarray, grid: Grid) -> np.ndarray:
    """Every pixel at most `margin` rows and columns from a block that holds a pixel of the region."""
    height, width = inside.shape
    row = (np.arange(height) - grid.y0) // grid.height
    column = (np.arange(width) - grid.x0) // grid.width
    ys, xs = np.nonzero(inside)
    touched = np.zeros_like(inside)
    for block_row, block_column in {(row[y], column[x]) for y, x in zip(ys, xs, strict=True)}:
        touched |= (row == block_row)[:, None] & (column == block_column)[None, :]
    grown = np.zeros_like(inside)
    for y, x in zip(*np.nonzero(touched), strict=True):
        top, left = max(0, y - grid.margin), max(0, x - grid.margin)
        grown[top : y + grid.margin + 1, left : x + grid.margin + 1] = True
    return grown


def pixels(region: Region, shape: tuple[int, int]) -> np.ndarray:
    inside = np.zeros(shape, bool)
    inside[region.box.slices] = True if region.mask is None else region.mask
    return inside


@st.composite
def cases(draw):
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    w, h = draw(st.sampled_from([8, 16, 32])), draw(st.sampled_from([8, 16]))
    x0, y0 = draw(st.integers(0, w - 1)), draw(st.integers(0, h - 1))
    grid = Grid(w, h, x0, y0, draw(st.sampled_from([0, 1, 8])), codec="Other")
    x, y = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    box = Box(x, y, draw(st.integers(1, width - x)), draw(st.integers(1, height - y)))
    mask = np.random.default_rng(draw(st.integers(0, 99))).random((box.h, box.w)) < 0.05
    mask[draw(st.integers(0, box.h - 1)), draw(st.integers(0, box.w - 1))] = True
    return Photo(np.zeros((height, width), np.uint8), grid), box, mask


@given(cases())
@QUICK
def test_boxes_grow_as_defined(case):
    photo, box, _ = case
    shape = (photo.height, photo.width)
    grown = tiling.grow(Region(box), photo)
    assert grown.mask is None
    assert np.array_equal(pixels(grown, shape), by_definition(pixels(Region(box), shape), photo.grid))


@given(cases())
@QUICK
def test_masks_grow_as_defined(case):
    photo, box, mask = case
    shape = (photo.height, photo.width)
    region = Region(box, mask)
    grown = tiling.grow(region, photo)
    assert np.array_equal(pixels(grown, shape), by_definition(pixels(region, shape), photo.grid))


def test_the_label_says_that_it_grew_and_only_then():
    photo = Photo(np.zeros((64, 64), np.uint8), Grid(16, 16))
    found = regions.find(photo, ["20,20,4,4", "whole", "1,1,2,2"])
    assert [region.label for region in found] == [
        "box 1, grown to the JPEG blocks",
        "whole photo",
        "box 2, grown to the JPEG blocks",
    ]
    webp = Photo(photo.image, Grid(16, 16, margin=8, codec="WebP"))
    assert regions.find(webp, ["20,20,4,4"])[0].label == "box, grown to the WebP blocks"
    aligned = Photo(photo.image, Grid(16, 16, margin=0, codec="Other"))
    assert regions.find(aligned, ["16,16,16,32"])[0].label == "box"


@pytest.mark.parametrize("spec", ["3,4,5,6", np.eye(64, dtype=bool)])
def test_nothing_grows_without_blocks(spec):
    plain = Photo(np.zeros((64, 64), np.uint8))
    (found,) = regions.find(plain, [spec])
    assert found.label in ("box", "mask")
    assert found.pixels == (30 if isinstance(spec, str) else 64)

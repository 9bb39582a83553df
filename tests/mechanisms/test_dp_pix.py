"""DP-Pix and its cells: exact sums against loops, large blocks, and what is left when the noise is gone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.cli import compare
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.pixel import TABLE, DPPix
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, mean_levels, spread
from dpveil.noise.bits import SeededBits

SILENT = 10**9
ROUNDED = [(-(10**12), 4, 0), (-1, 4, 0), (0, 4, 0), (1, 4, 0), (2, 4, 1), (5, 4, 1), (6, 4, 2)]
ROUNDED += [(1017, 4, 254), (1018, 4, 255), (1020, 4, 255), (10**15, 4, 255), (1, 3, 0), (2, 3, 1)]
SCALES = [(None, 1577.8), (256, 38.25), (16, 2.390625), (1, 255 * 3 / 20 / 256)]


def naive(image, block):
    """The pixelised image and its cell sums, with one Python integer at a time."""
    height, width, channels = image.shape
    out, sums = np.zeros_like(image), {}
    for top in range(0, height, block):
        for left in range(0, width, block):
            for channel in range(channels):
                values = [
                    int(image[row, column, channel])
                    for row in range(top, min(top + block, height))
                    for column in range(left, min(left + block, width))
                ]
                sums[top // block, left // block, channel] = (sum(values), len(values))
                level = math.floor(Fraction(sum(values), len(values)) + Fraction(1, 2))
                out[top : top + block, left : left + block, channel] = level
    return out, sums


sizes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3]), st.integers(1, 25))


@settings(derandomize=True, max_examples=150, deadline=None)
@given(sizes, st.integers(0, 2**32 - 1))
def test_cells_agree_with_loops(size, seed):
    *shape, block = size
    image = (SeededBits(seed).words(math.prod(shape)) % np.uint64(256)).astype(np.uint8).reshape(shape)
    expected, table = naive(image, block)
    sums, areas = cell_sums(image, block), cell_areas(shape[0], shape[1], block)
    assert sums.shape == (*areas.shape[:2], shape[2])
    for (row, column, channel), (total, area) in table.items():
        assert sums[row, column, channel] == total
        assert areas[row, column, 0] == area
    assert np.array_equal(spread(mean_levels(sums, areas), block, shape[0], shape[1]), expected)
    silent = DPPix(epsilon=SILENT, block=block, neighbourhood=1).release(image, bits=SeededBits(0))
    assert np.array_equal(silent, expected)


@pytest.mark.parametrize("size", [(300, 300), (257, 2), (258, 2), (2, 258), (513, 259), (9000, 1), (1, 9000)])
@pytest.mark.parametrize("block", [16, 256, 257, 258, 300, 5000, 2**31])
def test_white_sums_do_not_overflow(size, block):
    image = np.full((*size, 1), 255, np.uint8)
    assert np.array_equal(cell_sums(image, block), 255 * cell_areas(*size, block))
    assert cell_areas(*size, block).sum() == size[0] * size[1]
    out = DPPix(epsilon=SILENT, block=block, neighbourhood=1).release(image, bits=SeededBits(1))
    assert (out == 255).all()


def test_a_tall_strip_beyond_32_bit_rows():
    image = np.full((70_000, 3, 1), 255, np.uint8)
    assert cell_sums(image, 66_000)[:, 0, 0].tolist() == [255 * 3 * 66_000, 255 * 3 * 4_000]


@pytest.mark.parametrize(
    ("total", "area", "level"),
    ROUNDED,
)
def test_means_are_clamped_and_rounded_half_up(total, area, level):
    assert mean_levels(np.array([[[total]]]), np.array([[[area]]]))[0, 0, 0] == level


@pytest.mark.parametrize(("m", "scale"), SCALES)
def test_noise_scales_of_the_architecture_page(m, scale):
    method = DPPix(epsilon=20, block=16, neighbourhood=m)
    assert method.noise_scale(height=88, width=120, channels=3) == pytest.approx(scale, rel=1e-4)


def test_sum_scale_is_exact_and_capped_at_all_pixels():
    size = {"height": 3, "width": 5, "channels": 3}
    assert DPPix(epsilon="1/3", block=2, neighbourhood=4).sum_scale(**size) == 255 * 4 * 3 * 3
    assert DPPix(epsilon="1/3", block=2, neighbourhood=999).sum_scale(**size) == 255 * 15 * 3 * 3
    assert DPPix(epsilon="1/3", block=2).sum_scale(**size) == 255 * 15 * 3 * 3
    assert DPPix(epsilon=0.1, block=900).sum_scale(**size) == 255 * 15 * 3 * 10  # block plays no part


def test_guarantee_names_its_neighbours():
    size = {"height": 3, "width": 5, "channels": 3}
    local = DPPix(epsilon=2, block=2).guarantee(**size)
    assert (local.kind, local.epsilon, local.relation.name) == ("pure", 2, "any-image")
    near = DPPix(epsilon=2, block=2, neighbourhood=4).guarantee(**size)
    assert (near.relation.name, near.relation.m) == ("m-pixels", 4)
    assert "5×3 pixels" in near.scope.covers


def test_images_with_equal_cell_sums_have_equal_releases():
    """Nothing but the noised sums reaches the output: pixels rearranged within cells change nothing."""
    image = np.arange(255, dtype=np.uint8).reshape(15, 17)
    turned = image.copy()
    for top in range(0, 15, 4):
        for left in range(0, 17, 4):
            turned[top : top + 4, left : left + 4] = image[top : top + 4, left : left + 4][::-1, ::-1]
    method = DPPix(epsilon=100, block=4, neighbourhood=1)
    releases = [method.release(shown, bits=SeededBits(7)) for shown in (image, turned)]
    assert not np.array_equal(image, turned)
    assert np.array_equal(releases[0], releases[1])


def test_a_scale_that_cannot_be_drawn_is_refused_with_a_hint():
    with pytest.raises(NoiseError, match="raise epsilon"):
        DPPix(epsilon="1e-12").release(np.zeros((100, 100), np.uint8), bits=SeededBits(5))


def test_channels_of_one_cell_get_independent_noise():
    image = np.full((40, 40, 3), 127, np.uint8)
    out = DPPix(epsilon=30, neighbourhood=1).release(image, bits=SeededBits(6)).reshape(-1, 3).astype(float)
    correlation = np.corrcoef(out.T)[np.triu_indices(3, 1)]
    assert np.abs(correlation).max() < 7 / math.sqrt(1600)


@pytest.mark.parametrize("name", [name for name, kind in TABLE.items() if "neighbourhood" in kind.options()])
def test_all_is_a_neighbourhood_in_python_too(name):
    given = {"epsilon": 1, "block": 8}
    made = compare.one(name, given | {"neighbourhood": "all"})
    assert made == compare.one(name, given)
    assert made.parameters()["neighbourhood"] is None
    with pytest.raises(InvalidParameter, match="not a whole number of pixels: a whole number, or all"):
        compare.one(name, given | {"neighbourhood": "every"})

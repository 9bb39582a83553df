"""The integer wavelet: reversible, within its ranges, and no pixel reaches beyond its group."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.mechanisms.pixel.bit_planes import COARSE, DETAIL, forward, inverse, padded
from dpveil.noise.bits import SeededBits
from dpveil_audit.pixel.methods.bit_planes import coefficients, undone


def picture(seed, *shape):
    words = SeededBits(seed).words(int(np.prod(shape))) % np.uint64(256)
    return words.astype(np.uint8).reshape(shape)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3]), st.integers(1, 4), st.integers(0, 999)
)
def test_the_transform_is_undone_exactly(height, width, channels, levels, seed):
    image = padded(picture(seed, height, width, channels), 1 << levels)
    assert image.shape[0] % (1 << levels) == image.shape[1] % (1 << levels) == 0
    bands = forward(image, levels)
    assert len(bands) == 3 * levels + 1
    assert sum(band.size for _, band in bands) == image.size
    assert np.array_equal(inverse([band for _, band in bands]), image)


def test_one_group_is_as_by_hand_and_within_its_ranges():
    for values in itertools.product((0, 1, 127, 128, 254, 255), repeat=4):
        image = np.array(values, np.uint8).reshape(2, 2, 1)
        found = [int(band[0, 0, 0]) for _, band in forward(image, 1)]
        assert found == coefficients(image[:, :, 0].astype(int).tolist())
        assert undone(*found) == list(values)
        assert max(map(abs, found[:2])) <= 255
        assert abs(found[2]) <= 510
        assert 0 <= found[3] <= 255


def test_every_band_stays_within_its_ranges():
    extreme = (picture(3, 64, 64, 3) > 127).astype(np.uint8) * 255
    for kind, band in forward(extreme, 4):
        low, high = {COARSE: (0, 255), DETAIL: (-255, 255)}.get(kind, (-510, 510))
        assert low <= band.min() <= band.max() <= high


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("size", [(8, 8), (9, 7), (5, 17)])
def test_a_pixel_changes_coefficients_of_its_own_group_alone(levels, size):
    """Every pixel in turn, ragged edges included, where a group is repeated into itself."""
    image, side = picture(1, *size, 3), 1 << levels
    before = forward(padded(image, side), levels)
    for y, x in itertools.product(range(size[0]), range(size[1])):
        other = image.copy()
        other[y, x] ^= 255
        for (_, old), (_, new) in zip(before, forward(padded(other, side), levels), strict=True):
            scale = (
                old.shape[0] * side // (-(-size[0] // side) * side)
            )  # coefficients of a group along a side
            rows, columns = np.nonzero((old != new).any(axis=2))
            assert set(rows // scale) <= {y // side}
            assert set(columns // scale) <= {x // side}

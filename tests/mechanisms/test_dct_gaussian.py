"""dct-gaussian: exact coefficients, the cost over all neighbours, and the allocation."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import fft

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DCTGaussian, DPPixGaussian
from dpveil.mechanisms.pixel import dct_gaussian as dct_gaussian
from dpveil.mechanisms.pixel.dct_gaussian import BlockTransform, Reach
from dpveil.noise.bits import SeededBits


def random_image(shape, seed):
    return (SeededBits(seed).words(math.prod(shape)) % np.uint64(256)).astype(np.uint8).reshape(shape)


# Exact coefficients


def test_coefficients_are_those_of_the_cosine_transform():
    image = random_image((8, 8, 1), 2)
    transform = BlockTransform(8, 8, 1)
    found = transform.forward(image)[0].reshape(8, 8) / np.sqrt(transform.norms.reshape(8, 8))
    expected = fft.dctn(image[:, :, 0] - 127.5, norm="ortho")
    assert found == pytest.approx(expected, abs=2.0)
    assert transform.backward(found.reshape(1, -1), 8, 8)[:, :, 0] == pytest.approx(image[:, :, 0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 9, 3), (7, 5, 3), (33, 17)])
@pytest.mark.parametrize("block", [1, 3, 8, 16])
def test_nothing_but_clipping_is_lost_without_noise(shape, block):
    ramp = 118 + np.indices(shape[:2]).sum(axis=0) // 3
    image = np.stack([ramp] * 3, axis=2).astype(np.uint8) if len(shape) == 3 else ramp.astype(np.uint8)
    for raw in (False, True):
        method = DCTGaussian(rho=10**12, block=block, neighbourhood=1, raw=raw)
        out = method.release(image, bits=SeededBits(1))
        assert np.abs(out.astype(int) - image).max() <= 1


# The allocation


def test_more_neighbours_cost_more_and_more_blocks_too():
    steps = np.zeros(64, np.int64)
    costs = [Reach(BlockTransform(8, 8, 1), 9, m).cost(steps) for m in (1, 5, 64, 65, 200, 9 * 64)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(Reach(BlockTransform(8, 8, 1), 9, None).cost(steps))


def test_shrinking_is_better_on_a_natural_photo_than_pixelation_at_equal_rho():
    from skimage import data

    image = data.astronaut()[60:180, 176:264]

    def error(method):
        out = [method.release(image, bits=SeededBits(seed)).astype(float) for seed in range(3)]
        return float(np.mean([(x - image) ** 2 for x in out]))

    for m, rho in ((16, "1/2"), (16, 5), (256, 50), (None, 5)):
        ours = error(DCTGaussian(rho=rho, neighbourhood=m))
        assert ours < error(DPPixGaussian(rho=rho, block=8, neighbourhood=m))


# Parameters


def test_blocks_are_even_and_at_most_as_large_as_asked():
    made = DCTGaussian(rho=1, block=16).plan(height=17, width=100, channels=1)
    assert (made.transform.tall, made.transform.wide) == (9, 15)
    with pytest.raises(InvalidParameter, match="is above 16"):
        DCTGaussian(rho=1, block=17)


def test_frequencies_kept_are_the_lowest():
    made = DCTGaussian(rho=1, coefficients=3).plan(height=8, width=8, channels=1)
    assert [column for column, v in enumerate(made.variances) if v is not None] == [0, 1, 8]
    more = dataclasses.replace(DCTGaussian(rho=1), coefficients=1000).plan(height=8, width=8, channels=1)
    assert None not in more.variances


def test_noise_scale_is_that_of_the_mean():
    method = DCTGaussian(rho=8, coefficients=1)
    assert method.noise_scale(height=8, width=8, channels=1) == pytest.approx(255 / 4, rel=2e-3)

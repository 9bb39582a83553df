"""dct-gaussian: exact coefficients, the cost over all neighbours, and the allocation."""

import dataclasses
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import fft, special

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DCTGaussian, DPPixGaussian
from dpveil.mechanisms.pixel import dct_gaussian as dct_gaussian
from dpveil.mechanisms.pixel.dct_gaussian import BlockTransform, Reach, reach_of
from dpveil.noise.bits import SeededBits
from dpveil_audit.pixel.methods.dct_gaussian import coefficients, kernels

LEVELS = (0, 127, 255)


def random_image(shape, seed):
    return (SeededBits(seed).words(math.prod(shape)) % np.uint64(256)).astype(np.uint8).reshape(shape)


def cost(method, first, second):
    """ρ of one pair of images: the sum of squared movements over twice the variances, exactly."""
    made, a = coefficients(method, first)
    b = coefficients(method, second)[1]
    a, b = (np.clip(x, -made.transform.bounds, made.transform.bounds) for x in (a, b))
    total = Fraction(0)
    for column, variance in enumerate(made.variances):
        if variance is not None:
            total += Fraction(int(((a[:, column] - b[:, column]).astype(object) ** 2).sum())) / (2 * variance)
    return total


# Exact coefficients


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 1), (5, 4, 3), (9, 7, 3), (8, 8, 1), (3, 17, 3)])
@pytest.mark.parametrize("block", [1, 2, 8])
def test_coefficients_are_exact_integers(shape, block):
    image = random_image(shape, 1)
    made, expected = coefficients(DCTGaussian(rho=1, block=block), image)
    assert np.array_equal(made.transform.forward(image), expected)
    assert (
        np.abs(expected)
        <= np.abs(kernels(made.transform.tall, made.transform.wide, shape[2])).sum(axis=(1, 2, 3)) * 255
    ).all()


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


# What a release costs, over all neighbours


def images(shape, levels=LEVELS):
    for values in product(levels, repeat=math.prod(shape)):
        yield np.array(values, np.uint8).reshape(shape)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(
    ("shape", "block"), [((2, 2, 1), 2), ((1, 1, 3), 8), ((1, 3, 1), 2), ((2, 2, 1), 1), ((1, 4, 1), 2)]
)
@pytest.mark.parametrize("m", [None, 1, 2])
def test_cost_is_at_most_rho_over_all_neighbours(shape, block, m, raw):
    """Every pair of images with levels 0, 127, 255; the dearest is not far below ρ: no noise is wasted."""
    method = DCTGaussian(rho="1/2", block=block, neighbourhood=m, raw=raw)
    everything = list(images(shape))
    made = method.plan(height=shape[0], width=shape[1], channels=shape[2])
    clipped = [
        np.clip(coefficients(method, i)[1], -made.transform.bounds, made.transform.bounds) for i in everything
    ]
    inverse = np.array([0.0 if v is None else 1 / float(2 * v) for v in made.variances])
    moved = np.array(clipped).astype(float)
    costs = (((moved[:, None] - moved[None]) ** 2) @ inverse).sum(axis=2)
    flat = np.array([i.reshape(-1, shape[2]) for i in everything]).astype(int)
    apart = (flat[:, None] != flat[None]).any(axis=3).sum(axis=2)
    worst = costs[apart <= (m or apart.max())].max()
    assert 0.45 * 0.5 < worst <= 0.5 * (1 + 1e-9)


def adversarial(made, m, height, width, channels):
    """Pairs made to hurt one coefficient each: the m pixels with its largest weights in the first block."""
    for kernel in kernels(made.transform.tall, made.transform.wide, channels):
        kernel = kernel[:height, :width]
        dearest = np.argsort(np.abs(kernel).sum(axis=2), axis=None)[::-1][:m]
        first = np.full((height, width, channels), 127, np.uint8)
        second = first.copy()
        for i, j in zip(*np.unravel_index(dearest, kernel.shape[:2]), strict=True):
            first[i, j], second[i, j] = np.where(kernel[i, j] > 0, 255, 0), np.where(kernel[i, j] > 0, 0, 255)
        yield first, second


@pytest.mark.parametrize(("shape", "block"), [((4, 4, 3), 4), ((5, 7, 1), 4), ((8, 8, 1), 8), ((3, 3, 3), 2)])
@pytest.mark.parametrize("m", [1, 3, 8, None])
@pytest.mark.parametrize("kept", [None, 1, 3, 1000])
def test_cost_is_at_most_rho_for_pairs_made_to_hurt(shape, block, m, kept):
    for raw in (False, True):
        method = DCTGaussian(rho="1/3", block=block, neighbourhood=m, coefficients=kept, raw=raw)
        made = method.plan(height=shape[0], width=shape[1], channels=shape[2])
        for first, second in list(adversarial(made, m or math.prod(shape[:2]), *shape))[::3]:
            assert cost(method, first, second) <= Fraction(1, 3)


def test_settings_of_the_noise_come_from_public_settings_alone(monkeypatch):
    """Whatever the image, variances are those of the plan."""
    asked = []

    def silent(variance, size, bits):
        asked.append((variance, size))
        return np.zeros(size, np.int64)

    monkeypatch.setattr(dct_gaussian, "discrete_gaussian", silent)
    method = DCTGaussian(rho=1, block=4, raw=True, coefficients=16)
    seen = []
    for image in (*(np.full((9, 10, 3), level, np.uint8) for level in (0, 255)), random_image((9, 10, 3), 1)):
        asked.clear()
        method.release(image, bits=SeededBits(1))
        seen.append(tuple(asked))
    groups = method.plan(height=9, width=10, channels=3).groups()
    assert len(set(seen)) == 1
    assert seen[0] == tuple((variance, 9 * len(columns)) for variance, columns in groups)


# The sampler, and the noise in the picture


def test_every_coefficient_of_every_block_has_its_own_noise():
    """On mid-grey, released coefficients have the plan's variances, within 7 standard errors, and no mean."""
    method = DCTGaussian(rho=10**5, block=4, raw=True, coefficients=16, neighbourhood=40)
    made = method.plan(height=256, width=128, channels=3)
    out = method.release(np.full((256, 128, 3), 127, np.uint8), bits=SeededBits(3))
    found = made.transform.forward(out) / np.sqrt(made.transform.norms)
    noise = made.noise() + 1 / 12  # rounding to levels adds a little
    count = len(found)
    assert (np.abs(found.std(axis=0) ** 2 / noise - 1) < 7 * math.sqrt(2 / count) + 0.05).all()
    correlation = np.corrcoef(found.T) - np.eye(48)
    assert np.abs(correlation).max() < 7 / math.sqrt(count)


def test_discrete_noise_is_as_private_as_its_variance_says():
    """ρ over discrete Gaussians: the Rényi divergence of order α is at most α·d²/(2σ²), by enumeration."""
    z = np.arange(-900, 901)
    for variance, moved, alpha in product((3.0, 40.0, 200.0), (1, 5, 20), (1.5, 2, 8)):
        p, q = (-((z - shift) ** 2) / (2 * variance) for shift in (0, moved))
        p, q = p - special.logsumexp(p), q - special.logsumexp(q)
        divergence = special.logsumexp(alpha * p + (1 - alpha) * q) / (alpha - 1)
        assert divergence <= alpha * moved**2 / (2 * variance) * (1 + 1e-9)


# The allocation


def test_shares_proportional_to_width_are_the_l2_optimum():
    """Of all ways to split ρ over ranges S with weights W, ρ_m ∝ S·√W has the least Σ W·S²/(2ρ_m)."""
    rng = np.random.default_rng(1)
    widths, weights = rng.uniform(1, 100, 20), rng.uniform(0.5, 2, 20)

    def error(shares):
        return (weights * widths**2 / (2 * shares / shares.sum(axis=-1, keepdims=True))).sum(axis=-1)

    best = widths * np.sqrt(weights)
    others = best * np.exp(rng.normal(0, [[0.01]] * 500 + [[0.5]] * 500, (1000, 20)))
    assert (error(best) < error(others)).all()
    assert error(best) < error(widths) < error(np.ones(20))


def test_parseval_gives_details_for_free():
    """One coefficient and all of them cost the same under any-image: black to white is as far as any pair."""
    reach = reach_of((64, 64, 3), 8, None)
    mean, everything = np.full(192, -1), np.zeros(192, np.int64)
    mean[::64] = 0
    assert reach.cost(everything) <= reach.cost(mean) * 1.003


def test_more_neighbours_cost_more_and_more_blocks_too():
    steps = np.zeros(64, np.int64)
    costs = [Reach(BlockTransform(8, 8, 1), 9, m).cost(steps) for m in (1, 5, 64, 65, 200, 9 * 64)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(Reach(BlockTransform(8, 8, 1), 9, None).cost(steps))


@pytest.mark.parametrize("m", [16, 64, 256, None])
def test_means_get_no_more_noise_than_dp_pix_gaussian_gives(m):
    """Blocks that divide the region: the same noise on means at equal ρ, and the details come with it."""
    size = {"height": 64, "width": 96, "channels": 3}
    for block in (4, 8, 16):
        ours = DCTGaussian(rho=1, block=block, neighbourhood=m, coefficients=1).noise_scale(**size)
        theirs = DPPixGaussian(rho=1, block=block, neighbourhood=m).noise_scale(**size)
        assert ours <= theirs * 1.001


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

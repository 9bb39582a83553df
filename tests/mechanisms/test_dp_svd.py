"""DP-SVD: the law of one pixel, the metric over neighbours, the diameter, and what is refused."""

import dataclasses
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from dpveil.core.guarantee import Scope
from dpveil.mechanisms.pixel import DPSVD
from dpveil.mechanisms.pixel import dp_svd as dp_svd
from dpveil.mechanisms.pixel.dp_svd import STEPS, ball_radius, leading_triples, whole_values
from dpveil.noise.bits import SeededBits

SILENT = 10**9


def random_image(shape, seed):
    return (SeededBits(seed).words(math.prod(shape)) % np.uint64(256)).astype(np.uint8).reshape(shape)


# The law, and the metric over neighbours


@pytest.mark.parametrize("channels", [1, 3])
def test_one_draw_for_all_channels(channels, monkeypatch):
    asked = []

    def silent(scale, dimension, bits):
        asked.append((scale, dimension))
        return [0] * dimension

    monkeypatch.setattr(dp_svd, "spherical_laplace", silent)
    image = random_image((9, 7, channels), 1)
    out = DPSVD(epsilon="1/3", rank=2).release(image, bits=SeededBits(1))
    assert asked == [(3 * STEPS, 2 * channels)]
    for channel in range(channels):
        u, s, v = np.linalg.svd(image[:, :, channel].astype(float))
        kept = (u[:, :2] * s[:2]) @ v[:2]
        assert np.abs(out[:, :, channel] - np.clip(kept, 0, 255)).max() < 0.51


def test_noise_reaches_nothing_but_singular_values(monkeypatch):
    """Diagonal images share U and V: their releases are diagonal, with coordinate j of the noise on j."""
    noise = [50 * STEPS, -20 * STEPS, 7 * STEPS]
    monkeypatch.setattr(dp_svd, "spherical_laplace", lambda *_: noise)
    out = DPSVD(epsilon=1, rank=3).release(np.diag(np.uint8([120, 90, 40])), bits=SeededBits(1))
    assert np.array_equal(out, np.diag([170, 70, 47]))


# Singular values


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (7, 5), (5, 7), (40, 33), (60, 60)])
def test_triples_are_those_of_a_full_decomposition(shape):
    image = random_image(shape, 2)
    for rank in sorted({1, min(shape) // 2 or 1, min(shape)}):
        u, s, v = leading_triples(image, rank)
        assert s == pytest.approx(np.linalg.svd(image.astype(float))[1][:rank], abs=1e-8)
        assert np.allclose(u.T @ u, np.eye(rank), atol=1e-10)
        assert np.allclose(v @ v.T, np.eye(rank), atol=1e-10)
    assert np.allclose((u * s) @ v, image, atol=1e-8)
    silent = DPSVD(epsilon=SILENT, rank=min(shape)).release(image, bits=SeededBits(1))
    assert np.array_equal(silent, image)


@pytest.mark.parametrize(
    "image", [np.zeros((9, 6), np.uint8), np.full((6, 9), 255, np.uint8), np.diag(np.full(7, 255, np.uint8))]
)
def test_degenerate_images_have_orthonormal_vectors(image):
    u, s, v = leading_triples(image, 5)
    assert np.allclose(u.T @ u, np.eye(5), atol=1e-10)
    assert np.allclose(v @ v.T, np.eye(5), atol=1e-10)
    assert s == pytest.approx(np.linalg.svd(image.astype(float))[1][:5], abs=1e-6)


extreme = st.lists(st.floats(0, 4000), min_size=1, max_size=6)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(extreme, extreme, st.integers(1, 200))
def test_whatever_was_computed_is_within_the_diameter(first, second, pixels):
    """Even numbers that no image has are brought into a ball of the stated diameter, in exact arithmetic."""
    size = min(len(first), len(second))
    a, b = (whole_values(np.array(values[:size]), pixels) for values in (first, second))
    diameter = DPSVD(epsilon=1, rank=size).guarantee(height=1, width=pixels, channels=1).diameter
    assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) <= (diameter * STEPS) ** 2
    assert diameter <= 255 * math.sqrt(pixels)


def corners(side):
    """Images at the edge of what is possible: flat, diagonal, Hadamard, stripes, and noise."""
    hadamard = ((linalg.hadamard(side) + 1) // 2 * 255).astype(np.uint8)
    plain = [np.full((side, side), level, np.uint8) for level in (0, 1, 127, 255)]
    return [*plain, 255 * np.eye(side, dtype=np.uint8), hadamard, random_image((side, side), 5)]


@pytest.mark.parametrize("side", [2, 8, 16])
def test_diameter_bounds_all_images_and_moves_none(side):
    """Mirsky: singular values are no further apart than the pixels: at most 255·√n, which is reached."""
    radius, most = ball_radius(side * side), 255 * side
    spectra = [leading_triples(image, side)[1] for image in corners(side)]
    for spectrum in spectra:
        assert (spectrum**2).sum() <= most * spectrum[0] * (1 + 1e-12)
        assert np.abs(np.array(whole_values(spectrum, side * side)) / STEPS - spectrum).max() < 2 / STEPS
    apart = max(np.linalg.norm(a - b) for a in spectra for b in spectra)
    assert most * (1 - 1e-9) < apart <= 2 * radius / STEPS * (1 + 1e-9)


# What is promised and refused


def names_vectors(guarantee):
    clear = " ".join(guarantee.scope.in_the_clear)
    return all(word in clear for word in ("U and V", "left and right singular vectors", "what the region"))


def test_guarantee_states_metric_relation_and_scope():
    guarantee = DPSVD(epsilon="0.1", rank=6).guarantee(height=480, width=640, channels=3)
    assert (guarantee.kind, guarantee.epsilon, str(guarantee.relation)) == (
        "metric",
        Fraction(1, 10),
        "singular-values",
    )
    assert float(guarantee.diameter) == pytest.approx(255 * math.sqrt(3 * 640 * 480), rel=1e-6)
    assert "6 largest singular values" in guarantee.metric
    assert names_vectors(guarantee)
    assert any("how long" in text for text in guarantee.scope.in_the_clear)
    assert not names_vectors(dataclasses.replace(guarantee, scope=Scope("mutant")))


def test_a_rank_above_the_sides_is_all_of_them():
    size = {"height": 4, "width": 7, "channels": 3}
    image = random_image((4, 7, 3), 6)
    capped, whole = DPSVD(epsilon=1, rank=2**31), DPSVD(epsilon=1, rank=4)
    assert capped.guarantee(**size) == whole.guarantee(**size)
    assert np.array_equal(capped.release(image, bits=SeededBits(1)), whole.release(image, bits=SeededBits(1)))


def test_noise_scale_is_the_root_mean_square_of_a_pixel():
    """E‖z‖² of Gamma(k) is k(k + 1)/ε²; U and V are orthonormal, so it is spread over all pixels."""
    method, bits = DPSVD(epsilon="1/100", rank=2), SeededBits(8)
    flat = random_image((20, 20), 7) // 4 + 96
    silent = DPSVD(epsilon=SILENT, rank=2).release(flat, bits=bits).astype(float)
    error = [np.mean((method.release(flat, bits=bits) - silent) ** 2) for _ in range(300)]
    scale = method.noise_scale(height=20, width=20, channels=1)
    assert math.sqrt(np.mean(error)) == pytest.approx(scale, rel=0.15)


@pytest.mark.parametrize("shape", [(480, 640), (640, 480), (512, 512), (480, 640, 3)])
def test_a_release_takes_at_most_six_times_the_image_itself_counted(shape):
    image = (np.arange(np.prod(shape)) * 37 % 251).astype(np.uint8).reshape(shape)
    method = DPSVD(epsilon=1, rank=6)
    method.release(image, bits=SeededBits(1))  # what is imported once is not the release's
    tracemalloc.start()
    method.release(image, bits=SeededBits(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 5 * image.nbytes


def test_decompositions_take_one_thread_and_give_back_the_others(monkeypatch):
    """Threads wait for one another thousands of times: two take at least twice as long as one."""

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def watched(plane, rank):
        inside.append(threads())
        return leading_triples(plane, rank)

    inside = []
    monkeypatch.setattr(dp_svd, "leading_triples", watched)
    with threadpool_limits(2, user_api="blas"):
        DPSVD(epsilon=1, rank=2).release(random_image((9, 7, 3), 1), bits=SeededBits(1))
        assert threads() == {2}
    assert inside == [{1}] * 3

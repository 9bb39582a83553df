"""Snow: every pixel its own colour or grey, all channels together, by a law written a second time."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import Snow
from dpveil.mechanisms.pixel.baselines import BAND
from dpveil.noise.bits import SeededBits

GREY = 127


def law(image, delta):
    """Return the chance of every output of a tiny image: all patterns of shown and grey pixels."""
    pixels = image.reshape(-1, image.shape[2])
    chances: dict[bytes, Fraction] = {}
    for shown in product((True, False), repeat=len(pixels)):
        out = np.where(np.array(shown)[:, None], pixels, GREY).astype(np.uint8).tobytes()
        chance = delta ** sum(shown) * (1 - delta) ** (len(shown) - sum(shown))
        chances[out] = chances.get(out, Fraction(0)) + chance
    return chances


def divergence(first, second):
    """Return the hockey-stick divergence at ε = 0, exactly."""
    return sum(max(Fraction(0), chance - second.get(out, Fraction(0))) for out, chance in first.items())


def test_errata_snow_a_subset_of_fixed_size_costs_more_for_two_pixels():
    """Algorithm 4 over all subsets of 2 of 4 pixels: δ = 1/2 for one pixel as here, but 5/6 for two."""
    image, delta = np.array([[[1], [2], [3], [4]]], np.uint8), Fraction(1, 2)

    def published(pixels):
        subsets = [*combinations(range(4), 2)]
        outs = [np.where(np.isin(np.arange(4), kept), pixels[0, :, 0], GREY).tobytes() for kept in subsets]
        return {out: Fraction(outs.count(out), len(outs)) for out in outs}

    for m, costs in ((1, Fraction(1, 2)), (2, Fraction(5, 6))):
        other = image.copy()
        other[0, :m] = 9
        assert divergence(published(image), published(other)) == costs
        assert divergence(law(image, delta), law(other, delta)) == 1 - (1 - delta) ** m


def test_channels_stay_together_and_colours_stay_as_they_are():
    image = (np.arange(60 * 50 * 3) % 120).astype(np.uint8).reshape(60, 50, 3)
    out = Snow(delta="0.4").release(image, bits=SeededBits(2))
    grey, own = np.all(out == GREY, axis=2), np.all(out == image, axis=2)
    assert np.all(grey ^ own)
    assert 0.3 < own.mean() < 0.5  # 3 000 pixels: beyond by chance with probability below 1e-9


def test_which_pixels_are_shown_does_not_depend_on_them():
    dark, bright = np.full((40, 40, 3), 10, np.uint8), np.full((40, 40, 3), 250, np.uint8)
    shown = [Snow(delta="0.4").release(i, bits=SeededBits(3)) != GREY for i in (dark, bright)]
    assert np.array_equal(*shown)


@pytest.mark.parametrize("channels", [1, 3])
def test_bands_meet_without_a_seam(channels):
    image = np.full((2, BAND - 7, channels), 9, np.uint8)
    out = Snow(delta="0.5").release(image, bits=SeededBits(4))
    assert set(np.unique(out)) == {9, GREY}
    assert np.array_equal(out[..., 0], out[..., -1])
    assert abs(np.mean(out == 9) - 0.5) < 0.01  # over 17 deviations


def test_the_error_is_that_of_the_levels():
    image = np.arange(256, dtype=np.uint8).repeat(400).reshape(-1, 1)
    out = Snow(delta="0.25").release(image, bits=SeededBits(5)).astype(float)
    error = np.sqrt(np.mean((out - image) ** 2))
    assert error == pytest.approx(Snow(delta="0.25").noise_scale(height=1, width=1, channels=1), rel=0.02)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, "nan", "much", True, None])
def test_what_is_no_probability_is_refused(delta):
    with pytest.raises(InvalidParameter) as refusal:
        Snow(delta=delta)
    assert refusal.value.name == "delta"
    assert refusal.value.hint


def test_a_missing_delta_says_what_it_means_here():
    with pytest.raises(InvalidParameter, match="share of pixels that are shown"):
        Snow()

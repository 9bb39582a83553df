"""ssim-exponential: its law over all neighbours of tiny images, and what each part of it is for."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import SSIMExponential
from dpveil.mechanisms.pixel.ssim.method import _join_windows, _windows
from dpveil.mechanisms.pixel.ssim.quality import error_on_grey
from dpveil.noise.bits import SeededBits
from dpveil_audit.pixel.methods.ssim_exponential import log_distribution, outputs, windows_of

# Quality


# Shapes


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (6, 6), (3, 10), (9, 1)])
@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_windows_come_apart_and_together(shape, side):
    image = (np.arange(math.prod(shape) * 3) % 256).astype(np.uint8).reshape(*shape, 3)
    parts = _windows(image, side)
    assert np.array_equal(_join_windows(parts, *shape, side), image)
    method = SSIMExponential(epsilon=1, window=side)
    assert len(parts) == method.windows(height=shape[0], width=shape[1], channels=3)
    mine = parts.reshape(-1, 3, side, side)
    for channel in range(3):
        expected = windows_of(image[:, :, channel], 1, side)
        assert np.array_equal(mine[:, channel], np.array(expected))


# Budgets


def test_budgets_in_three_currencies():
    size = {"height": 128, "width": 128, "channels": 3}
    pure = SSIMExponential(epsilon=100, block=2)
    assert pure.windows(**size) == 22 * 22 * 3
    account = pure.account(**size)
    assert account.pure == 100
    assert account.rho == (2 * pure.exponent(**size)) ** 2 * account.draws / 8
    zcdp = SSIMExponential(rho="0.5", block=2)
    assert Fraction(1, 2) * (1 - Fraction(1, 10**15)) < zcdp.account(**size).rho <= Fraction(1, 2)
    both = SSIMExponential(epsilon=20, delta="1e-6", block=2)
    delta = Fraction(1, 10**6)
    assert both.account(**size).epsilon(delta) <= 20
    assert both.exponent(**size) > 4 * SSIMExponential(epsilon=20, block=2).exponent(**size)
    more = type(account)(2 * both.exponent(**size) * Fraction(1001, 1000), account.draws)
    assert more.epsilon(delta) > 20


def test_time_is_in_the_clear():
    scope = SSIMExponential(epsilon=1).guarantee(height=9, width=9, channels=1).scope
    assert any("how long" in entry for entry in scope.in_the_clear)


@pytest.mark.parametrize("given", [{"levels": 1}, {"levels": 257}, {"window": 65}])
def test_settings_out_of_range_are_refused(given):
    with pytest.raises(InvalidParameter) as refusal:
        SSIMExponential(epsilon=1, **given)
    assert refusal.value.name == next(iter(given))


def test_what_is_out_of_reach_is_refused_and_never_approximated():
    method = SSIMExponential(epsilon=100, window=5, levels=8)
    with pytest.raises(InvalidParameter, match="no exact draw within reach") as refusal:
        method.release(np.zeros((5, 5), np.uint8), bits=SeededBits(1))
    assert refusal.value.hint
    weak = SSIMExponential(epsilon=1, window=5, levels=8)
    assert weak.release(np.zeros((5, 5), np.uint8), bits=SeededBits(1)).shape == (5, 5)


@pytest.mark.parametrize(("side", "levels"), [(2, 4), (1, 16)])
def test_noise_scale_is_the_error_on_mid_grey(side, levels):
    for exponent in (0.01, 3.0, 40.0):
        law = np.exp(log_distribution(np.full(side * side, 128), exponent, levels))
        error = math.sqrt(law @ ((outputs(side * side, levels) - 128) ** 2).mean(axis=1))
        assert error_on_grey(exponent, side * side, levels) == pytest.approx(error, rel=1e-9)

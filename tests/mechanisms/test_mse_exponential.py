"""MSE exponential mechanism: what a draw costs, exact laws over all neighbours, and the sampler's fit."""

from decimal import Context, Decimal
from functools import cache

import numpy as np
import pytest

from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel import MSEExponential
from dpveil.mechanisms.pixel.base import BAND, cell_areas, cell_levels, cell_sums, mean_levels
from dpveil.mechanisms.pixel.mse_exponential import shown_levels
from dpveil.noise import backend
from dpveil.noise.bits import SeededBits

WORK = Context(prec=60)


def formula(budget, levels):
    """ln of the probabilities of formula 6.32 with sixty digits, for every x: rows of `levels` Decimals."""
    exp, found = cache(WORK.exp), []  # the same distances come again and again
    for x in range(256):
        exponents = [
            -Decimal(budget) * (Decimal(x) - Decimal(255 * j) / (levels - 1)) ** 2 / 255**2
            for j in range(levels)
        ]
        total = WORK.ln(sum(map(exp, exponents), Decimal(0)))
        found.append([e - total for e in exponents])
    return found


@pytest.mark.parametrize("levels", [2, 3, 8, 256])
@pytest.mark.parametrize("budget", ["1e-6", "0.5", "12"])
def test_errata_e10_a_draw_costs_exactly_its_exponent_and_not_twice(budget, levels):
    """The largest log-ratio over all 256² pairs of true levels and all outcomes, by formula."""
    logs = formula(budget, levels)
    largest = max(max(column) - min(column) for column in zip(*logs, strict=True))
    assert abs(largest - Decimal(budget)) < Decimal("1e-25") * levels


def test_plain_and_compiled_draw_the_same(monkeypatch):
    image = (np.arange(70_000) % 256).astype(np.uint8).reshape(100, 700)
    method = MSEExponential(epsilon=10**5, block=3, levels=16)
    backend.compile_now()
    shown = method.release(image, bits=SeededBits(1))
    monkeypatch.setattr(backend._State, "plain", True)
    assert np.array_equal(shown, method.release(image, bits=SeededBits(1)))
    assert set(np.unique(shown)) <= set(shown_levels(16))


def test_without_noise_cells_show_their_mean_level():
    image = (np.arange(1, 13 * 17 * 3 + 1) * 97 % 256).astype(np.uint8).reshape(13, 17, 3)
    assert np.array_equal(MSEExponential(epsilon=10**12).release(image, bits=SeededBits(1)), image)
    means = mean_levels(cell_sums(image, 4), cell_areas(13, 17, 4))
    assert np.array_equal(
        MSEExponential(epsilon=10**12, block=4).release(image, bits=SeededBits(1))[::4, ::4], means
    )


def test_cell_levels_are_the_same_band_by_band(monkeypatch):
    image = (np.arange(50 * 41 * 3) * 31 % 256).astype(np.uint8).reshape(50, 41, 3)
    for block in (1, 2, 3, 7, 60):
        expected = mean_levels(cell_sums(image, block), cell_areas(50, 41, block))
        for band in (BAND, 1, 100):
            monkeypatch.setattr("dpveil.mechanisms.pixel.base.BAND", band)
            assert np.array_equal(cell_levels(image, block), expected)


@pytest.mark.parametrize("levels", [2, 3, 4, 7, 16, 100, 256])
def test_shown_levels_are_spread_evenly(levels):
    shown = shown_levels(levels)
    assert len(set(shown)) == levels
    assert (shown[0], shown[-1]) == (0, 255)
    assert all(abs(level - 255 * j / (levels - 1)) <= 0.5 for j, level in enumerate(shown))


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": "1e-12"},
        {"epsilon": 10**12},
        {"rho": "1e-12"},
        {"rho": 10**12},
        {"epsilon": 10**9, "delta": "1e-6"},
        {"epsilon": "0.01", "delta": "0.01"},
        {"epsilon": 38},
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [(1, 1, 1), (120, 88, 3), (3000, 4000, 3)], ids=str)
def test_extreme_budgets_are_kept(budget, size):
    method = MSEExponential(**budget, block=2)
    given = dict(zip(("height", "width", "channels"), size, strict=True))
    assert method.spent(method.account(**given)) <= method.limit


@pytest.mark.parametrize("levels", [3, 5, 6, 7, 10, 255])
def test_budgets_too_small_for_64_bits_are_refused_and_never_overspent(levels):
    """A law of rates below 2^-58 or so cannot be told from a uniform one, whose chances are rounded, too."""
    with pytest.raises(NoiseError) as refusal:
        MSEExponential(epsilon="1e-12", levels=levels).account(height=1024, width=1024, channels=3)
    assert refusal.value.hint

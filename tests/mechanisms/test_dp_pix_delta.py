"""DP-Pix under zCDP and (ε, δ): sensitivities against every neighbour of tiny images, and known numbers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpveil.accounting import laplace_epsilon, zcdp_delta
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, fullest_cells
from dpveil.noise.bits import SeededBits

FACE = {"height": 88, "width": 120, "channels": 3}
TINY = [(2, 3, 2, 1), (3, 3, 2, 1), (1, 5, 2, 1), (2, 2, 2, 3), (1, 3, 2, 3), (3, 2, 9, 1), (4, 2, 3, 1)]
SPARSE = [(2, 3), (5, 7), (8, 8), (1, 9), (16, 5), (33, 17)]


def corners(height, width, channels, m):
    """Every way to change at most m pixels by all of 255 in every channel, up or down alike in a pixel."""
    pixels = height * width
    signs = list(itertools.product((-1, 1), repeat=channels))
    for size in range(1, min(m, pixels) + 1):
        for places in itertools.combinations(range(pixels), size):
            for change in itertools.product(signs, repeat=size):
                moved = np.zeros((pixels, channels), int)
                moved[list(places)] = 255 * np.array(change)
                yield moved.reshape(height, width, channels)


def movement(change, block):
    """How far a change of pixels moves every cell's sum, by loops."""
    height, width, channels = change.shape
    return [
        change[top : top + block, left : left + block, channel].sum()
        for top in range(0, height, block)
        for left in range(0, width, block)
        for channel in range(channels)
    ]


@pytest.mark.parametrize(("height", "width", "block", "channels"), TINY)
@pytest.mark.parametrize("m", [1, 2, 3, 5, None])
def test_variance_is_the_largest_squared_distance_of_all_neighbours(height, width, block, channels, m):
    """A convex function of the change is largest at a corner of the box of changes."""
    if channels == 3:
        m = min(m or 4, 3)
    pixels = height * width
    largest = max(
        sum(int(t) ** 2 for t in movement(change, block))
        for change in corners(height, width, channels, m or pixels)
    )
    size = {"height": height, "width": width, "channels": channels}
    given = DPPixGaussian(rho="0.25", block=block, neighbourhood=m)
    assert given.sum_variance(**size) == Fraction(largest, 1) * 2  # Δ² / (2ρ)


@pytest.mark.parametrize(("height", "width"), SPARSE)
@pytest.mark.parametrize("block", [1, 2, 3, 5, 40])
def test_fullest_cells_are_what_a_greedy_loop_fills(height, width, block):
    areas = sorted(cell_areas(height, width, block).ravel().tolist(), reverse=True)
    for m in {
        1,
        2,
        block,
        block**2,
        block**2 + 1,
        2 * block**2 + 3,
        height * width - 1,
        height * width,
        10**6,
    }:
        if m < 1:
            continue
        left, fills = m, []
        for area in areas:
            fills.append(min(area, left))
            left -= fills[-1]
        expected = {}
        for fill in fills:
            if fill:
                expected[255 * fill] = expected.get(255 * fill, 0) + 1
        assert fullest_cells(height, width, block, m) == expected
    every = fullest_cells(height, width, block, None)
    assert every == fullest_cells(height, width, block, height * width)
    assert sum(moved * count for moved, count in every.items()) == 255 * height * width


def test_sums_move_as_stated_for_the_worst_neighbour():
    """The pair that fills the fullest cells moves the real sums by what `fullest_cells` says."""
    black, other = np.zeros((5, 7, 1), np.uint8), np.zeros((5, 7, 1), np.uint8)
    other[0:2, 0:2], other[0:2, 2:4], other[2, 0] = 255, 255, 255
    moved = (cell_sums(other, 2) - cell_sums(black, 2)).ravel().tolist()
    assert sorted((t for t in moved if t), reverse=True) == [1020, 1020, 255]
    assert fullest_cells(5, 7, 2, 9) == {1020: 2, 255: 1}


@pytest.mark.parametrize(
    ("m", "rho", "scale"),
    [
        (256, 2, 255 * math.sqrt(3) / 2),  # one cell of three channels: Δ = 255·√3·256, σ = Δ/(√(2·2))
        (16, 2, 255 * math.sqrt(3) * 16 / 256 / 2),
        (512, 2, 255 * math.sqrt(3 * 2) / 2),
        (257, 2, 255 * math.sqrt(3 * (256**2 + 1)) / 256 / 2),
    ],
)
def test_noise_scales_by_hand(m, rho, scale):
    method = DPPixGaussian(rho=rho, block=16, neighbourhood=m)
    assert method.noise_scale(**FACE) == pytest.approx(scale, rel=1e-12)


def test_any_image_counts_ragged_cells_by_their_own_area():
    """88 × 120 at 16: five rows of 7 full cells and one of 16 × 8, then a row of 8 × 16 and one 8 × 8."""
    squared = 5 * (7 * 256**2 + 128**2) + 7 * 128**2 + 64**2
    method = DPPixGaussian(rho=2, block=16)
    assert method.sum_variance(**FACE) == Fraction(3 * 255**2 * squared, 4)
    assert method.noise_scale(**FACE) == pytest.approx(255 * math.sqrt(3 * squared) / 2 / 256)


def test_epsilon_and_delta_take_the_largest_rho_that_the_conversion_accepts():
    method = DPPixGaussian(epsilon=20, delta="1e-6", block=16)
    variance = method.sum_variance(**FACE)
    rho = DPPixGaussian(rho=1, block=16).sum_variance(**FACE) / variance
    assert zcdp_delta(rho, 20) <= Fraction(1, 10**6) < zcdp_delta(rho * Fraction(1001, 1000), 20)
    guarantee = method.guarantee(**FACE)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("approximate", 20, Fraction(1, 10**6))
    zcdp = DPPixGaussian(rho="0.5", block=16).guarantee(**FACE)
    assert (zcdp.kind, zcdp.rho, zcdp.epsilon, zcdp.delta) == ("zcdp", Fraction(1, 2), None, None)


def test_gaussian_noise_is_never_below_the_analytic_gaussian():
    """Balle & Wang 2018: the smallest σ/Δ that is (ε, δ) for continuous noise; ours goes through ρ."""
    for epsilon, delta in ((1, 1e-6), (5, 1e-4), (20, 1e-6)):

        def excess(ratio, epsilon=epsilon, delta=delta):
            tail = math.exp(epsilon + norm.logcdf(-0.5 / ratio - epsilon * ratio))
            return norm.cdf(0.5 / ratio - epsilon * ratio) - tail - delta

        best = brentq(excess, 0.05, 20)
        method = DPPixGaussian(epsilon=epsilon, delta=delta, block=16, neighbourhood=256)
        ratio = method.noise_scale(**FACE) / (255 * math.sqrt(3))
        assert best <= ratio <= 1.15 * best


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rho": 1, "epsilon": 1},
        {"rho": 1, "delta": "1e-6"},
        {"rho": 1, "epsilon": 1, "delta": "1e-6"},
        {"epsilon": 1},
        {"delta": "1e-6"},
    ],
)
def test_a_budget_is_rho_or_both_of_the_others(given):
    with pytest.raises(InvalidParameter) as refusal:
        DPPixGaussian(**given)
    assert refusal.value.name == "budget"
    assert "give rho alone, or epsilon and delta" in refusal.value.hint


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, "nan", "small", True])
def test_deltas_that_are_no_probability_are_refused(delta):
    for method in (DPPix, DPPixGaussian):
        with pytest.raises(InvalidParameter) as refusal:
            method(epsilon=1, delta=delta)
        assert refusal.value.name == "delta"


def test_what_delta_buys_laplace_noise():
    """Any-image moves 144 sums at once: the accountant halves the noise and is asked about the result."""
    pure, both = DPPix(epsilon=20, block=16), DPPix(epsilon=20, delta="1e-6", block=16)
    assert pure.noise_scale(**FACE) == pytest.approx(1577.81, abs=0.01)
    assert 0.4 < both.noise_scale(**FACE) / pure.noise_scale(**FACE) < 0.6
    moved = fullest_cells(88, 120, 16, None)
    shifts = tuple((shift, 3 * count) for shift, count in sorted(moved.items(), reverse=True))
    scale = both.sum_scale(**FACE)
    delta = Fraction(1, 10**6)
    assert (
        laplace_epsilon(scale, shifts, delta)
        <= 20
        < laplace_epsilon(scale * Fraction(999, 1000), shifts, delta)
    )
    guarantee = both.guarantee(**FACE)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("approximate", 20, delta)


def test_delta_never_costs_more_noise_than_none():
    for m in (1, 16, 256, 1000, None):
        for epsilon in ("0.1", 1, 20):
            pure = DPPix(epsilon=epsilon, block=16, neighbourhood=m)
            both = DPPix(epsilon=epsilon, delta="1e-6", block=16, neighbourhood=m)
            assert both.noise_scale(**FACE) <= pure.noise_scale(**FACE) * (1 + 1e-9)


@pytest.mark.parametrize("delta", ["1e-12", "1e-3", "0.5", "0.999"])
@pytest.mark.parametrize("epsilon", ["1e-4", "0.1", 50])
def test_extreme_budgets_are_calibrated_as_well(epsilon, delta):
    """Where δ alone pays for the noise, the accountant says ε = 0, which no logarithm knows."""
    size = {"height": 20, "width": 20, "channels": 1}
    method = DPPix(epsilon=epsilon, delta=delta, block=10)
    scale, shifts = method.sum_scale(**size), ((25500, 4),)
    assert laplace_epsilon(scale, shifts, Fraction(delta)) <= Fraction(epsilon)
    assert laplace_epsilon(scale * Fraction(99, 100), shifts, Fraction(delta)) > Fraction(epsilon)


def test_a_better_accountant_is_not_a_different_law():
    """The release with δ is the same sums plus noise of the stated scale: of 30 000 draws, the part that is
    not clamped is within 7 standard errors, which fails by chance below 1e-11.
    """
    image = np.full((100, 100, 3), 128, np.uint8)
    method = DPPix(epsilon=60, delta="1e-6", neighbourhood=4)
    scale = float(method.sum_scale(height=100, width=100, channels=3))
    levels = method.release(image, bits=SeededBits(1)).astype(int)
    q = math.exp(-1 / scale)
    inside = (np.abs(levels - 128) <= 100).mean()
    expected = 1 - 2 * q**101 / (1 + q)
    assert 0.2 < expected < 0.99
    assert abs(inside - expected) < 7 * math.sqrt(0.25 / 30_000)


def test_gaussian_release_has_the_stated_spread():
    """Sample standard deviation of 30 000 draws within 7 standard errors: fails by chance below 1e-11."""
    image = np.full((100, 100, 3), 128, np.uint8)
    method = DPPixGaussian(rho=200, neighbourhood=1)
    sigma = method.noise_scale(height=100, width=100, channels=3)
    assert 15 < sigma < 30  # clamping at 0 and 255 plays no part
    spread = method.release(image, bits=SeededBits(2)).astype(float).std()
    assert abs(spread / sigma - 1) < 7 / math.sqrt(2 * 30_000)

"""DP-Pix under zCDP and (ε, δ): sensitivities against every neighbour of tiny images, and known numbers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpveil.accounting import laplace_epsilon, zcdp_delta
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.base import fullest_cells

FACE = {"height": 88, "width": 120, "channels": 3}
TINY = [(2, 3, 2, 1), (3, 3, 2, 1), (1, 5, 2, 1), (2, 2, 2, 3), (1, 3, 2, 3), (3, 2, 9, 1), (4, 2, 3, 1)]


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


@pytest.mark.parametrize("delta", ["1e-12", "1e-3", "0.5", "0.999"])
@pytest.mark.parametrize("epsilon", ["1e-4", "0.1", 50])
def test_extreme_budgets_are_calibrated_as_well(epsilon, delta):
    """Where δ alone pays for the noise, the accountant says ε = 0, which no logarithm knows."""
    size = {"height": 20, "width": 20, "channels": 1}
    method = DPPix(epsilon=epsilon, delta=delta, block=10)
    scale, shifts = method.sum_scale(**size), ((25500, 4),)
    assert laplace_epsilon(scale, shifts, Fraction(delta)) <= Fraction(epsilon)
    assert laplace_epsilon(scale * Fraction(99, 100), shifts, Fraction(delta)) > Fraction(epsilon)

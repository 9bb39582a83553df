"""What is drawn, exactly: every two inputs on small grids, the samplers' fit, and published mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import FLAT, UNEVEN, Space, clipped_law, worst
from scipy.special import logsumexp

from dpveil.mechanisms.latent import BoxLaplace, CroftMetric
from dpveil.mechanisms.latent.base import STEPS
from dpveil.noise.bits import SeededBits

EPSILONS = [Fraction(1, 2), Fraction(3), Fraction(20)]
SMALL = 4


def croft_scale(space, epsilon, steps):
    """m·(high - low)/ε in steps of (high - low)/steps: Croft 2022, theorem 1."""
    return Fraction(space.length * steps) / epsilon


def box_scales(space, epsilon, weights, steps):
    """(high - low)/(w·ε) in steps of (high - low)/steps: Li & Clifton 2021, algorithm 2, with erratum E7."""
    return [Fraction(steps) / (w * epsilon) for w in weights]


def test_the_laws_of_this_file_sum_to_one():
    for at in range(5):
        for scale in (0.3, 2, 77):
            assert math.isclose(clipped_law(at, scale, 4).sum(), 1, rel_tol=1e-12)


def own_scales(mechanism, space, steps):
    """The scales that a box-laplace draws with: those of the formula, or up to 1/16 above."""
    least = box_scales(space, mechanism.epsilon, mechanism.shares(space), steps)
    scales = mechanism.scales(space)
    assert all(a <= b <= a * Fraction(17, 16) for a, b in zip(least, scales, strict=True))
    return scales


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("space", [FLAT, UNEVEN], ids=["two", "three"])
def test_croft_keeps_epsilon_d_for_every_two_codes_and_wastes_nothing(space, epsilon, coarse):
    coarse(SMALL)
    mechanism = CroftMetric(epsilon=epsilon)
    scale = mechanism.scales(space)[0]
    assert scale == croft_scale(space, epsilon, SMALL)
    most, per_distance = worst(lambda point: [scale] * space.length, SMALL)
    assert most <= epsilon * (1 + 1e-9)  # diameter 1
    assert per_distance <= epsilon * (1 + 1e-9)
    assert per_distance >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("allocation", ["equal", "optimal"])
@pytest.mark.parametrize("space", [FLAT, UNEVEN], ids=["two", "three"])
def test_box_laplace_keeps_epsilon_for_every_two_codes_and_wastes_nothing(space, allocation, epsilon, coarse):
    coarse(SMALL)
    mechanism = BoxLaplace(epsilon=epsilon, allocation=allocation)
    weights = mechanism.shares(space)
    assert sum(weights) == 1
    assert len(weights) == space.length
    scales = own_scales(mechanism, space, SMALL)
    most, _ = worst(lambda point: scales, SMALL)
    assert most <= epsilon * (1 + 1e-9)
    assert most >= epsilon * 16 / 17  # scales are rounded up a little, to share tables


# Errata


def test_errata_e7_weights_in_the_numerator_overspend(coarse):
    """Li & Clifton's algorithm 2 prints Lap(S·w/ε): with m equal weights it costs m² times what it says."""
    coarse(SMALL)
    epsilon, m = Fraction(2), 3
    weights = [Fraction(1, m)] * m
    printed, _ = worst(lambda point: [SMALL * w / epsilon for w in weights], SMALL)
    assert math.isclose(printed, m**2 * epsilon, rel_tol=1e-9)
    ours, _ = worst(lambda point: BoxLaplace(epsilon=epsilon, allocation="equal").scales(UNEVEN), SMALL)
    assert ours <= epsilon * (1 + 1e-9)


def test_errata_e4_sensitivities_of_the_pair_itself_are_private():
    """FaceIDP's S_m is the distance of the protected code to an edge: another code, another scale.

    Where scales differ the log-ratio grows without end as the outcome goes out, so no ε holds.
    """
    edge, epsilon = 1000, 1.0

    def log_distribution(at, outcome):
        scale = abs(edge - at) / epsilon
        return -abs(outcome - at) / scale - math.log(scale)

    ratios = [abs(log_distribution(990, far) - log_distribution(0, far)) for far in (2_000, 20_000, 200_000)]
    assert ratios[0] > 50 * epsilon
    assert ratios[2] > 9 * ratios[1] > 80 * ratios[0]
    mechanism = BoxLaplace(epsilon=1)
    assert mechanism.scales(UNEVEN) == mechanism.scales(UNEVEN)  # ours know the space and no code


@pytest.mark.parametrize("share", [0, Fraction(1, 10**6)])
def test_errata_e4_budgets_over_a_part_of_the_coordinates_leave_the_rest_open(share, coarse):
    """FaceIDP divides ε over coordinates that matter for recognition; the others get no noise, or hardly."""
    coarse(SMALL)
    epsilon = Fraction(2)
    weights = [Fraction(2, 3), Fraction(1, 3)]  # sums to 1 over two of three
    if share == 0:
        released = {point: point[2] for point in ((0, 0, 0), (0, 0, 1))}
        assert len(set(released.values())) == 2  # told apart with certainty
        return
    scales = [*box_scales(UNEVEN, epsilon, weights, SMALL), Fraction(1, 3)]
    most, _ = worst(lambda point: scales, SMALL)
    assert most > 6 * epsilon
    shares = BoxLaplace(epsilon=epsilon).shares(UNEVEN)
    assert len(shares) == UNEVEN.length
    assert min(shares) > 0


def test_errata_e9_bounds_taken_from_the_code_lose_everything():
    """A box around the protected code itself: releases pile up at its ends, which are the code's own."""

    class OwnBounds(Space):
        pass

    def mutant(code):
        around = OwnBounds(tuple(code - 1.0), tuple(code + 1.0))
        return CroftMetric(epsilon=1).release(code[None], around, bits=SeededBits(1))[0]

    first, second = np.array([3.0, 40.0]), np.array([-9.0, 4.0])
    assert np.all(np.abs(mutant(first) - first) <= 1)
    assert np.all(np.abs(mutant(second) - second) <= 1)  # the two can never give the same release
    ours = [CroftMetric(epsilon=1).release(c[None], FLAT, bits=SeededBits(1))[0] for c in (first, second)]
    box = FLAT.bounds()
    assert all(np.all((box.low <= one) & (one <= box.high)) for one in ours)


def test_errata_e9_neither_scales_nor_the_box_depend_on_the_code():
    """The same bits at two corners: what is not clipped differs by exactly the distance of the corners."""
    mechanism = CroftMetric(epsilon=STEPS * 2 / 5)
    a, b = np.array([[0.25, -1.0]]), np.array([[0.75, 3.0]])
    first, second = (mechanism.release(c, FLAT, bits=SeededBits(3)) for c in (a, b))
    assert np.allclose(second - first, b - a, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1, 30])
def test_truncated_laplace_over_a_whole_side_needs_no_more_than_its_width_over_epsilon(epsilon):
    """Every two of 65 places: the ends, whose normalisers are equal, are the worst, at exactly ε."""
    places = np.arange(65)
    logs = -np.abs(places - places[:, None]) * epsilon / 64
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    ratios = np.max(logs[:, None] - logs[None], axis=2)
    assert math.isclose(ratios.max(), epsilon, rel_tol=1e-9)
    assert math.isclose(ratios[0, 64], epsilon, rel_tol=1e-9)
    metric = (
        ratios[places[:, None] != places] * 64 / np.abs(places - places[:, None])[places[:, None] != places]
    )
    assert metric.max() > 1.02 * epsilon  # for ε·d at every distance this scale would be too small


@pytest.mark.parametrize("rho", [0.05, 1, 20])
def test_discrete_gaussian_noise_costs_rho_over_a_whole_side_and_less_after_clipping(rho):
    """D_α ≤ α·ρ at every move of up to 64 steps, with equality for the longest; clipping only takes away."""
    variance = 64**2 / (2 * rho)
    reach = math.ceil(14 * math.sqrt(variance)) + 2000
    z = np.arange(-reach, reach + 1)
    log = -(z**2) / (2 * variance)
    constant = logsumexp(log)
    inner = slice(reach + 1, reach + 64)

    def clipped(logs):  # into 0..64: what lies beyond counts to the ends
        return np.array([logsumexp(logs[: reach + 1]), *logs[inner], logsumexp(logs[reach + 64 :])])

    for order in (1.01, 2, 8):
        for move in (1, 32, 64):
            pair = log - constant, -((z - move) ** 2) / (2 * variance) - constant
            cost, after = (
                logsumexp(order * a + (1 - order) * b) / (order - 1) for a, b in (pair, map(clipped, pair))
            )
            assert cost <= order * rho * (move / 64) ** 2 * (1 + 1e-9) + 1e-11
            assert after <= cost + 1e-11
        assert cost == pytest.approx(order * rho, rel=1e-3)


def test_rounding_moves_a_distance_by_a_step_at_most():
    """Half a step for each of two codes: 2^-16 in the mean of parts of the box."""
    rng = np.random.default_rng(8)
    box = UNEVEN.bounds()
    a, b = (box.low + box.width * rng.random((5000, 3)) for _ in range(2))
    whole = [np.rint((codes - box.low) / box.width * STEPS) / STEPS for codes in (a, b)]
    exact = np.abs((a - b) / box.width).mean(axis=1)
    moved = np.abs(np.abs(whole[0] - whole[1]).mean(axis=1) - exact)
    assert moved.max() <= 1 / STEPS
    assert moved.max() > 0.5 / STEPS

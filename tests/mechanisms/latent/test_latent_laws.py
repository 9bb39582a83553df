"""What is drawn, exactly: every two inputs on small grids, the samplers' fit, and published mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import FLAT, UNEVEN, Space, worst
from scipy import integrate, stats
from scipy.optimize import minimize

from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.latent import BoxLaplace, BoxTruncatedLaplace, CroftMetric, Directional, PCABasis
from dpveil.mechanisms.latent.base import STEPS
from dpveil.mechanisms.latent.coordinate_noise import affordable
from dpveil.mechanisms.latent.posterior import equal, optimal_gaussian, optimal_laplace, rational_shares
from dpveil.noise.bits import SeededBits
from dpveil_audit.latent import AuditSpace

SMALL = 4


def box_scales(space, epsilon, weights, steps):
    """(high - low)/(w·ε) in steps of (high - low)/steps: Li & Clifton 2021, algorithm 2, with erratum E7."""
    return [Fraction(steps) / (w * epsilon) for w in weights]


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


# Directions in more than two coordinates, which the audit's circle does not see.


ALPHA = 1e-9
"""The test fails for a right mechanism with at most this probability; its seed is fixed."""


def along_law(kappa, dimension):
    """The distribution of ⟨x, μ⟩, whose density is ∝ e^(κw)·(1 - w²)^((i - 3)/2), by quadrature."""
    angles = np.linspace(0, math.pi, 20_001)
    density = np.exp(kappa * (np.cos(angles) - 1)) * np.sin(angles) ** (dimension - 2)
    below = integrate.cumulative_simpson(density, x=angles, initial=0)
    return lambda w: 1 - np.interp(np.arccos(np.clip(w, -1, 1)), angles, below / below[-1])


@pytest.mark.parametrize(("dimension", "epsilon"), [(3, 2), (8, 6)])
def test_concentration_is_epsilon_in_any_number_of_coordinates(dimension, epsilon):
    low, high = (-1.0,) * dimension, (1.0,) * dimension
    space = AuditSpace(low, high, (1.0,) * dimension, far=0.5)
    code = np.linspace(-0.5, 1, dimension)
    released = Directional(epsilon=epsilon).release(np.tile(code, (600, 1)), space, bits=SeededBits(4))
    along = released / 0.5 @ (code / np.linalg.norm(code))
    assert np.allclose(np.linalg.norm(released, axis=1), 0.5, atol=1e-3)
    assert stats.kstest(along, along_law(epsilon, dimension)).pvalue > ALPHA
    assert stats.kstest(along, along_law(2 * epsilon, dimension)).pvalue < ALPHA


# Directional: what a code's direction is, where draws are put, and what neither of them reads.


SPACE = Space((-1.0, 2.0, 0.0), (1.0, 12.0, 0.25), far=0.75)
MIDDLE = np.array([0.0, 7.0, 0.125])
HALF = np.array([1.0, 5.0, 0.125])
SIDEWAYS = np.array([0.5, 0.0, 0.0])


def released(code, epsilon=5, seed=3, space=SPACE):
    return Directional(epsilon=epsilon).release(np.array([code]), space, bits=SeededBits(seed))[0]


def test_the_distance_from_the_middle_is_not_read():
    """Codes in one direction, in half sides, give one release of the same bits: their d is 0."""
    direction = np.array([0.25, -0.5, 0.125])
    outs = [released(MIDDLE + length * direction * HALF) for length in (0.5, 1, 2)]
    assert np.array_equal(outs[0], outs[1])
    assert np.array_equal(outs[0], outs[2])
    assert not np.array_equal(outs[0], released(MIDDLE + np.array([0.25, -0.5, 0.25]) * HALF))


def test_the_very_middle_has_the_direction_of_the_first_coordinate():
    assert np.array_equal(released(MIDDLE), released(MIDDLE + SIDEWAYS))
    assert not np.array_equal(released(MIDDLE), released(MIDDLE - SIDEWAYS))


def test_draws_lie_at_the_usual_distance():
    places = (np.array([released(MIDDLE + HALF, seed=seed) for seed in range(20)]) - MIDDLE) / HALF
    assert np.allclose(np.linalg.norm(places, axis=1), 0.75, atol=1e-4)
    tiny = Space(SPACE.low, SPACE.high, far=0.0)  # at least a step, so that something is shown
    assert np.abs((released(MIDDLE, space=tiny) - MIDDLE) / HALF).max() <= 1.01 / 2**15


def test_a_large_budget_shows_the_direction():
    code = MIDDLE + np.array([0.6, 0.3, -0.2]) * HALF
    found = (released(code, epsilon=10**8) - MIDDLE) / HALF
    assert np.allclose(found, 0.75 * np.array([0.6, 0.3, -0.2]) / 0.7, atol=1e-3)
    assert math.isclose(Directional(epsilon=1).guarantee(SPACE).diameter, 2)


def test_what_cannot_be_drawn_is_refused_before():
    with pytest.raises(NoiseError):
        Directional(epsilon=1).prepare(Space((0.0,), (1.0,)))
    with pytest.raises(NoiseError):
        Directional(epsilon=10**10).prepare(SPACE)


# How budgets are divided: exactly, and with the least error that there is.


WIDTH, ENERGY = np.array([9.0, 1.0, 0.2, 30.0]), np.array([1.0, 50.0, 3.0, 0.01])


def laplace_error(shares):
    """Squared error of the picture: W times twice the squared scale, at ε = 1 (FaceIDP eq. 25)."""
    return float(np.sum(ENERGY * 2 * (WIDTH / shares) ** 2))


def gaussian_error(shares):
    """W·σ² with ρ = S²/(2σ²), at a whole budget of 1."""
    return float(np.sum(ENERGY * WIDTH**2 / (2 * shares)))


def least(error):
    """The least of an error over shares that sum to 1, found without any formula."""
    ends = [
        minimize(lambda z: np.log(error(np.exp(z) / np.exp(z).sum())), start, method="Nelder-Mead",
                 options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000})
        for start in (np.zeros(4), np.array([0.0, 1.0, -1.0, 0.5]))
    ]  # fmt: skip
    return float(np.exp(min(end.fun for end in ends)))


@pytest.mark.parametrize("weights", ["1=4", "1-2=1/3,3=9", "3=1e-9"])
def test_weights_by_hand_divide_the_budget_and_no_more(weights, coarse):
    """Over every pair of points of a small grid, coordinates cost the budget together, in these parts."""
    coarse(SMALL)
    mechanism = BoxLaplace(epsilon=2, allocation=weights)
    assert worst(lambda point: mechanism.scales(UNEVEN), SMALL)[0] <= 2 * (1 + 1e-9)
    wanted = {"1=4": [4, 1, 1], "1-2=1/3,3=9": [1 / 3, 1 / 3, 9], "3=1e-9": [1, 1, 1e-9]}[weights]
    shares = [float(share) for share in mechanism.shares(UNEVEN)]
    assert sum(mechanism.shares(UNEVEN)) == 1
    assert shares == pytest.approx([one / sum(wanted) for one in wanted], rel=0.05, abs=1e-11)


@pytest.mark.parametrize("weights", ["", "1", "0=1", "2-1=1", "1=0", "1=-1", "1=x", "1-2=1,2=3", "1=1,,2=1"])
def test_other_weights_are_refused(weights):
    with pytest.raises(InvalidParameter, match="allocation"):
        BoxTruncatedLaplace(epsilon=1, allocation=weights)
    with pytest.raises(InvalidParameter, match="allocation"):
        BoxTruncatedLaplace(epsilon=1, allocation="4=2").prepare(UNEVEN)


@pytest.mark.parametrize(
    ("rule", "error"), [(optimal_laplace, laplace_error), (optimal_gaussian, gaussian_error)]
)
def test_optimal_shares_have_the_least_error(rule, error):
    shares = rule(WIDTH, ENERGY)
    ours, best = error(shares / shares.sum()), least(error)
    assert ours <= best * (1 + 1e-6)
    assert ours >= best * (1 - 1e-6)
    other = {laplace_error: optimal_gaussian, gaussian_error: optimal_laplace}[error](WIDTH, ENERGY)
    assert error(other / other.sum()) > 1.005 * best  # neither optimum is the other's
    assert error(np.full(4, 0.25)) > 1.2 * best


@pytest.mark.parametrize("seed", range(20))
def test_whole_shares_sum_to_exactly_one_and_cost_half_a_per_cent(seed):
    rng = np.random.default_rng(seed)
    width, energy = np.exp(rng.normal(0, 2, (2, 100)))
    shares = optimal_laplace(width, energy)
    exact = rational_shares(shares)
    assert sum(exact) == 1
    assert min(exact) > 0
    rounded = np.array([float(share) for share in exact])
    errors = [np.sum(energy * (width / p) ** 2) for p in (rounded, shares / shares.sum())]
    assert errors[0] <= 1.006 * errors[1]


def test_few_different_scales_however_many_coordinates():
    """Noise keeps tables of 64 scales; the widths of 100 components span about a hundredfold."""
    width = 1e4 * np.arange(1, 101.0) ** -1
    assert len(set(rational_shares(optimal_laplace(width, np.ones(100))))) <= 48


def test_extreme_shares_stay_above_zero():
    exact = rational_shares(np.array([1e-300, 1.0, 1e20]))
    assert sum(exact) == 1
    assert min(exact) > 0
    assert rational_shares(np.ones(3)) == (Fraction(1, 3),) * 3
    assert equal(WIDTH, ENERGY).tolist() == [1, 1, 1, 1]


def test_shares_come_from_the_box_that_is_used():
    wide = Space((0.0, 0.0), (1.0, 1.0))

    class Uneven(Space):
        def bounds(self, clip=0):
            return super().bounds(0) if clip == 0 else Space((0.0, 0.4), (1.0, 0.5)).bounds(0)

    space = Uneven(wide.low, wide.high)
    assert BoxLaplace(epsilon=1).shares(space) == (Fraction(1, 2),) * 2
    assert BoxLaplace(epsilon=1, clip=10).shares(space)[0] > Fraction(3, 4)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_shares_of_a_codec_that_is_no_codec_are_refused(wrong):
    """An infinite one used to make another one negative."""
    with pytest.raises(InvalidParameter, match="not finite"):
        rational_shares(np.array([1.0, wrong, 2.0]))
    assert rational_shares(np.array([1.0, 0.0]))[1] > 0


# PCA basis: how many components are kept, against a linear scan and the published search.


THREE = Space((-8.0, -5.0, -1.0), (8.0, 4.0, 3.0), spread=(2.0, 1.5, 0.5))


def scan(width, deviations, ratio, epsilon):
    """The largest c with c·width_i/ε < ratio·s_i for every i ≤ c, one by one; 0 where there is none."""
    good = [
        c
        for c in range(1, len(width) + 1)
        if all(c * width[i] / epsilon < ratio * deviations[i] for i in range(c))
    ]
    return max(good, default=0)


def published(width, deviations, ratio, epsilon):
    """Algorithm 1 as it is printed, with c_mid for the f_mid that it never defines."""
    low, high = 1, len(width)
    middle = math.ceil((low + high) / 2)
    while middle != high:
        if any(middle * width[i] / epsilon >= ratio * deviations[i] for i in range(middle)):
            high = middle
        else:
            low = middle
        middle = math.ceil((low + high) / 2)
    return middle


def spaces(count):
    rng = np.random.default_rng(6)
    for _ in range(count):
        size = int(rng.integers(1, 30))
        deviations = np.sort(rng.exponential(5, size))[::-1] + 0.1
        yield (
            deviations * rng.uniform(4, 10, size),
            deviations,
            float(rng.uniform(0.5, 3)),
            rng.exponential(40),
        )


def test_errata_e6_algorithm_1_returns_one_component_too_many():
    """Ours is the linear scan's in every case; the printed one breaks its threshold unless n is valid."""
    broken = 0
    for width, deviations, ratio, epsilon in spaces(2000):
        best = scan(width, deviations, ratio, epsilon)
        assert affordable(width, deviations, Fraction(ratio), Fraction(epsilon)) == best
        found = published(width, deviations, ratio, epsilon)
        if best == len(width):
            assert found == best
        else:
            assert found == (best + 1 if best or len(width) == 1 else 2)
            broken += 1
    assert broken > 500


def test_more_budget_or_a_smaller_box_keeps_more():
    kept = [PCABasis(epsilon=epsilon).number_of_components(THREE) for epsilon in (6, 12, 30, 100)]
    assert kept == [1, 2, 3, 3]
    assert PCABasis(epsilon=6, clip=30).number_of_components(THREE) == 2
    assert PCABasis(epsilon=6, ratio=4).number_of_components(THREE) == 2


def test_no_affordable_component_is_a_clear_error():
    mechanism = PCABasis(epsilon=5)
    with pytest.raises(InvalidParameter, match="affords no component") as refusal:
        mechanism.prepare(THREE)
    assert "5.333" in refusal.value.hint
    with pytest.raises(InvalidParameter, match="affords no component"):
        mechanism.release(np.zeros((1, 3)), THREE, bits=SeededBits(1))
    assert PCABasis(epsilon="5.334").number_of_components(THREE) == 1


def test_a_code_without_principal_components_is_refused():
    bare = Space((0.0, 0.0), (1.0, 1.0))
    assert PCABasis(epsilon=5).guarantee(bare).kind == "metric"  # known without a model
    with pytest.raises(InvalidParameter, match="principal components") as refusal:
        PCABasis(epsilon=5).prepare(bare)
    assert "pca codec" in refusal.value.hint


def test_dropped_components_are_the_mean_whatever_the_code():
    mechanism = PCABasis(epsilon=12)
    codes = np.array([[1.0, 2.0, -0.9], [1.0, 2.0, 2.9]])
    released = [mechanism.release(code[None], THREE, bits=SeededBits(4)) for code in codes]
    assert np.array_equal(*released)  # d = 0: the same release of the same bits
    assert released[0][0, 2] == pytest.approx(0, abs=4 / STEPS)
    assert "0 for codes that differ in the others only" in mechanism.guarantee(THREE).metric
    kept = [mechanism.release(codes[:1] + step, THREE, bits=SeededBits(4)) for step in (0.0, [[0, 0.1, 0]])]
    assert not np.array_equal(*kept)
    outside = Space((1.0, 0.0), (3.0, 1.0), spread=(9.0, 1e-9))  # a box that 0 is not in
    assert PCABasis(epsilon=9).release(np.ones((1, 2)), outside, bits=SeededBits(1))[0, 1] == 0

"""How budgets are divided: exactly, and with the least error that there is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import UNEVEN, Space
from scipy.optimize import minimize

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.mechanisms.latent.posterior import equal, optimal_gaussian, optimal_laplace, whole
from dpveil.noise.bits import SeededBits

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
    exact = whole(shares)
    assert sum(exact) == 1
    assert min(exact) > 0
    rounded = np.array([float(share) for share in exact])
    errors = [np.sum(energy * (width / p) ** 2) for p in (rounded, shares / shares.sum())]
    assert errors[0] <= 1.006 * errors[1]


def test_few_different_scales_however_many_coordinates():
    """Noise keeps tables of 64 scales; the widths of 100 components span about a hundredfold."""
    width = 1e4 * np.arange(1, 101.0) ** -1
    assert len(set(whole(optimal_laplace(width, np.ones(100))))) <= 48


def test_extreme_shares_stay_above_zero():
    exact = whole(np.array([1e-300, 1.0, 1e20]))
    assert sum(exact) == 1
    assert min(exact) > 0
    assert whole(np.ones(3)) == (Fraction(1, 3),) * 3
    assert equal(WIDTH, ENERGY).tolist() == [1, 1, 1, 1]


def test_the_optimum_shows_in_releases():
    """Mean squared error of 4 000 releases, in the picture: within 15 % of 2·W·(S/(p·ε))².

    The relative error of such a mean is 1.5 % or less, so chance has it wrong with probability below 1e-9.
    """
    epsilon = 3000
    middle = np.tile([[0.0, 7.0, 0.125]], (4000, 1))
    errors = {}
    for allocation in ("equal", "optimal"):
        mechanism = BoxLaplace(epsilon=epsilon, allocation=allocation)
        released = mechanism.release(middle, UNEVEN, bits=SeededBits(5))
        errors[allocation] = np.mean((released - middle) ** 2, axis=0) @ UNEVEN.column_energy
        shares = np.array([float(share) for share in mechanism.shares(UNEVEN)])
        expected = np.sum(UNEVEN.column_energy * 2 * (UNEVEN.bounds().width / shares / epsilon) ** 2)
        assert abs(errors[allocation] - expected) < 0.15 * expected
    assert errors["optimal"] < 0.8 * errors["equal"]


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
        whole(np.array([1.0, wrong, 2.0]))
    assert whole(np.array([1.0, 0.0]))[1] > 0

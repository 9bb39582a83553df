"""Measures between sets against closed forms and scipy."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import wasserstein_distance

from dpveil_research.picture_sets import directions, frechet, sliced_wasserstein

ONE, TWO = (np.random.default_rng(seed).normal(size=(size, 5)) for seed, size in ((1, 30), (2, 42)))


@pytest.mark.parametrize("other", [TWO, TWO[:30], TWO[:7], ONE])
def test_sliced_wasserstein_is_scipy_s_along_every_direction(other):
    turn = directions(5, 20, seed=3)
    by_scipy = [wasserstein_distance(ONE @ way, other @ way) for way in turn.T]
    found = sliced_wasserstein(ONE, other, projections=20, seed=3)
    assert found == pytest.approx(np.mean(by_scipy), rel=1e-9, abs=1e-12)


def test_sliced_wasserstein_of_a_shift_is_the_mean_projection_of_a_unit_vector():
    """E|θ·c| over the unit sphere of 3 dimensions is |c|/2; the deviation of 20 000 means is 0.002·|c|."""
    assert sliced_wasserstein(ONE[:, :3], ONE[:, :3] + [0, 6, 0], projections=20_000) == pytest.approx(
        3, abs=0.1
    )


def test_frechet_equals_the_formula_with_a_matrix_square_root():
    means = [rows.mean(axis=0) for rows in (ONE, TWO)]
    spreads = [np.cov(rows.T) for rows in (ONE, TWO)]
    root = sqrtm(spreads[0] @ spreads[1]).real
    expected = ((means[0] - means[1]) ** 2).sum() + np.trace(sum(spreads) - 2 * root)
    assert frechet(ONE, TWO) == pytest.approx(expected, rel=1e-9)
    assert frechet(TWO, ONE) == pytest.approx(expected, rel=1e-9)


def test_frechet_of_fewer_rows_than_features_is_that_of_singular_covariances():
    few, many = ONE[:3], TWO[:4]
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(5, 5)))[0]
    flat = [np.c_[rows[:, :2], np.zeros((len(rows), 3))] for rows in (ONE, TWO)]
    assert frechet(flat[0] @ turn, flat[1] @ turn) == pytest.approx(frechet(ONE[:, :2], TWO[:, :2]))
    assert frechet(few, many) == pytest.approx(frechet(few @ turn, many @ turn))

"""The Fréchet distance of two sets of features, against closed forms."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from dpveil.errors import InvalidParameter
from dpveil_research.frechet import frechet

ONE, TWO = (np.random.default_rng(seed).normal(size=(size, 5)) for seed, size in ((1, 30), (2, 42)))


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


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (ONE, TWO[:, :4], "have 4 features"),
        (ONE[:1], TWO, "2 or more rows"),
        (ONE, np.where(TWO > 2, np.nan, TWO), "finite"),
        (ONE[:, 0], TWO, "rows of features"),
    ],
)
def test_what_is_no_set_is_refused(one, two, words):
    with pytest.raises(InvalidParameter, match=words):
        frechet(one, two)

"""Measures against numbers worked out by hand, by loops, and by what every measure has to fulfil."""

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import wasserstein_distance
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from dpveil.errors import InvalidParameter
from dpveil.metrics import METRICS, ms_ssim, psnr, ssim
from dpveil.metrics.picture_sets import Bins, colours, directions, frechet, sliced_wasserstein
from dpveil.noise.bits import SeededBits


def levels(shape, seed=1):
    words = SeededBits(seed).words(math.prod(shape))
    return (words % np.uint64(256)).astype(np.uint8).reshape(shape)


def ssim_by_loops(x, y, window, data_range, ddof):
    """Wang et al. 2004, equation 13, one window at a time."""
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    values = []
    for channel in range(x.shape[2]):
        for top in range(x.shape[0] - window + 1):
            for left in range(x.shape[1] - window + 1):
                here = (slice(top, top + window), slice(left, left + window), channel)
                a, b = x[here].astype(float).ravel(), y[here].astype(float).ravel()
                n = a.size - ddof
                va, vb = ((a - a.mean()) ** 2).sum() / n, ((b - b.mean()) ** 2).sum() / n
                both = ((a - a.mean()) * (b - b.mean())).sum() / n
                likeness = (2 * a.mean() * b.mean() + c1) / (a.mean() ** 2 + b.mean() ** 2 + c1)
                values.append(likeness * (2 * both + c2) / (va + vb + c2))
    return sum(values) / len(values)


@pytest.mark.parametrize("shape", [(9, 12, 1), (7, 7, 3), (10, 8, 3)])
@pytest.mark.parametrize("data_range", [255, 1000.0])
def test_ssim_equals_the_formula_window_by_window(shape, data_range):
    x, y = levels(shape, 1), levels(shape, 2)
    y = ((x.astype(int) + y) // 2).astype(np.uint8)
    expected = ssim_by_loops(x, y, 7, data_range, ddof=1)
    assert 0.1 < expected < 0.99
    assert ssim(x, y, data_range=data_range) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("shape", "window"),
    [((6, 30), 5), ((5, 5), 5), ((4, 9), 3), ((3, 3), 3), ((2, 8), 1), ((1, 1), 1), ((40, 1), 1)],
)
def test_ssim_of_small_regions_takes_the_largest_odd_window(shape, window):
    x, y = levels((*shape, 1), 3), levels((*shape, 1), 4)
    expected = ssim_by_loops(x, y, window, 255, ddof=1 if window > 1 else 0)
    assert ssim(x, y, data_range=255) == pytest.approx(expected, abs=1e-10)
    assert ssim(x[:, :, 0], y[:, :, 0], data_range=255) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("change", "data_range", "decibels"),
    [(1, 255, 48.13080361), (255, 255, 0.0), (16, 255, 24.04840), (1, 1, 0.0), (0.1, 1, 20.0)],
)
def test_psnr_by_hand(change, data_range, decibels):
    x = np.zeros((5, 3, 3))
    assert psnr(x, x + change, data_range=data_range) == pytest.approx(decibels, abs=1e-4)


SIMILAR = {**METRICS, "ms-ssim": ms_ssim}


@pytest.mark.parametrize("name", SIMILAR)
def test_what_cannot_be_compared_is_refused(name):
    x = levels((8, 8))
    for other in (levels((8, 9)), levels((8, 8, 1)), levels((9, 8))):
        with pytest.raises(InvalidParameter, match="shape"):
            SIMILAR[name](x, other, data_range=255)
    for empty in (np.zeros((0, 4)), np.zeros(4)):
        with pytest.raises((InvalidParameter, TypeError)):
            SIMILAR[name](empty, empty, data_range=255)
    for data_range in (0, -1, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="data_range"):
            SIMILAR[name](x, x, data_range=data_range)
    with pytest.raises(TypeError):
        SIMILAR[name](x, x)


@pytest.mark.parametrize("shape", [(100, 31, 3), (24, 40, 1), (25, 9, 3), (60, 8)])
def test_ssim_equals_scikit_image(shape):
    """Images of several strips: `scikit-image` computes them whole."""
    x, y = levels(shape, 8), levels(shape, 9)
    y = ((3 * x.astype(int) + y) // 4).astype(np.uint8)
    expected = structural_similarity(
        x, y, win_size=7, data_range=255, channel_axis=2 if len(shape) == 3 else None
    )
    assert ssim(x, y, data_range=255) == pytest.approx(expected, abs=1e-12)
    assert ssim(x / 255, y / 255, data_range=1) == pytest.approx(expected, abs=1e-10)
    assert psnr(x, y, data_range=255) == pytest.approx(peak_signal_noise_ratio(x, y, data_range=255))


def contrast_by_loops(x, y, window, data_range):
    """The factors of contrast and structure, one window at a time; flat pictures of grey levels."""
    c2, values = (0.03 * data_range) ** 2, []
    for top in range(x.shape[0] - window + 1):
        for left in range(x.shape[1] - window + 1):
            a, b = (one[top : top + window, left : left + window].astype(float) for one in (x, y))
            both = ((a - a.mean()) * (b - b.mean())).sum() / (a.size - 1)
            values.append((2 * both + c2) / (a.var(ddof=1) + b.var(ddof=1) + c2))
    return sum(values) / len(values)


def halved_by_loops(x):
    rows, columns = x.shape[0] // 2, x.shape[1] // 2
    return np.array(
        [[x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in range(columns)] for i in range(rows)]
    )


@pytest.mark.parametrize(("shape", "scales"), [((13, 20), 1), ((14, 20), 2), ((29, 31), 3), ((57, 70), 4)])
def test_ms_ssim_equals_the_formula_scale_by_scale(shape, scales):
    """Wang et al. 2003, equation 7: contrast at every scale, levels at the last one."""
    x = levels(shape, 9)
    y = ((3 * x.astype(int) + levels(shape, 10)) // 4).astype(np.uint8)
    weights = np.array([0.0448, 0.2856, 0.3001, 0.2363][:scales])
    expected, pair = 1.0, (x.astype(float), y.astype(float))
    for number, weight in enumerate(weights / weights.sum()):
        if number == scales - 1:
            part = ssim_by_loops(pair[0][..., None], pair[1][..., None], 7, 255, ddof=1)
        else:
            part = contrast_by_loops(*pair, 7, 255)
        expected *= part**weight
        pair = [halved_by_loops(one) for one in pair]
    assert 0.5 < expected < 0.99
    assert ms_ssim(x, y, data_range=255) == pytest.approx(expected, abs=1e-9)


# Measures between sets against closed forms, scipy, and what they have to notice.


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


def test_bins_hold_their_reference_and_notice_what_is_missing():
    random = np.random.default_rng(7)
    reference, same = (
        np.concatenate([random.normal(30 * n, 1, (200, 4)) for n in range(5)]) for _ in range(2)
    )
    bins = Bins.of(reference, 5)
    assert sorted(bins.counts.tolist()) == [200] * 5
    level = bins.compare(same)
    assert level.ndb == 0
    lost = bins.compare(same[200:])  # one kind of five is never made: 0 against 0.2, and 0.25 against 0.2
    assert lost.different.sum() >= 1
    assert lost.different[bins.compare(reference[:200]).shares.argmax()]


BAD = [
    (lambda: sliced_wasserstein(ONE, TWO[:, :4]), "have 4 features"),
    (lambda: sliced_wasserstein(ONE[:1], TWO), "2 or more rows"),
    (lambda: sliced_wasserstein(ONE, TWO, projections=0), "projections"),
    (lambda: frechet(ONE, np.where(TWO > 2, np.nan, TWO)), "finite"),
    (lambda: frechet(ONE[:, 0], TWO), "rows of features"),
    (lambda: Bins.of(ONE, 31), "more than the 30 rows"),
    (lambda: Bins.of(ONE, 3).compare(TWO[:, :2]), "have 2 features"),
    (lambda: colours(np.zeros((3, 8, 8, 3))), "uint8"),
    (lambda: colours(np.zeros((3, 8, 8, 3), np.uint8)), "16 pixels or more"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_what_is_no_set_is_refused(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()

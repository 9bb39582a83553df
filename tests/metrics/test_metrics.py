"""Measures against numbers worked out by hand, by loops, and by what every measure has to fulfil."""

import math

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from dpveil.errors import InvalidParameter
from dpveil.metrics import METRICS, ms_ssim, psnr, ssim
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
